"""Norms and sums whose bits no BLAS decides: against exact arithmetic, and without memory of earlier calls."""

from __future__ import annotations

import math
import weakref
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from zomirror.numerics.arrays import LANES, dot, finite, norm1, norm2, product, row_sums, step_norms, sums

pytestmark = pytest.mark.usefixtures("loops")


@pytest.mark.parametrize("n", [0, 1, 3, LANES - 1, LANES, LANES + 1, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_those_of_exact_arithmetic_to_rounding(n: int, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal(n).astype(dtype) for _ in range(2))
    for pair, terms in ((sums(x), x.astype(float)), (sums(x, y), x.astype(float) - y.astype(float))):
        exact = [Fraction(float(term)) for term in terms]
        assert pair[0] == pytest.approx(float(sum(map(abs, exact))), rel=1e-14)
        assert pair[1] == pytest.approx(float(sum(term * term for term in exact)), rel=1e-14)


@pytest.mark.parametrize("n", [0, 1, 17, 784])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_norms_of_a_step_are_the_norms(n: int, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal(n).astype(dtype) for _ in range(2))
    assert step_norms(x, y) == (norm1(x), norm1(y), norm1(x, y)) == (sums(x)[0], sums(y)[0], sums(x, y)[0])
    assert norm2(x, y) == math.sqrt(sums(x, y)[1])


def test_a_point_that_was_changed_is_summed_anew_and_none_is_kept_alive() -> None:
    x, y = np.array([1.0, 1.0]), np.array([2.0, 2.0])
    assert step_norms(x, y) == (2.0, 4.0, 2.0)
    x[0] = 5.0
    assert step_norms(x, y) == (6.0, 4.0, 4.0)
    assert sums(x) == (6.0, 26.0)
    gone = weakref.ref(y)
    del y
    assert gone() is None


def test_what_is_not_finite_is_seen_and_a_large_sum_is() -> None:
    assert finite(np.array([1e308, -1e308, 1e308]))
    assert not finite(np.array([1.0, math.nan]))
    assert not finite(np.array([1.0, -math.inf]))
    assert norm1(np.full(3, 1e308)) == math.inf


@pytest.mark.parametrize("width", [1, 2, 9_000])
def test_products_are_added_row_after_row(width: int) -> None:
    rng = np.random.default_rng(width)
    weights, rows = rng.standard_normal(7), rng.standard_normal((7, width))
    total = np.zeros(width)
    for weight, row in zip(weights, rows, strict=True):
        total += weight * row
    assert product(weights, rows).tobytes() == total.tobytes()
    assert dot(weights, weights) == pytest.approx(float(np.square(weights).sum()), rel=1e-14)
    assert dot(weights[:0], weights[:0]) == 0


@pytest.mark.parametrize("shape", [(0, 5), (3, 1), (4, 100)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_rows_are_those_of_each_row(shape: tuple[int, int], dtype: Any) -> None:
    X = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    assert row_sums(X).tolist() == [list(sums(row)) for row in X]
    assert row_sums(X[:, ::2]).tolist() == [list(sums(row)) for row in X[:, ::2]]
