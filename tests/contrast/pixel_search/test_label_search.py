"""Attacks on a model that names only the class: nothing but the class is used, and every proposal is an improvement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.contrast.pixel_search.test_corner_probe import GOAL, PIXELS, PLACE, two_needed
from tests.contrast.pixel_search.test_few_pixels import BENT, COLOURS, DIGIT, pixels_of
from tests.support.contrast_models import Counted, label_of
from tests.support.search_driver import Rows, drive, read_only
from zomirror import models
from zomirror.contrast.candidate import Goal
from zomirror.contrast.pixel_search.label_search import LabelSearch
from zomirror.numerics.random import Draws, key_of
from zomirror.problem import ElasticNet

GOALS = {"pixels": GOAL, "l1": Goal(ElasticNet(1.0, 0.0), 0.0)}


@pytest.mark.parametrize("name", GOALS)
def test_every_proposal_is_better_than_the_best_before_it_if_it_is_valid(name: str) -> None:
    goal = GOALS[name]
    w = PIXELS.painted(np.zeros(100), np.arange(50), PIXELS.corners(np.arange(50), Draws(key_of(0))))
    start, best = goal.candidate(read_only(w), -1.0), goal.candidate(w, -1.0)

    def signs(batch: Rows) -> Rows:
        nonlocal best
        margins = np.asarray(np.sign(two_needed(batch)) + 0.5 * (two_needed(batch) == 0))
        found = [goal.candidate(one, float(margin)) for one, margin in zip(batch, margins, strict=True)]
        assert all(goal.candidate(one, -1.0).better_than(best) for one in batch)
        for one in found:
            best = one if one.valid and one.better_than(best) else best
        return margins

    found, asked = drive(LabelSearch(PLACE, PIXELS, goal, Draws(key_of(0))).run(start, 700), signs, PLACE.box)
    assert 600 < len(asked) <= 700
    assert found.valid
    assert (found.fun, found.count) == (best.fun, best.count)
    assert np.flatnonzero(found.w).tolist() == [7, 42]
    assert found.fun < 0.6, "two changes of 0.2 would do"


@pytest.mark.parametrize("l0", [None, "least", 9])
@pytest.mark.parametrize("budget", [100, 600])
def test_scores_are_not_used(l0: Any, budget: int) -> None:
    def squeezed(batch: Any) -> Any:
        return np.exp(3 * BENT(batch)) - 7

    model = Counted(BENT)
    one = zm.attack(model, COLOURS, scores="label", l0=l0, budget=budget, rng=0)
    other = zm.attack(squeezed, COLOURS, scores="label", l0=l0, budget=budget, rng=0)
    assert one.to_json() == other.to_json()
    assert model.rows == one.nfev <= budget
    if one.valid:
        assert label_of(BENT, one.perturbed) == one.contrast_label != one.label
        np.testing.assert_allclose(one.perturbed * 255, np.rint(one.perturbed * 255), atol=1e-9)
        assert l0 != 9 or pixels_of(one) <= 9
    assert one.valid or budget == 100 or l0 == 9


def test_a_function_may_return_the_class_alone() -> None:
    net = zm.as_classifier(models.path("lenet"))
    names = [str(i) for i in range(10)]
    a = zm.attack(lambda batch: net(batch).argmax(axis=1), DIGIT, scores="label", class_names=names, budget=500)
    b = zm.attack(models.path("lenet"), DIGIT, scores="label", class_names=names, budget=500)
    assert a.valid
    np.testing.assert_array_equal(a.x, b.x)
    many = zm.attack_many(net, [DIGIT] * 2, scores="label", budget=200, rng=[1, 2], progress=False, workers=2)
    alone = zm.attack(net, DIGIT, scores="label", budget=200, rng=2)
    assert many[1].to_json() == alone.to_json()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scores": "none"}, "scores"),
        ({"scores": "label", "kappa": 0.5}, "no kappa with scores='label'"),
        ({"scores": "label", "method": zm.methods.zo_ada_expmd()}, "no method with scores"),
        ({"scores": "label", "bounds": (-np.inf, np.inf), "scale": 1.0}, "finite bounds with scores='label'"),
    ],
)
def test_what_a_class_does_not_allow_is_refused(options: Any, says: str) -> None:
    model = Counted(BENT)
    with pytest.raises(zm.errors.ArgumentError, match=says):
        zm.attack(model, COLOURS, **options)
    assert model.rows == 0
