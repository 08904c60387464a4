"""The box: every way to write it, what it refuses, what it promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import Bounds

import zomirror as zm

INF = np.inf


def sides(box: zm.methods.Box, d: int) -> tuple[list[float], list[float]]:
    return np.broadcast_to(box.lower, d).tolist(), np.broadcast_to(box.upper, d).tolist()


@pytest.mark.parametrize(
    ("bounds", "d", "lower", "upper"),
    [
        (None, 2, [-INF, -INF], [INF, INF]),
        ((0, 1), 3, [0, 0, 0], [1, 1, 1]),
        ([0.0, 1.0], 1, [0], [1]),
        ((None, 1), 3, [-INF] * 3, [1] * 3),
        ((0, None), 2, [0, 0], [INF, INF]),
        ([(0, 1), (2, None), (None, 3)], 3, [0, 2, -INF], [1, INF, 3]),
        ([(0, 1)], 1, [0], [1]),
        (np.array([[0, 1], [2, 3], [4, 5]]), 3, [0, 2, 4], [1, 3, 5]),
        ((np.zeros(3), np.ones(3)), 3, [0, 0, 0], [1, 1, 1]),
        (np.array([[0, 0, 0], [1, 2, 3]]), 3, [0, 0, 0], [1, 2, 3]),
        ((0, [1, 2, 3]), 3, [0, 0, 0], [1, 2, 3]),
        # At d = 2 a 2 x 2 is pairs, as SciPy reads it.
        ([(0, 1), (2, 3)], 2, [0, 2], [1, 3]),
        (np.array([[0, 1], [2, 3]]), 2, [0, 2], [1, 3]),
        (Bounds(0, 1), 3, [0, 0, 0], [1, 1, 1]),
        (Bounds([0, 1], [2, INF]), 2, [0, 1], [2, INF]),
        (Bounds(), 2, [-INF, -INF], [INF, INF]),
        (zm.methods.Box(0, np.array([1.0, 2.0])), 2, [0, 0], [1, 2]),
        pytest.param(zip([0, 1, 2], [3, 4, 5], strict=True), 3, [0, 1, 2], [3, 4, 5], id="zip"),
    ],
    ids=str,
)
def test_every_way_to_write_it(bounds: Any, d: int, lower: list[float], upper: list[float]) -> None:
    assert sides(zm.methods.Box.of(bounds, d), d) == (lower, upper)


@pytest.mark.parametrize(
    ("bounds", "error", "sentence"),
    [
        ((1, 0), ValueError, r"lower <= upper, got lower > upper at coordinate 0"),
        ([(0, 1), (3, 2), (1, 0)], ValueError, r"lower > upper at coordinates 1, 2"),
        ((np.nan, 1), ValueError, "expected lower without NaN.*use inf"),
        ([(0, 1), (0, np.nan), (0, 1)], ValueError, "expected upper without NaN, got NaN at coordinate 1"),
        ((INF, INF), ValueError, "no point would be inside"),
        ((-INF, -INF), ValueError, "no point would be inside"),
        ([(0, 1)] * 4, ValueError, r"3 pairs \(lower, upper\) or two arrays of length 3, got a sequence of 4"),
        ((np.zeros(4), np.ones(4)), ValueError, "expected bounds for 3 coordinates, got 4"),
        ((np.zeros(3), np.ones(4)), ValueError, "one length, got 3 and 4"),
        (Bounds([0, 1], [2, 3]), ValueError, "expected bounds for 3 coordinates, got 2"),
        (zm.methods.Box(np.zeros(5), 1.0), ValueError, "expected bounds for 3 coordinates, got 5"),
        ((np.zeros((3, 1)), 1), ValueError, r"expected lower to be a number or a vector, got shape \(3, 1\)"),
        (3, TypeError, "two numbers, 3 pairs, two arrays, a Box or a scipy Bounds, got 3"),
        ("12", TypeError, "lower bounds to hold real numbers, got dtype <U1"),
        ((0, 1j), TypeError, "upper bounds to hold real numbers, got dtype complex128"),
        (("0", "1"), TypeError, "lower bounds to hold real numbers"),
        (([[0], [1, 2], 3], 1), TypeError, "ragged"),
        (([None, 0, 0], 1), TypeError, "lower bounds to hold real numbers"),
    ],
    ids=str,
)
def test_what_is_refused(bounds: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence) as caught:
        zm.methods.Box.of(bounds, 3)
    assert isinstance(caught.value, zm.errors.ZomirrorError)


def test_sides_are_copied_and_read_only() -> None:
    lower = np.zeros(3)
    box = zm.methods.Box(lower, 1.0)
    lower[:] = 5
    assert sides(box, 3)[0] == [0, 0, 0]
    assert isinstance(box.lower, np.ndarray)
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 1


@given(
    x=hnp.arrays(np.float64, 9, elements=st.floats(-10, 10)),
    a=hnp.arrays(np.float64, (2, 9), elements=st.floats(-5, 5)),
)
def test_project_is_the_nearest_point(x: Any, a: Any) -> None:
    box = zm.methods.Box(a.min(axis=0), a.max(axis=0))
    y = box.project(x)
    assert box.outside(y).size == 0
    assert (box.project(y) == y).all()
    inside = (x >= a.min(axis=0)) & (x <= a.max(axis=0))
    assert (y[inside] == x[inside]).all()
    assert set(box.outside(x)) == set(np.flatnonzero(~inside))
    other = np.random.default_rng(0).uniform(a.min(axis=0), a.max(axis=0))
    assert (np.abs(y - x) <= np.abs(other - x)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_project_keeps_the_dtype(dtype: type[Any]) -> None:
    x = np.linspace(-2, 2, 5).astype(dtype)
    for box in boxes():
        assert box.project(x).dtype == dtype


def boxes() -> Iterator[zm.methods.Box]:
    yield zm.methods.Box()
    yield zm.methods.Box(0.0, 1.0)
    yield zm.methods.Box(np.zeros(5), np.ones(5))
    yield zm.methods.Box(np.zeros(5, np.float32), INF)


def test_nan_is_outside() -> None:
    assert zm.methods.Box().outside(np.array([0.0, np.nan])).tolist() == [1]


def test_free_coordinates() -> None:
    assert zm.methods.Box().free(3) is None
    assert zm.methods.Box(0.0, 1.0).free(3) is None
    free = zm.methods.Box(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0])).free(3)
    assert free is not None
    assert free.tolist() == [0, 2]
    nothing = zm.methods.Box(1.0, 1.0).free(2)
    assert nothing is not None
    assert nothing.size == 0


def test_unbounded_and_reach() -> None:
    assert zm.methods.Box().unbounded
    assert zm.methods.Box(np.full(2, -INF), INF).unbounded
    assert not zm.methods.Box(lower=0.0).unbounded
    assert not zm.methods.Box(np.array([-INF, 0.0])).unbounded
    assert zm.methods.Box(-3.0, 2.0).reach == 3
    assert zm.methods.Box(0.0, np.array([1.0, 7.0])).reach == 7
    assert zm.methods.Box(lower=0.0).reach == INF


def test_astype_rounds_the_sides() -> None:
    box = zm.methods.Box(-0.1, np.array([0.1, 1e300])).astype(np.dtype(np.float32))
    assert sides(box, 2) == ([float(np.float32(-0.1))] * 2, [float(np.float32(0.1)), INF])


def test_a_box_without_coordinates_is_refused() -> None:
    with pytest.raises(zm.errors.ArgumentError, match="at least one coordinate"):
        zm.methods.Box(np.array([]), np.array([]))
