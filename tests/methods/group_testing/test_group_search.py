"""Group testing: what it finds and at what price, that it notices dense gradients, and the algebra of its sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.methods.group_testing import OVER, SAMPLE, Probes, Search, asked, begun, shortest, told
from zomirror.methods.group_testing.open_sets import _shifted, _without
from zomirror.methods.query import Query, Segment
from zomirror.numerics.random import key_of

KEY = key_of(4)


def problem(d: int, bounds: Any = (-3, 3), l1: float = 0.0, dtype: Any = np.float64) -> zm.methods.Problem:
    box = zm.methods.Box.of(bounds, d).astype(np.dtype(dtype))
    return zm.methods.Problem(d, np.dtype(dtype), zm.methods.ElasticNet(l1), box)


def searched(
    f: Any, x: Any, place: zm.methods.Problem, *, sd: float = 0.0, seed: int = 0, known: Any = ()
) -> tuple[Search, list[Any]]:
    """A whole search, and the points it asked."""
    rng, batches = np.random.default_rng(seed), []
    search = begun(place, x, 5, sd, shortest(sd, 1.0, 3.0, x.dtype), np.array(known, np.intp))
    while search.stage != OVER:
        query = asked(search, place, x, key_of(seed))
        batches.append(query.points())
        search = told(search, query, f(batches[-1]) + sd * rng.normal(size=len(query)))
    return search, batches


class Distance:
    """sum c_i (x_i - v_i)^2 with s non-zero v_i; the others have curvature and no slope."""

    def __init__(self, d: int, s: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.c, self.v = rng.uniform(0.1, 1, d), np.zeros(d)
        self.v[rng.choice(d, s, replace=False)] = rng.uniform(0.2, 1, s)

    def __call__(self, points: Any) -> Any:
        return np.square(points - self.v) @ self.c


@pytest.mark.parametrize("bounds", [(-3, 3), (0, 3), None], ids=["inside", "on a bound", "unbounded"])
@pytest.mark.parametrize(("d", "s"), [(30, 1), (100, 10), (3_000, 3), (10_000, 10), (10_000, 50)])
def test_it_finds_every_coordinate_with_its_slope_and_curvature(d: int, s: int, bounds: Any) -> None:
    f = Distance(d, s, d + s)
    search, batches = searched(f, np.zeros(d), problem(d, bounds))
    found = search.found[: search.count]
    assert set(found.tolist()) == set(np.flatnonzero(f.v).tolist())
    np.testing.assert_allclose(search.slopes[: search.count], -2 * (f.c * f.v)[found], rtol=1e-6)
    np.testing.assert_allclose(search.curvatures[: search.count], 2 * f.c[found], rtol=1e-4)
    assert search.rows == sum(map(len, batches)) <= 50 + 10 * s
    if bounds is not None:
        assert all((batch >= bounds[0]).all() and (batch <= bounds[1]).all() for batch in batches)


@pytest.mark.parametrize("sd", [1e-6, 1e-4, 1e-3, 1e-2])
def test_with_noise_it_finds_what_stands_out_and_nothing_else(sd: float) -> None:
    for seed in range(3):
        f = Distance(2_000, 10, seed)
        search, _ = searched(f, np.zeros(2_000), problem(2_000), sd=sd, seed=seed)
        found, slopes = set(search.found[: search.count].tolist()), np.abs(2 * f.c * f.v)
        assert found <= set(np.flatnonzero(f.v).tolist())
        assert set(np.flatnonzero(slopes > 0.4).tolist()) <= found
        assert search.rows <= 600


@pytest.mark.parametrize("kind", ["equal", "normal", "flat"])
@pytest.mark.parametrize("d", [40, 784, 10_000])
def test_a_dense_gradient_is_noticed_at_once(kind: str, d: int) -> None:
    for seed in range(5):
        g = {"equal": np.ones(d), "normal": np.random.default_rng(seed).normal(size=d), "flat": np.zeros(d)}[kind]
        search, batches = searched(lambda X, g=g: X @ g + np.square(X).sum(axis=1), np.zeros(d), problem(d), seed=seed)
        assert search.rows <= 200
        assert len(batches[0]) == 35
        assert kind != "flat" or search.count == 0


def test_signs_that_cancel_are_drawn_again() -> None:
    d = 1_000
    g = np.zeros(d)
    search = begun(problem(d), np.zeros(d), 5, 0.0, shortest(0.0, 1.0, 3.0, np.dtype(float)))
    query = asked(search, problem(d), np.zeros(d), KEY)
    moves = (query.points()[1:] * 1e5)[[0, 8]]  # the plain and the weighted sum of the set of all
    null = np.linalg.svd(moves[:, [100, 500, 700]])[2][-1]
    g[[100, 500, 700]] = null  # both sums cancel
    search = told(search, query, 1 + query.points() @ g)
    assert search.stage == SAMPLE
    assert search.repeated
    while search.stage != OVER:
        query = asked(search, problem(d), np.zeros(d), KEY)
        search = told(search, query, 1 + query.points() @ g)
    assert set(search.found[: search.count].tolist()) == {100, 500, 700}


def test_at_a_kink_only_coordinates_along_which_f_falls_are_found() -> None:
    d, falls, rises = 2_000, [3, 50, 700], [9, 80, 1_200]

    def f(points: Any) -> Any:  # even in every coordinate, so every two-sided difference at 0 is 0
        size = np.abs(points)
        return 0.5 * size[:, rises].sum(axis=1) - size[:, falls].sum(axis=1) + np.square(points).sum(axis=1)

    search, _ = searched(f, np.zeros(d), problem(d))
    found = search.found[: search.count]
    assert search.kinked
    assert sorted(found.tolist()) == falls
    np.testing.assert_allclose(np.abs(search.slopes[: search.count]), 1.0, rtol=1e-6)
    np.testing.assert_allclose(search.curvatures[: search.count], 2.0, rtol=1e-3)


def test_a_smooth_even_function_is_not_a_kink() -> None:
    search, batches = searched(lambda X: np.square(X).sum(axis=1), np.zeros(2_000), problem(2_000))
    assert not search.kinked
    assert search.rows == 2 * len(batches[0])


def test_a_few_large_slopes_are_found_above_many_small_ones() -> None:
    for seed in range(4):
        g = 0.01 * np.random.default_rng(seed).normal(size=5_000)
        g[:10] = 10.0
        search, _ = searched(lambda X, g=g: X @ g, np.zeros(5_000), problem(5_000), seed=seed)
        assert set(search.found[: search.count].tolist()) <= set(range(10))
        assert search.count >= 5
        assert search.rows <= 500


def test_the_known_and_the_fixed_are_not_moved() -> None:
    d = 500
    f = Distance(d, 12, 3)
    on = np.flatnonzero(f.v)
    lower, upper = np.full(d, -3.0), np.full(d, 3.0)
    lower[on[:3]] = upper[on[:3]] = 0.0
    search, batches = searched(f, np.zeros(d), problem(d, (lower, upper)), known=on[3:6])
    assert set(search.found[: search.count].tolist()) == set(on[3:].tolist())
    assert search.found[: search.known].tolist() == on[3:6].tolist()
    assert all((batch[:, on[:6]] == 0).all() for batch in batches)


def test_slopes_below_l1_are_left_alone() -> None:
    g = np.zeros(1_000)
    g[[5, 500]] = 0.3, 0.01
    for l1, count in ((0.0, 2), (0.02, 1), (0.4, 0)):
        search, _ = searched(lambda X: X @ g, np.zeros(1_000), problem(1_000, l1=l1))
        assert search.count == count


def test_nothing_is_left_to_search() -> None:
    assert begun(problem(4), np.zeros(4), 0, 0.0, 1e-5, np.arange(4)).stage == OVER
    assert begun(problem(4), np.zeros(4), 0, 0.0, 1e-5).stage == SAMPLE


def test_single_precision() -> None:
    d = 2_000
    f = Distance(d, 5, 1)
    x = np.zeros(d, np.float32)
    search, batches = searched(lambda X: f(X.astype(np.float64)), x, problem(d, dtype=np.float32))
    assert batches[0].dtype == np.float32
    assert set(search.found[: search.count].tolist()) == set(np.flatnonzero(f.v).tolist())


@given(st.integers(0, 10_000), st.integers(2, 40), st.data())
@settings(max_examples=60, deadline=None)
def test_subtracting_a_part_leaves_the_rest(seed: int, m: int, data: Any) -> None:
    """y1 and y2 of [a, b) without [low, high), and seen from the part that is left, against their definition."""
    g, a = np.random.default_rng(seed).normal(size=m), seed % 7

    def measured(first: int, end: int, slopes: Any) -> tuple[float, float]:
        width = end - first
        places = (2 * np.arange(width) + 1 - width) / width
        return float(slopes.sum()), float(slopes @ places)

    low = data.draw(st.integers(0, m - 1))
    high = data.draw(st.integers(low + 1, m))
    node = np.array([a, a + m, *measured(0, m, g), 1.0, 1.0, 0, 0])
    rest = _without(node, a + low, a + high, *measured(low, high, g[low:high]), 0.5, 0.5)
    without = np.where((np.arange(m) >= low) & (np.arange(m) < high), 0.0, g)
    np.testing.assert_allclose(rest[2:4], measured(0, m, without), atol=1e-9)
    assert rest[4] == 1.5
    assert rest[5] > 1.0
    if low == 0 and high < m:
        right = _shifted(rest, a + high)
        np.testing.assert_allclose(right[2:4], measured(high, m, g[high:]), atol=1e-8)


def test_rows_can_be_made_in_any_blocks() -> None:
    place, x = problem(200), np.linspace(-1, 1, 200)
    query = asked(begun(place, x, 3, 0.0, 1e-3), place, x, KEY)
    whole = query.points()
    for j in range(len(query)):
        assert query.points(j, j + 1)[0].tobytes() == whole[j].tobytes()
    assert whole[0].tobytes() == x.tobytes()
    probes = query.segments[1].stream
    assert isinstance(probes, Probes)
    assert sorted(probes.order.tolist()) == list(range(200))


def test_the_query_of_another_is_refused() -> None:
    place, x = problem(20), np.zeros(20)
    search = begun(place, x, 3, 0.0, 1e-3)
    with pytest.raises(ArgumentError, match=r"asked\(\)"):
        told(search, Query((Segment(x, 1), Segment(x, 2))), np.zeros(3))
