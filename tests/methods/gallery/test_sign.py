"""ZO-signSGD: every coordinate moves by 1/eta against the sign of the two-point estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

import zomirror as zm


def test_the_published_steps() -> None:
    c, nu, eta = np.linspace(-1, 1, 8), 1e-3, 5.0
    opt = zm.Optimizer(np.zeros(8), bounds=(-0.5, 0.5), method=zm.methods.zo_signsgd(eta, 6, radius=nu))
    x: Any = np.zeros(8)
    for _ in range(5):
        rows = opt.ask()
        values, moves = np.square(rows - c).sum(axis=1), (rows[1:] - rows[0]) / nu
        g = moves.T @ (values[1:] - values[0])
        x = np.clip(x - np.sign(g) / eta, -0.5, 0.5)
        opt.tell(values)
        np.testing.assert_allclose(opt.x, x, atol=1e-12)
