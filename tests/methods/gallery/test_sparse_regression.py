"""Sparse regression: the optimality condition of the LASSO, exact recovery by CoSaMP, and the de-biased estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.methods.gallery.sparse_regression import cosamp, lasso

RNG = np.random.default_rng(2)
D, M = 200, 60
U = RNG.choice([-1.0, 1.0], (M, D))
G = np.zeros(D)
G[[3, 50, 120, 199]] = 2.0, -1.0, 0.5, 3.0


def test_the_lasso_meets_its_optimality_condition() -> None:
    y = U @ G + 0.7
    a, centred = U - U.mean(axis=0), y - y.mean()
    for weight in (0.05, 0.3, 0.9):
        g, limit = lasso(U, y, weight), weight * np.abs(a.T @ centred).max()
        pull = a.T @ (centred - a @ g)
        assert np.abs(pull).max() <= limit * 1.01
        on = np.abs(g) > 0.1
        np.testing.assert_allclose(pull[on], limit * np.sign(g[on]), rtol=0.02)
    assert not lasso(U, y, 1.01).any()


def test_cosamp_recovers_a_sparse_gradient_exactly() -> None:
    np.testing.assert_allclose(cosamp(U, U @ G, 4), G, atol=1e-10)
    noisy = cosamp(U, U @ G + 0.01 * RNG.normal(size=M), 4)
    assert np.count_nonzero(noisy) == 4
    np.testing.assert_allclose(noisy, G, atol=0.02)


def estimates(method: Any, count: int) -> Any:
    """Gradients of <G, x> at different iterations, from the method's estimator."""
    problem = zm.methods.Problem(D, np.dtype(float), zm.methods.ElasticNet(), zm.methods.Box())
    for t in range(count):
        query = method.estimator.ask(None, problem, np.zeros(D), t, (1, 2))
        (_, g), _ = method.estimator.tell(None, query, query.points() @ G)
        yield g


def test_the_debiased_lasso_centres_on_the_gradient() -> None:
    found = np.stack(list(estimates(zm.methods.zo_lasso(1.0, 40, weight=0.3), 60)))
    error = found.mean(axis=0) - G
    # The plain two-point estimate has variance |G|^2 / m = 0.36 an entry; the regression removes most of it.
    assert found.var(axis=0).mean() < 0.15
    assert np.abs(error).max() < 0.25


def test_the_compressed_estimate_is_the_gradient_itself() -> None:
    for g in estimates(zm.methods.zoro(1.0, M, sparsity=4), 5):
        np.testing.assert_allclose(g, G, atol=1e-6)


@pytest.mark.parametrize("make", [zm.methods.zo_lasso, zm.methods.zoro])
def test_a_stochastic_function_costs_two_queries_a_direction(make: Any) -> None:
    opt = zm.Optimizer(np.zeros(D), method=make(50.0, 8), stochastic=True)
    rows, draws = opt.ask(), opt.samples
    assert len(rows) == 16
    np.testing.assert_array_equal(draws[:8], draws[8:])
    opt.tell(rows @ G + draws)  # what belongs to the draw cancels
    assert np.isfinite(opt.x).all()
