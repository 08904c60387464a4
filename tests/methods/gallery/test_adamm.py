"""ZO-AdaMM: the published updates by hand, with the prox of the penalty against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError

D, C = 5, np.linspace(-1, 1, 5)


def f(points: Any) -> Any:
    return np.square(points - C).sum(axis=1)


def test_the_published_steps() -> None:
    m, nu, eta = 6, 1e-3, 4.0
    opt = zm.Optimizer(np.full(D, 0.5), l1=0.1, l2=0.2, bounds=(-1, 1), method=zm.methods.zo_adamm(eta, m, radius=nu))
    x: Any = np.full(D, 0.5)
    mean: Any = np.zeros(D)
    square, most = mean, mean
    grid = np.linspace(-1, 1, 20_001)
    for _ in range(5):
        rows = opt.ask()
        values, moves = f(rows), (rows[1:] - rows[0]) / nu
        np.testing.assert_allclose(np.linalg.norm(moves, axis=1), 1.0, rtol=1e-6)
        g = D * moves.T @ (values[1:] - values[0]) / (m * nu)
        mean, square = 0.9 * mean + 0.1 * g, 0.3 * square + 0.7 * g**2
        most = np.maximum(most, square)
        totals = (
            mean * grid[:, None] + 0.1 * np.abs(grid[:, None]) + 0.1 * np.square(grid[:, None])
            + eta / 2 * np.sqrt(most) * np.square(grid[:, None] - x)
        )  # fmt: skip
        opt.tell(values)
        np.testing.assert_allclose(opt.x, grid[np.argmin(totals, axis=0)], atol=2e-4)
        x = opt.x


def test_an_entry_without_a_gradient_stays() -> None:
    opt = zm.Optimizer(np.full(D, 0.5), method=zm.methods.zo_adamm(4.0, 6))
    opt.tell(np.zeros(len(opt.ask())))
    np.testing.assert_array_equal(opt.x, np.full(D, 0.5))


def test_a_moment_of_one_is_refused() -> None:
    with pytest.raises(ArgumentError, match="expected b2 < 1"):
        zm.methods.zo_adamm(1.0, b2=1.0)
