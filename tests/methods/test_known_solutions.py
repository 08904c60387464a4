"""Whole problems whose solution is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.scaling import adaptive, queries_needed

import zomirror as zm
from tests.conftest import PRESETS


def sparse_target(d: int, k: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    return x


def quadratic(solution: Any) -> Any:
    return lambda points: 0.5 * np.square(points - solution).sum(axis=1)


@pytest.mark.parametrize("method", PRESETS, ids=lambda m: f"{m.mirror}{m.step}")
def test_every_preset_comes_down(method: zm.methods.MirrorDescent) -> None:
    x = sparse_target(30, 3)
    result = zm.minimize(quadratic(x), np.zeros(30), l1=0.05, method=method, budget=4000, rng=0, returns="best")
    least = 3 * (0.05 - 0.05**2 / 2)
    assert result.fun - least < 0.2 * (1.5 - least)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ten_of_a_thousand_are_found(dtype: Any) -> None:
    """The support, with the right signs and near the soft-thresholded values, in far fewer queries than d squared."""
    x = sparse_target(1000, 10)
    result = zm.minimize(
        quadratic(x), np.zeros(1000, dtype), l1=0.1, method=zm.methods.zo_ada_expmd(100), budget=20_000, rng=0
    )
    assert result.x.dtype == dtype
    largest = np.argsort(-np.abs(result.x))[:10]
    assert set(largest) == set(np.flatnonzero(x))
    assert (np.sign(result.x[largest]) == x[largest]).all()
    np.testing.assert_allclose(np.abs(result.x[largest]), 0.9, atol=0.15)
    assert np.abs(result.x[x == 0]).max() < 0.15
    assert (result.x == 0).mean() > 0.3, "zeros are exact"


def test_a_box_holds_and_an_l2_shrinks() -> None:
    """argmin (x - 2)^2/2 + l1 |x| + l2 x^2/2 over [0, 1] is 1; with l2 = 3 it is (2 - l1)/(1 + l2) inside."""
    for l2, wanted in ((0.0, 1.0), (3.0, 0.475)):
        result = zm.minimize(
            quadratic(np.full(20, 2.0)), np.full(20, 0.5), l1=0.1, l2=l2, bounds=(0, 1),
            method=zm.methods.zo_ada_expmd(500), budget=40_000, rng=0,
        )  # fmt: skip
        assert result.x.mean() == pytest.approx(wanted, abs=0.03)
        np.testing.assert_allclose(result.x, wanted, atol=0.15)  # the estimator's noise does not vanish


def test_a_large_l1_gives_exactly_zero() -> None:
    result = zm.minimize(
        quadratic(sparse_target(50, 5)),
        np.full(50, 0.1),
        l1=2.5,
        method=zm.methods.zo_ada_expmd(200),
        budget=10_000,
        rng=0,
    )
    assert not result.x.any()
    assert result.history.nnz[-1] == 0
    assert result.stationarity == 0


def test_pnorm_comes_down_too() -> None:
    x = sparse_target(100, 3)
    method = zm.methods.MirrorDescent(zm.methods.PNorm(), zm.methods.TwoPoint(30), zm.methods.Constant(3.0))
    result = zm.minimize(quadratic(x), np.zeros(100), l1=0.05, method=method, budget=6000, rng=0)
    assert result.fun < 0.5 * result.history.fun[0]


def test_a_nonconvex_function_reaches_a_stationary_point() -> None:
    """f = sum 1 - exp(-(x - a)^2): the true generalised gradient at the end is a small part of that at the start."""
    a = sparse_target(40, 4)

    def f(points: Any) -> Any:
        return (1 - np.exp(-np.square(points - 0.7 * a))).sum(axis=1)

    def stationarity(x: Any) -> float:
        slope = 2 * (x - 0.7 * a) * np.exp(-np.square(x - 0.7 * a))
        return float(
            np.linalg.norm(
                x - zm.methods.Euclidean().step(x, slope, 1.0, zm.methods.ElasticNet(0.05), zm.methods.Box())
            )
        )

    result = zm.minimize(f, np.zeros(40), l1=0.05, method=zm.methods.zo_ada_expmd(100), budget=40_000, rng=0)
    assert stationarity(result.x) < 0.15 * stationarity(np.zeros(40))


# --- queries grow with ln d --------------------------------------------------------------------------------------


def test_a_hundred_times_the_dimension_costs_at_most_three_times_the_queries() -> None:
    small, large = adaptive(100).median, adaptive(10_000).median
    assert small is not None
    assert large is not None
    assert large <= 3 * small


def test_psgd_pays_for_the_dimension() -> None:
    """Ten times d, at the best steps of the benchmark's table and with a radius that adds no noise."""

    def growth(small: zm.methods.MirrorDescent, large: zm.methods.MirrorDescent) -> float:
        a, b = queries_needed(small, 100, 0, 5000), queries_needed(large, 1000, 0, 5000)
        assert a is not None
        assert b is not None
        return b / a

    assert growth(zm.methods.zo_expmd(0.7, 50), zm.methods.zo_expmd(0.7, 50)) < 2
    assert growth(zm.methods.zo_psgd(3.0, 50, radius=1e-6), zm.methods.zo_psgd(15.0, 50, radius=1e-6)) > 3
