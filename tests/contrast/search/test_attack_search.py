"""The whole search for an adversarial input, driven by hand: its budget, its margin, the nearest point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Affine, Curved, label_of
from tests.support.search_driver import Rows, conduct, progress_of
from zomirror.contrast.progress import Found, Progress
from zomirror.contrast.search.attack_search import search
from zomirror.contrast.search.linear_model import Linear

FLAT, PICTURE = np.linspace(0.2, 0.8, 12), np.random.default_rng(0).uniform(0.2, 0.8, (1, 8, 8))
INPUTS = {"flat": FLAT, "picture": PICTURE}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "kappa": {"kappa": 0.4},
    "method": {"method": zm.methods.zo_ada_expmd(batch_size=20)},
    "radius": {"radius": 0.1},
}


def attacked(model: Any, x0: Rows, **options: Any) -> tuple[Found, int, Progress]:
    progress = progress_of(x0, signed=True, **options)
    found, rows = conduct(search(progress), model)
    return found, rows, progress


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("budget", [100, 101, 250, 900])
def test_it_keeps_to_its_budget_and_tells_the_truth(name: str, case: str, budget: int) -> None:
    x0, options = INPUTS[name], OPTIONS[case]
    model = Curved.draw(x0.size, seed=1)
    found, rows, progress = attacked(model, x0, budget=budget, **options)
    assert rows == progress.used <= budget
    setting, best = progress.place, found.best
    assert ((best.w >= setting.box.lower) & (best.w <= setting.box.upper)).all()
    scores = model(setting.inputs(best.w[None]))
    np.testing.assert_array_equal(found.scores_after, scores[0])
    margin = float(progress.margins(scores)[0])
    assert best.valid is (margin < -options.get("kappa", 0.0)), "adversarial means beyond the boundary by kappa"


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("target", [None, 2])
def test_of_a_linear_model_the_nearest_point_is_found(name: str, target: int | None) -> None:
    """Against the exact minimiser for each class that will do."""
    x0 = INPUTS[name]
    model = Affine.draw(x0.size, 3, seed=4)
    label = label_of(model, x0)
    assert label != 2
    found, _, progress = attacked(model, x0, budget=3_000, target=target)
    x, lower, upper = x0.ravel(), -x0.ravel(), 1 - x0.ravel()
    groups = [[rival] for rival in range(3) if rival != label] if target is None else [[target]]
    least = []
    for [winner] in groups:
        losers = [label] if target is None else [i for i in range(3) if i != winner]
        A = model.weights[losers] - model.weights[winner]
        b = A @ x + model.bias[losers] - model.bias[winner]
        w = Linear(A, b, lower, upper, progress.goal.penalty, 0.0).solve()
        least.append(max(float((A @ w + b).max()), 0.0) + progress.goal.penalty(w))
    assert found.best.valid
    assert found.best.fun <= 1.02 * min(least)


@pytest.mark.parametrize("name", INPUTS)
def test_the_same_seed_finds_the_same(name: str) -> None:
    x0 = INPUTS[name]
    model = Curved.draw(x0.size, seed=1)
    first, second = (attacked(model, x0, budget=400, seed=5)[0] for _ in range(2))
    assert np.array_equal(first.best.w, second.best.w)


def test_where_nothing_is_adversarial_it_says_so_within_its_budget() -> None:
    constant = Affine(np.zeros((2, 12)), np.array([1.0, 0.0]))
    found, rows, _ = attacked(constant, FLAT, budget=400)
    assert not found.best.valid
    assert rows <= 400


def test_where_no_slope_leads_to_it_the_descent_follows() -> None:
    """Flat around x0: linear models of the walk know nothing, and the rest of the budget still finds the corner."""

    def corner(batch: Rows) -> Rows:
        return np.column_stack([np.ones(len(batch)), 2.0 * (batch[:, 3] > 0.95)])

    found, rows, _ = attacked(corner, FLAT, budget=1_500)
    assert found.best.valid
    assert np.flatnonzero(found.best.w).tolist() == [3]
    assert rows <= 1_500
