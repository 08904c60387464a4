"""Queries: the layout of the rows, blocks on demand, draws of a stochastic function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zomirror as zm
from tests.conftest import DIRECTIONS
from zomirror.directions import Directions, key_of
from zomirror.query import Query, Segment, Stream, blocks
from zomirror.runs.record import MOST_ROWS


def stream(directions: Directions, count: int, d: int, free: Any = None, max_block_bytes: int = 1 << 20) -> Stream:
    return Stream(directions, key_of(0), 3, count, d, np.dtype(np.float64), free, max_block_bytes)


def query(directions: Directions, m: int, d: int, *, draws: int | None = None) -> Query:
    x = np.linspace(-1, 1, d)
    base = Segment(x, 1 if draws is None else m, first_sample=draws)
    return Query((base, Segment(x, m, stream(directions, m, d), 0.1, first_sample=draws)))


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_rows_are_x_and_then_x_plus_radius_u(directions: Directions) -> None:
    q = query(directions, 6, 10)
    x, u = np.linspace(-1, 1, 10), stream(directions, 6, 10).rows(0, 6)
    points = q.points()
    assert (len(q), q.d, str(q.dtype)) == (7, 10, "float64")
    assert points.shape == (7, 10)
    assert (points[0] == x).all()
    np.testing.assert_allclose(points[1:], x + 0.1 * u, rtol=1e-14)


@given(start=st.integers(0, 12), stop=st.integers(0, 12), directions=st.sampled_from(DIRECTIONS))
def test_any_rows_on_demand_are_the_same_bits(start: int, stop: int, directions: Directions) -> None:
    start, stop = sorted((start, stop))
    q = query(directions, 5, 9, draws=40)  # ten rows in two segments
    start, stop = min(start, 10), min(stop, 10)
    assert q.points(start, stop).tobytes() == q.points()[start:stop].tobytes()
    if start < stop:
        assert (q.samples(start, stop) == q.samples()[start:stop]).all()


def test_rows_can_be_written_into_memory_of_the_caller() -> None:
    q = query(zm.rademacher, 5, 9)
    out = np.full((3, 9), np.nan)
    assert q.points(2, 5, out=out) is out
    assert (out == q.points()[2:5]).all()


def test_draws_are_shared_in_pairs() -> None:
    q = query(zm.rademacher, 4, 3, draws=40)
    assert q.stochastic
    assert q.samples().tolist() == [40, 41, 42, 43, 40, 41, 42, 43]
    assert q.samples().dtype == np.int64
    assert not query(zm.rademacher, 4, 3).stochastic


def test_clip_keeps_points_in_the_box() -> None:
    q = query(zm.rademacher, 50, 10)
    box = zm.Box(-1.0, 1.0)
    clipped = replace(q, clip=box)
    assert np.abs(q.points()).max() == pytest.approx(1.1)
    assert (clipped.points() == box.project(q.points())).all()


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_only_free_coordinates_move(directions: Directions) -> None:
    free = np.array([1, 4, 5])
    s = stream(directions, 40, 8, free)
    x = np.arange(8.0)
    points = np.empty((40, 8))
    s.add(x, 0.1, 0, points)
    moved = points - x
    fixed = np.setdiff1d(np.arange(8), free)
    assert (moved[:, fixed] == 0).all()
    assert (moved[:, free] != 0).any(axis=0).all()
    assert s.delta == directions.delta(3)
    assert s.width == 3
    np.testing.assert_allclose(moved[:, free], 0.1 * s.rows(0, 40), atol=1e-15)


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
@pytest.mark.parametrize("free", [None, np.array([0, 2, 6])], ids=["all", "some"])
@pytest.mark.parametrize("max_block_bytes", [1, 200, 1 << 20])
def test_combine_is_the_transposed_product(directions: Directions, free: Any, max_block_bytes: int) -> None:
    s = stream(directions, 23, 7, free, max_block_bytes)
    w = np.random.default_rng(0).normal(size=23)
    u = np.zeros((23, 7))
    u[:, slice(None) if free is None else free] = s.rows(0, 23)
    np.testing.assert_allclose(s.combine(w), u.T @ w, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_nothing_free_is_nothing_moved(directions: Directions) -> None:
    s = stream(directions, 4, 3, np.array([], np.intp))
    points = np.empty((4, 3))
    s.add(np.arange(3.0), 0.1, 0, points)
    assert (points == np.arange(3)).all()
    assert s.combine(np.ones(4)).tolist() == [0, 0, 0]


@given(count=st.integers(1, 500), width=st.integers(0, 300), max_bytes=st.integers(1, 10_000))
def test_blocks_cover_every_row_once_within_the_size(count: int, width: int, max_bytes: int) -> None:
    cut = list(blocks(count, width, np.dtype(np.float64), max_bytes))
    assert [row for start, stop in cut for row in range(start, stop)] == list(range(count))
    assert all((stop - start) * width * 8 <= max_bytes or stop - start == 1 for start, stop in cut)


def test_a_block_of_a_narrow_problem_fits_one_record_of_a_journal() -> None:
    sizes = [stop - start for start, stop in blocks(3 * MOST_ROWS + 5, 1, np.dtype(np.float32), 1 << 40)]
    assert sizes == [MOST_ROWS, MOST_ROWS, MOST_ROWS, 5]


def test_an_answer_is_not_changed_by_the_next_one() -> None:
    """Scratch memory is reused inside; nothing that is given away may live in it."""
    s, other = stream(zm.rademacher, 9, 7, np.array([1, 2])), stream(zm.gaussian, 9, 7, np.array([0, 3]))
    first = s.combine(np.ones(9))
    kept = first.copy()
    other.combine(np.ones(9))
    assert (first == kept).all()
