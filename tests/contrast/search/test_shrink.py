"""Pruning and shrinking a valid point: within its queries, never invalid, never larger, down to what is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from tests.support.contrast_models import Curved
from tests.support.search_driver import GOAL, Rows, drive, read_only
from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.search.shrink import polish
from zomirror.problem import Box, ElasticNet

BOX = Box(-1.0, 1.0)


def polished(
    margin: Any, w: Any, allowed: int, *, box: Box = BOX, goal: Goal = GOAL
) -> tuple[Candidate, Candidate, Rows]:
    """Start, end, and the points asked when the margins are those of `margin`."""
    w = read_only(w, getattr(w, "dtype", np.float64))
    start = goal.candidate(w, float(margin(w[None])[0]))
    end, asked = drive(polish(start, goal, box, allowed), margin, box)
    return start, end, asked


def one_counts(batch: Rows) -> Rows:
    """Valid where feature 3 is past a half."""
    margins: Rows = 0.5 - batch[:, 3]
    return margins


def curved(batch: Rows) -> Rows:
    scores = Curved.draw(10, seed=1)(batch)
    margins: Rows = scores[:, 0] - scores[:, 1:].max(axis=1)
    return margins


@given(arrays(np.float64, 10, elements=st.floats(-1, 1)), st.integers(0, 200))
def test_it_keeps_to_its_queries_and_to_what_was_valid(w: Rows, allowed: int) -> None:
    start, end, asked = polished(curved, w, allowed)
    assert len(asked) <= allowed
    assert end is start or (end.valid and end.better_than(start))
    assert curved(end.w[None])[0] == end.margin
    if start.valid:
        assert end.valid
        assert end.fun <= start.fun
        assert set(np.flatnonzero(end.w)) <= set(np.flatnonzero(start.w)), "nothing new is put in"


@pytest.mark.parametrize("d", [4, 10, 60, 300])
def test_of_many_features_the_one_that_counts_is_left(d: int) -> None:
    start, end, _ = polished(one_counts, np.full(d, 0.9), 1_000)
    assert start.valid
    assert np.flatnonzero(end.w).tolist() == [3]


def test_what_is_left_is_shrunk_to_the_boundary() -> None:
    _, end, _ = polished(one_counts, np.full(10, 0.9), 1_000)
    assert 0.5 < end.w[3] < 0.52
    _, end, _ = polished(one_counts, np.full(10, 0.9), 1_000, goal=replace(GOAL, floor=0.2))
    assert 0.7 < end.w[3] < 0.73, "a floor is kept to"


def test_two_that_are_needed_together_both_stay() -> None:
    """Brute force over all subsets: no other pair is valid, and no single feature is."""

    def both(batch: Rows) -> Rows:
        return np.where((batch[:, 1] > 0.2) & (batch[:, 4] > 0.2), -1.0, 1.0)

    _, end, _ = polished(both, np.linspace(0.9, 0.3, 6), 1_000)
    assert np.flatnonzero(end.w).tolist() == [1, 4]


@pytest.mark.parametrize("w", [np.zeros(6), np.eye(6)[3]], ids=["nothing", "one feature"])
def test_the_sparsest_points_are_only_shrunk(w: Rows) -> None:
    start, end, asked = polished(lambda batch: -np.ones(len(batch)), w, 100)
    assert end.valid
    assert np.count_nonzero(end.w) == np.count_nonzero(start.w)
    assert len(asked) == 0 or w.any()


def test_a_point_that_cannot_be_better_is_returned_itself() -> None:
    w = np.array([0.0, 0.0, 0.0, 0.500001])
    start, end, _ = polished(one_counts, w, 200)
    assert end is start


def test_it_is_the_same_twice_and_float32_stays_float32() -> None:
    w = np.linspace(0.2, 1.0, 10).astype(np.float32)
    (_, first, points), (_, second, others) = (polished(one_counts, w, 300) for _ in range(2))
    assert points.dtype == first.w.dtype == np.float32
    assert np.array_equal(points, others)
    assert np.array_equal(first.w, second.w)


def test_margins_that_are_nan_change_nothing() -> None:
    def broken(batch: Rows) -> Rows:
        return np.where(np.arange(len(batch)) == 0, -1.0, np.nan) if len(batch) == 1 else np.full(len(batch), np.nan)

    start, end, _ = polished(broken, np.full(6, 0.9), 500)
    assert end is start


def test_without_a_penalty_there_is_nothing_to_gain() -> None:
    start, end, asked = polished(one_counts, np.full(6, 0.9), 500, goal=replace(GOAL, penalty=ElasticNet(0.0, 0.0)))
    assert end is start
    assert len(asked) <= 500


def test_a_box_that_excludes_zero_is_kept_to() -> None:
    box = Box(np.full(6, 0.1), np.ones(6))
    _, end, asked = polished(one_counts, np.full(6, 0.9), 400, box=box)
    assert (asked >= 0.1).all()
    assert end.valid
