"""ZO-FW and ZSCG: the published steps by hand, and the corner of the box against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.methods.gallery.frank_wolfe import corner
from zomirror.problem import Box, ElasticNet

D, C = 6, np.linspace(-1, 1, 6)


def f(points: Any) -> Any:
    return np.square(points - C).sum(axis=1)


@pytest.mark.parametrize("h", [ElasticNet(), ElasticNet(0.3), ElasticNet(0, 0.7), ElasticNet(0.2, 0.5)], ids=str)
def test_the_corner_minimises_over_the_box(h: ElasticNet) -> None:
    grid = np.linspace(-1, 2, 3001)
    for slope in (-2.0, -0.25, 0.0, 0.1, 0.6, 3.0):
        found = float(corner(np.array([slope]), h, Box(-1.0, 2.0))[0])
        values = slope * grid + h.l1 * np.abs(grid) + h.l2 / 2 * np.square(grid)
        assert slope * found + h.l1 * abs(found) + h.l2 / 2 * found**2 <= values.min() + 1e-9


@pytest.mark.parametrize("averaged", [True, False], ids=["ZO-FW", "ZSCG"])
def test_the_published_steps(averaged: bool) -> None:
    m, nu = 4, 1e-3
    method = (zm.methods.zo_fw if averaged else zm.methods.zo_scg)(m, radius=nu)
    opt = zm.Optimizer(np.zeros(D), l1=0.1, bounds=(-1, 1), method=method, rng=3)
    x: Any = np.zeros(D)
    d: Any = np.zeros(D)
    for t in range(1, 6):
        rows = opt.ask()
        values, moves = f(rows), (rows[1:] - rows[0]) / nu
        g = moves.T @ (values[1:] - values[0]) / (m * nu)
        rho = 4 / ((1 + D / m) ** (1 / 3) * (t + 8) ** (2 / 3)) if averaged else 1.0
        gamma = 2 / (t + 8) if averaged else 6 / (t + 5)
        d = (1 - rho) * d + rho * g
        x = (1 - gamma) * x + gamma * np.where(np.abs(d) > 0.1, -np.sign(d), 0.0)
        opt.tell(values)
        np.testing.assert_allclose(opt.x, x, rtol=1e-9, atol=1e-12)


def test_it_needs_a_bounded_box() -> None:
    with pytest.raises(ArgumentError, match="expected finite bounds"):
        zm.Optimizer(np.zeros(D), bounds=(0, None), method=zm.methods.zo_fw(5))
