"""exp and log of our own, against fifty digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from tests.numerics.test_entropy import strict
from zomirror.numerics.arrays import Array
from zomirror.numerics.elementary import expm1, log, log1p, root

TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def units(function: Callable[[Array], Array], exactly: Callable[[Any], Any], at: Array) -> float:
    """The largest error, in units of the last place."""
    with strict():
        found = function(at.copy())
    assert found.dtype == at.dtype
    worst = 0.0
    for one, value in zip(at, found, strict=True):
        with mp.workdps(50):
            wanted = exactly(mp.mpf(float(one)))
        if wanted == 0:
            assert value == 0
            continue
        last = max(float(np.spacing(at.dtype.type(abs(float(wanted))))), float(np.finfo(at.dtype).smallest_subnormal))
        with mp.workdps(50):
            worst = max(worst, float(abs(mp.mpf(float(value)) - wanted) / last))
    return worst


@TYPES
def test_expm1_is_good_to_the_last_digits(dtype: type[Any]) -> None:
    rng = np.random.default_rng(0)
    highest = 87 if dtype is np.float32 else 708
    small, large = 10 ** rng.uniform(-30, 0, 1000), rng.uniform(-5, highest, 2000)
    at = np.concatenate([[0.0, 1.0, np.log(2) / 2, np.log(2), highest], small, -small, large]).astype(dtype)
    assert 0 < units(expm1, mp.expm1, at) <= 3


@TYPES
def test_log_is_good_to_the_last_digits(dtype: type[Any]) -> None:
    rng = np.random.default_rng(0)
    highest = np.log10(float(np.finfo(dtype).max)) - 0.01
    at = np.concatenate([[1.0, 2.0, np.sqrt(2), 1.5], rng.uniform(1, 3, 1000), 10 ** rng.uniform(0, highest, 1000)])
    at = np.append(at.astype(dtype), [np.finfo(dtype).max, 1 + np.finfo(dtype).eps])
    assert 0 < units(log, mp.log, at) <= 3
    below = 1 - np.append(rng.uniform(0, 1, 1000), [0.0, 1e-3, 0.5]).astype(dtype)
    assert 0 < units(log, mp.log, below[below > 0]) <= 3, "uniform numbers, for the tail of normal ones"


@TYPES
def test_log1p_is_good_to_the_last_digits(dtype: type[Any]) -> None:
    at = np.concatenate([[0.0], 10 ** np.random.default_rng(0).uniform(-30, 30, 2000)]).astype(dtype)
    assert 0 < units(log1p, mp.log1p, at) <= 3


@TYPES
def test_log1p_ends_with_the_range(dtype: type[Any]) -> None:
    top = np.array([np.finfo(dtype).max, np.inf], dtype)
    np.testing.assert_allclose(log1p(top), np.log(float(np.finfo(dtype).max)), rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_a_root_is_good_to_the_last_digits(n: int) -> None:
    for x in (1e-299, 1e-12, 0.125, 0.999, 1.0, 1.5, 64.0, 1e12, 1e299):
        assert root(x, n) == pytest.approx(x ** (1 / n), rel=1e-13)
    assert (root(0.0, n), root(1e-308, n)) == (0.0, 0.0)
    assert (root(float("inf"), n), root(1e308, n)) == (float("inf"), float("inf"))
