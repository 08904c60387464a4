"""What follows a descent: no more queries than allowed, valid stays valid, and F never rises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.contrast_models import Affine, Curved
from tests.support.search_driver import GOAL, Rows, conduct, labelled, progress_of
from zomirror.contrast.candidate import Candidate
from zomirror.contrast.progress import Progress
from zomirror.contrast.search.finishing import ended, finish, near, pruned, pull_of, thinned
from zomirror.contrast.search.linear_model import Linear

D = 10
X0 = np.linspace(0.2, 0.8, D)
CURVED = Curved.draw(D, seed=2)
STRAIGHT = Affine(np.array([np.zeros(D), np.linspace(0.5, 1.5, D)]), np.array([6.5, 0.0]))


def under_way(model: Any = CURVED, **options: Any) -> Progress:
    return labelled(progress_of(X0, **({"signed": True, "budget": 2_000} | options)), model)


def seen(progress: Progress, model: Any, w: Any) -> Candidate:
    """The candidate at w, as a descent would have met it."""
    w = progress.place.box.project(np.array(w, dtype=np.float64))
    w.flags.writeable = False
    return progress.consider(w, float(progress.margins(model(progress.place.inputs(w[None])))[0]))


def starts(progress: Progress, model: Any) -> list[Candidate]:
    """Two points of which at least one is valid."""
    random = np.random.default_rng(1)
    box = progress.place.box
    found = [seen(progress, model, w) for w in random.uniform(box.lower, box.upper, (40, D))]
    valid = [one for one in found if one.valid]
    assert valid
    return [valid[0], *(one for one in found[:3] if not one.valid)]


@pytest.mark.parametrize("model", [CURVED, STRAIGHT], ids=["curved", "linear"])
@pytest.mark.parametrize("stage", [finish, thinned])
@pytest.mark.parametrize("allowed", [0, 1, 2, 15, 40, 41, 200, 1_900, 10_000])
def test_a_stage_keeps_to_its_queries_and_never_ends_worse(model: Any, stage: Any, allowed: int) -> None:
    for i in range(len(starts(under_way(model), model))):
        progress = under_way(model)
        start = starts(progress, model)[i]
        end, rows = conduct(stage(progress, start, allowed), model)
        assert rows == progress.used - 1 <= min(allowed, 1_998)
        assert end is start or end.better_than(start)
        assert end.valid or not start.valid
        again = progress.goal.candidate(end.w, float(progress.margins(model(X0 + end.w[None]))[0]))
        assert (again.fun, again.valid) == (end.fun, end.valid)


@pytest.mark.parametrize("allowed", [0, 1, 50, 500])
def test_pruning_keeps_to_its_queries_and_to_the_features_in_use(allowed: int) -> None:
    progress = under_way()
    start = starts(progress, CURVED)[0]
    end, rows = conduct(pruned(progress, start, allowed), CURVED)
    assert rows <= allowed
    assert end.valid
    assert end is start or end.better_than(start)
    assert set(np.flatnonzero(end.w)) <= set(np.flatnonzero(start.w))


def test_a_linear_model_is_finished_at_its_optimum() -> None:
    progress = under_way(STRAIGHT)
    end, _ = conduct(thinned(progress, starts(progress, STRAIGHT)[0], 1_500), STRAIGHT)
    a, b = -STRAIGHT.weights[1], 6.5 - float(STRAIGHT.weights[1] @ X0)
    exact = Linear(a[None], np.array([b]), -X0, 1 - X0, progress.goal.penalty, 0.0).solve()
    assert end is not None
    assert end.valid
    assert end.fun <= 1.01 * progress.goal.penalty(exact)


def test_of_nothing_nothing_is_made() -> None:
    for stage in (finish, thinned):
        end, rows = conduct(stage(under_way(), None, 500), CURVED)
        assert end is None
        assert rows == 0


def test_under_another_goal_the_end_is_its_candidate() -> None:
    """More l1 and less l2: its own F falls, though the search's may rise."""
    progress = under_way()
    stronger = replace(progress.goal, penalty=type(progress.goal.penalty)(0.4, 0.01))
    start = starts(progress, CURVED)[0]
    start = stronger.candidate(start.w, start.margin)
    end, _ = conduct(thinned(progress, start, 800, stronger), CURVED)
    assert end is not None
    assert end.fun == stronger.candidate(end.w, end.margin).fun <= start.fun


def far_corner(batch: Rows) -> Rows:
    """Two classes; the other one begins at the ends of two ranges, and no slope leads to both."""
    inside = (batch[:, 2] > 0.95) & (batch[:, 5] < 0.05)
    return np.column_stack([np.ones(len(batch)) - 0.3 * (batch[:, 2] > 0.95), 2.0 * inside])


def test_while_nothing_is_valid_it_looks_further_away() -> None:
    progress = under_way(far_corner)
    end, rows = conduct(ended(progress, seen(progress, far_corner, np.zeros(D)), 1_500), far_corner)
    assert rows <= 1_499
    assert end is not None
    assert end.valid
    assert np.flatnonzero(end.w).tolist() == [2, 5]


@pytest.mark.parametrize("last", [1, 2, 3, 20, 100, 777])
def test_ending_keeps_to_the_last_query(last: int) -> None:
    def never(batch: Rows) -> Rows:
        return np.column_stack([5.0 + batch.sum(axis=1), np.zeros(len(batch))])

    progress = under_way(never)
    end, _ = conduct(ended(progress, seen(progress, never, np.zeros(D)), last), never)
    assert progress.used <= last
    assert end is not None
    assert not end.valid


def test_near_is_measured_from_the_least_f() -> None:
    goal = replace(GOAL, kappa=2.0)
    assert near(goal, -1.0, -1.0)
    assert near(goal, 5.0, np.inf)
    assert near(goal, -0.8, -1.0)
    assert not near(goal, 0.0, -1.0), "twice as far above -2"


@pytest.mark.parametrize("options", [{}, {"target": 2}, {"kind": "PP", "signed": False}], ids=str)
def test_the_pull_of_a_search_has_its_margins(options: dict[str, Any]) -> None:
    progress = under_way(**options)
    scores = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_array_equal(pull_of(progress).margins(scores), progress.margins(scores))
