"""The search of an image beyond the boundary: within its queries, legal, near the optimum, and the same bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Affine, Curved, label_of
from tests.support.search_driver import Rows, drive, progress_of
from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.search.boundary.boundary_search import BoundarySearch, cheapest
from zomirror.contrast.search.finishing import pull_of
from zomirror.features.vector import VectorPlace
from zomirror.numerics import kernels
from zomirror.problem import ElasticNet

SHAPE = (1, 10, 10)
D = 100
X0 = np.random.default_rng(0).random(SHAPE)
BENT = Curved.draw(D, classes=4, seed=1)
STRAIGHT = Affine.draw(D, 3, seed=4, size=1.0)
KINDS: dict[str, dict[str, Any]] = {"PN": {}, "signed PN": {"signed": True}, "PP": {"kind": "PP"}}


def beyond(
    model: Any, allowed: int, most: int | None = None, goal: Goal | None = None, **options: Any
) -> tuple[Candidate | None, Rows, BoundarySearch]:
    progress = progress_of(X0, **options)
    progress.label = label_of(model, X0)
    place = progress.place
    assert isinstance(place, VectorPlace)
    search = BoundarySearch(place, goal or progress.goal, pull_of(progress), allowed, allowed if most is None else most)
    found, asked = drive(search.run(), lambda w: model(place.inputs(w)), place.box)
    return found, asked, search


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("allowed", [1, 9, 60, 200, 700])
def test_it_keeps_to_its_queries_and_returns_the_best_of_them(kind: str, allowed: int) -> None:
    found, asked, search = beyond(BENT, allowed, **KINDS[kind])
    assert len(asked) <= allowed
    assert found is not None
    place, goal, pull = search.place, search.goal, search.pull
    margins = pull.margins(BENT(place.inputs(asked)))
    every = [goal.candidate(w, float(margin)) for w, margin in zip(asked, margins, strict=True)]
    valid = [one.fun for one in every if one.valid]
    assert found.valid is bool(valid)
    assert found.fun == (min(valid) if valid else found.fun)


@pytest.mark.parametrize("kind", KINDS)
def test_linear_scores_are_solved_to_within_two_percent(kind: str) -> None:
    found, _, search = beyond(STRAIGHT, 900, **KINDS[kind])
    place, own = search.place, search.pull.own
    sign = 1.0 if search.pull.kept else -1.0
    scores = STRAIGHT(place.inputs(np.zeros((1, D))))[0]
    rivals = [[i for i in range(3) if i != own]] if search.pull.kept else [[i] for i in range(3) if i != own]
    least = []
    for group in rivals:
        slopes = -sign * (STRAIGHT.weights[group] - STRAIGHT.weights[own]) * place.scale
        lower, upper = (np.broadcast_to(side, (1, D)) for side in (place.box.lower, place.box.upper))
        exact = cheapest(slopes[None], sign * (scores[group] - scores[own])[None], lower, upper, search.goal)[0]
        least.append(search.goal.penalty(exact))
    assert found is not None
    assert found.valid
    assert min(least) * (1 - 1e-6) <= found.fun <= 1.02 * min(least)


def test_without_a_valid_point_it_stops_early() -> None:
    never = Affine(np.zeros((2, D)), np.array([1.0, 0.0]))
    found, asked, _ = beyond(never, 150, 900)
    assert found is not None
    assert not found.valid
    assert len(asked) <= 150


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_do_not_break_it(bad: float) -> None:
    def impossible(batch: Rows) -> Rows:
        return np.column_stack([BENT(batch)[:, :3], np.full(len(batch), bad)])

    _, asked, _ = beyond(impossible, 300, **KINDS["signed PN"])
    assert 0 < len(asked) <= 300


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_points_without_the_compiler(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    points = []
    for compiled in (kernels.found(), None):
        monkeypatch.setattr(kernels, "compiled", compiled)
        points.append(beyond(BENT, 150, **KINDS[kind])[1])
    assert points[0].tobytes() == points[1].tobytes()


def test_fixed_features_stay() -> None:
    fixed = np.zeros(SHAPE, bool)
    fixed[:, :5] = True
    for kind in ("PN", "PP"):
        _, asked, search = beyond(BENT, 300, fixed=fixed, **KINDS[kind])
        assert (asked[:, fixed.ravel()] == search.place.box.project(search.place.start)[fixed.ravel()]).all()


def test_a_margin_is_bought_as_long_as_it_is_worth_its_price() -> None:
    """One feature, penalty l1 v: the margin 1 - slope v is worth buying down to -kappa if slope > l1."""
    lower, upper, needed = np.zeros((1, 1)), np.full((1, 1), 100.0), np.ones((1, 1))
    goal = Goal(ElasticNet(0.5, 1e-6), kappa=2.0)
    for slope, margin in ((1.0, -2.0), (0.25, 0.0)):
        v = cheapest(np.full((1, 1, 1), slope), needed, lower, upper, goal)
        assert 1.0 - slope * v[0, 0] == pytest.approx(margin, abs=0.02)
    strict = replace(goal, floor=2.0)
    v = cheapest(np.full((1, 1, 1), 0.25), needed, lower, upper, strict)
    assert 1.0 - 0.25 * v[0, 0] == pytest.approx(-2.0, abs=1e-6)


def test_an_image_is_explained_through_it_and_falls_back_to_a_descent() -> None:
    e = zm.explain(BENT, X0, budget=400, rng=0)
    assert e.valid
    trapped = Affine(np.zeros((2, D)), np.array([1.0, 0.0]))
    e = zm.explain(trapped, X0, budget=400, rng=0)
    assert not e.valid
    assert e.nfev <= 400
