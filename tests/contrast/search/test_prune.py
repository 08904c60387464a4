"""Thinning: fewer features and no larger F, on the features of the start, within what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import zomirror as zm
from tests.support.contrast_models import Curved
from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.search.linear_model import Linear
from zomirror.contrast.search.local_refinement import Pull
from zomirror.contrast.search.prune import thin

D = 40
Rows = NDArray[Any]
GOAL = Goal(zm.methods.ElasticNet(0.1, 0.1), 0.0)
PULL = Pull(0, kept=False)
BOX = zm.methods.Box(0.0, 1.0)
SLOPES = np.random.default_rng(3).uniform(0.2, 1.0, D)


def straight(points: Rows) -> Rows:
    """Two classes, the second of which gains with every feature."""
    gain = points @ SLOPES
    return np.stack([np.full(len(points), 3.0), gain], axis=1)


def bent(points: Rows) -> Rows:
    """The same, but features get in one another's way."""
    gain = points @ SLOPES
    return np.stack([np.full(len(points), 2.0), gain - 0.04 * gain**2 + 0.1 * np.sin(3 * points).sum(axis=1)], axis=1)


def begun(model: Callable[[Rows], Rows], w: Rows) -> Candidate:
    return GOAL.candidate(w, float(PULL.margins(model(w[None]))[0]))


def thinned(
    model: Callable[[Rows], Rows],
    start: Candidate,
    allowed: int = 2_000,
    box: zm.methods.Box = BOX,
    goal: Goal = GOAL,
    pull: Pull = PULL,
) -> tuple[Candidate, list[Rows]]:
    """The end, and all points that were asked."""
    steps, asked = thin(start, goal, box, pull, allowed), []
    try:
        points = next(steps)
        while True:
            asked += points
            points = steps.send(model(np.stack(points)))
    except StopIteration as stop:
        end: Candidate = stop.value
        return end, asked


@pytest.mark.parametrize("model", [straight, bent])
def test_the_faint_go_and_f_falls(model: Callable[[Rows], Rows]) -> None:
    start = begun(model, np.linspace(0.02, 0.5, D))
    end, asked = thinned(model, start)
    assert end.valid
    assert begun(model, end.w).fun == end.fun < 0.9 * start.fun
    assert np.count_nonzero(end.w) < D / 2
    assert all(((point >= 0) & (point <= 1)).all() for point in asked)


def test_of_a_linear_model_the_end_is_the_least_on_all_features() -> None:
    end, _ = thinned(straight, begun(straight, np.full(D, 0.3)))
    exact = Linear(-SLOPES[None], np.array([3.0]), np.zeros(D), np.ones(D), GOAL.penalty, 0.0).solve()
    assert end.fun <= 1.01 * begun(straight, exact * (1 + 1e-9)).fun


@pytest.mark.parametrize("allowed", [0, 1, 2, 40, 41, 82, 83, 150, 400])
def test_it_asks_no_more_than_is_allowed(allowed: int) -> None:
    start = begun(bent, np.full(D, 0.3))
    end, asked = thinned(bent, start, allowed)
    assert len(asked) <= allowed
    assert end is start or end.better_than(start)


def test_features_without_room_or_use_stay_as_they_are() -> None:
    w = np.full(D, 0.3)
    w[:5] = 0.0
    lower, upper = np.zeros(D), np.ones(D)
    lower[5:9] = upper[5:9] = 0.3
    end, asked = thinned(straight, begun(straight, w), box=zm.methods.Box(lower, upper))
    assert all((point[:5] == 0).all() and (point[5:9] == 0.3).all() for point in asked)
    assert np.count_nonzero(end.w) < D - 5


def test_scores_that_are_not_finite_end_it() -> None:
    def broken(points: Rows) -> Rows:
        scores = straight(points)
        scores[1:] = np.nan
        return scores

    start = begun(straight, np.full(D, 0.3))
    end, asked = thinned(broken, start)
    assert end is start
    assert len(asked) == 1 + D


@pytest.mark.parametrize("kappa", [0.0, 3.0])
def test_an_explanation_cannot_be_thinned_further_also_where_f_is_negative(kappa: float) -> None:
    model = Curved.draw(24)
    for x0 in np.random.default_rng(4).uniform(0.1, 0.9, size=(2, 24)):
        e = zm.explain(model, x0, signed=True, kappa=kappa, budget=2_000, rng=0)
        goal, pull = Goal(zm.methods.ElasticNet(0.1, 0.15), kappa), Pull(e.label, kept=False)
        start, box = goal.candidate(e.x, e.margin), zm.methods.Box(-x0, 1 - x0)
        end, _ = thinned(lambda w, x0=x0: model(x0 + w), start, 1_000, box, goal=goal, pull=pull)  # type: ignore[misc]
        assert end.fun > e.objective - 0.01 * (e.objective + kappa)
