"""Refining: within its queries, never worse, exact where the scores are linear, and calm where they are not finite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from tests.support.contrast_models import Affine, Curved, label_of
from tests.support.search_driver import CHANGE, GOAL, Model, Rows, begun, drive, read_only
from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.loss import change_margin, keep_margin
from zomirror.contrast.search.linear_model import Linear
from zomirror.contrast.search.local_refinement import Pull, along, bounded, correction, refine, steps_within
from zomirror.problem import Box, ElasticNet

D = 12
BOX = Box(np.full(D, -1.0), np.full(D, 1.0))
STRAIGHT = Affine(np.random.default_rng(5).normal(size=(3, D)), np.array([1.5, 0.0, 0.2]))
BENT = Curved.draw(D, seed=3)
MODELS: dict[str, Model] = {"linear": STRAIGHT, "curved": BENT}


def refined(
    model: Model,
    start: Candidate,
    allowed: int,
    *,
    box: Box = BOX,
    goal: Goal = GOAL,
    pull: Pull = CHANGE,
    **options: Any,
) -> tuple[Candidate, Rows]:
    return drive(refine(start, goal, box, pull, allowed, **options), model, box)


def own_pull(model: Model) -> Pull:
    """The class at the origin has to lose."""
    return Pull(label_of(model, np.zeros(D)), kept=False)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("at", [0.0, 0.4, -0.7])
@pytest.mark.parametrize("allowed", [1, 2, 3, D, D + 1, 2 * D + 3, 100, 600])
def test_it_keeps_to_its_queries_and_never_ends_worse(name: str, at: float, allowed: int) -> None:
    model, pull = MODELS[name], own_pull(MODELS[name])
    start = begun(model, np.full(D, at), pull=pull)
    end, asked = refined(model, start, allowed, pull=pull)
    assert len(asked) <= allowed
    assert end is start or end.better_than(start)
    assert end.valid or not start.valid
    again = begun(model, end.w, pull=pull)
    assert (again.margin, again.fun) == (end.margin, end.fun)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_start_asks_the_same_points(name: str) -> None:
    start = begun(MODELS[name], np.full(D, 0.2))
    (first, points), (second, others) = (refined(MODELS[name], start, 300) for _ in range(2))
    assert np.array_equal(points, others)
    assert np.array_equal(first.w, second.w)


@pytest.mark.parametrize("at", [0.0, 0.5])
@pytest.mark.parametrize("kappa", [0.0, 0.5])
def test_a_linear_model_that_has_to_change_is_solved(at: float, kappa: float) -> None:
    """Of the least F for each rival class alone, the least is found, from an invalid start or a valid one."""
    goal = replace(GOAL, kappa=kappa)
    end, _ = refined(STRAIGHT, begun(STRAIGHT, np.full(D, at), goal), 800, goal=goal)
    least = []
    for rival in (1, 2):
        a, b = STRAIGHT.weights[0] - STRAIGHT.weights[rival], STRAIGHT.bias[0] - STRAIGHT.bias[rival]
        exact = Linear(a[None], np.array([b]), -np.ones(D), np.ones(D), goal.penalty, kappa).solve()
        least.append(max(float(a @ exact + b), -kappa) + goal.penalty(exact))
    assert end.valid
    assert min(least) - 1e-9 <= end.fun <= min(least) + 0.01 * (abs(min(least)) + kappa)


def test_a_linear_model_that_has_to_keep_is_solved() -> None:
    """All rivals at once: no feasible point of a general search is better by more than 1 %."""
    model, pull = Affine(STRAIGHT.weights, np.array([-0.5, 0.0, 0.2])), Pull(0, kept=True)
    rivals = np.array([1, 2])
    A, b = model.weights[rivals] - model.weights[0], model.bias[rivals] - model.bias[0]
    exact = Linear(A, b, -np.ones(D), np.ones(D), GOAL.penalty, 0.0).solve()
    least = max(float((A @ exact + b).max()), 0.0) + GOAL.penalty(exact)
    end, _ = refined(model, begun(model, np.full(D, 0.1), pull=pull), 800, pull=pull)
    assert end.valid
    assert end.fun <= 1.01 * least


def test_fixed_features_stay_and_without_any_free_one_it_ends() -> None:
    lower, upper = np.full(D, -1.0), np.full(D, 1.0)
    lower[:4] = upper[:4] = 0.25
    start = begun(STRAIGHT, np.full(D, 0.25))
    end, asked = refined(STRAIGHT, start, 300, box=Box(lower, upper))
    assert (asked[:, :4] == 0.25).all()
    assert (asked[:, 4:] != 0.25).any()
    end, asked = refined(STRAIGHT, start, 300, box=Box(start.w, start.w))
    assert end is start
    assert len(asked) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_do_not_break_it(bad: float) -> None:
    """One class is impossible everywhere (a log-probability of -inf) or the neighbours cannot be computed."""

    def impossible(batch: Rows) -> Rows:
        return np.column_stack([STRAIGHT(batch), np.full(len(batch), bad)])

    start = begun(STRAIGHT, np.full(D, 0.3))
    end, asked = refined(impossible, start, 200)
    assert len(asked) <= 200
    assert end is start or end.better_than(start)


def test_float32_stays_float32() -> None:
    start = begun(STRAIGHT, np.full(D, 0.3, np.float32))
    end, asked = refined(STRAIGHT, start, 300)
    assert asked.dtype == end.w.dtype == np.float32
    assert end.better_than(start)


@given(st.integers(0, 10_000))
def test_rough_slopes_are_not_written_into_and_decide_what_is_asked(seed: int) -> None:
    """With slopes that know of three features only these are asked in the first model."""
    slopes = np.zeros((3, D))
    known = np.random.default_rng(seed).choice(D, 3, replace=False)
    slopes[:, known] = STRAIGHT.weights[:, known]
    slopes = read_only(slopes)
    start = begun(STRAIGHT, np.zeros(D))
    _, asked = refined(STRAIGHT, start, 2 * 3 + 1, slopes=slopes)
    first_model = asked[1:4]
    assert (np.delete(first_model, known, axis=1) == 0).all()


def nothing(batch: Rows) -> Rows:
    """Class 0 wins everywhere, most at the origin."""
    return np.column_stack([3.0 - 0.1 * np.abs(batch).sum(axis=1), np.zeros(len(batch))])


def test_without_a_valid_point_it_gives_up_where_it_is_told_to() -> None:
    start = begun(nothing, np.zeros(D))
    _, few = refined(nothing, start, 2_000, unless_valid=1)
    _, more = refined(nothing, start, 2_000)
    assert len(few) < len(more) <= 2_000


def test_far_above_the_bar_it_ends_early() -> None:
    start = begun(BENT, np.full(D, 0.9), pull=(pull := own_pull(BENT)))
    _, without = refined(BENT, start, 2_000, pull=pull)
    end, asked = refined(BENT, start, 2_000, pull=pull, bar=-1e9)
    assert len(asked) <= len(without)
    assert end is start or end.better_than(start)


def test_scores_that_jump_are_looked_at_with_a_step_over_the_jump() -> None:
    def stairs(batch: Rows) -> Rows:
        return STRAIGHT(np.round(4 * batch) / 4)

    start = begun(stairs, np.full(D, 0.6))
    end, asked = refined(stairs, start, 400, step=0.25)
    assert np.allclose(np.abs(asked[1 : D + 1] - start.w).max(axis=1), 0.25)
    assert end is start or end.better_than(start)


@given(st.integers(0, 1000))
def test_what_a_pull_wants_is_the_margin(seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(4, 5))
    for own in range(5):
        assert np.array_equal(Pull(own, kept=True).margins(scores), keep_margin(scores, own))
        assert np.array_equal(Pull(own, kept=False).margins(scores), change_margin(scores, own))
        for kept in (True, False):
            rivals = Pull(own, kept=kept).rivals(scores[0])
            assert all(own not in group for group in rivals)
            nearest = max((i for i in range(5) if i != own), key=lambda i: scores[0][i])
            assert rivals[0][0] == nearest


@given(arrays(np.float64, (3, 8), elements=st.floats(-2, 2)), st.floats(0.01, 1))
def test_a_step_stays_in_the_box_and_is_as_long_as_it_can_be(rows: Rows, size: float) -> None:
    lower, w, upper = np.sort(rows, axis=0)
    steps = steps_within(w, lower, upper, size=size)
    moved = w + steps
    assert (moved >= lower - 1e-12).all()
    assert (moved <= upper + 1e-12).all()
    longest = np.maximum(upper - w, w - lower)
    np.testing.assert_allclose(np.abs(steps), np.minimum(size, longest))
    assert ((steps != 0) == (longest > 0)).all()


def test_a_row_moves_along_its_feature_only() -> None:
    w, features = read_only(np.zeros(5)), np.array([1, 4])
    np.testing.assert_array_equal(along(w, features, np.array([0.5, -2.0])), [[0, 0.5, 0, 0, 0], [0, 0, 0, 0, -2.0]])


def test_corrections_follow_the_miss_and_ignore_what_is_not_known() -> None:
    missed = np.array([1.0, -1.0, 0.0, np.nan])
    further = correction(missed)
    assert further[0] >= 1.0
    assert -1.0 <= further[1] < 0.0
    assert further[2] == further[3] == 0.0


def test_bounded_scores_have_differences() -> None:
    scores = bounded(np.array([[np.inf, -np.inf, 2.0]]))
    assert np.isfinite(scores).all()
    assert scores[0, 2] == 2.0


def test_the_penalty_decides_between_equal_margins() -> None:
    """Where any of two features will do, the stronger one does: a dense start becomes sparse under l1 alone."""

    def either(batch: Rows) -> Rows:
        return np.column_stack([np.ones(len(batch)), 4.0 * batch[:, 0] + 1.0 * batch[:, 1]])

    goal = replace(GOAL, penalty=ElasticNet(0.5, 0.0))
    end, _ = refined(either, begun(either, np.full(D, 0.5), goal), 600, goal=goal)
    assert end.valid
    assert np.flatnonzero(np.abs(end.w) > 1e-6).tolist() == [0]
    assert end.w[0] == pytest.approx(0.25, rel=0.01)
