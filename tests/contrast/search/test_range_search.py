"""Where no slope leads to another class: long steps find one, within what is allowed, and nothing is given up early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import zomirror as zm
from tests.support.contrast_models import Counted
from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.search.range_search import reach
from zomirror.problem import Box, ElasticNet

GOAL = Goal(ElasticNet(0.1, 0.1), 0.0)


def reached(fun: Any, w: Any, box: Box, allowed: int, seed: int = 0) -> tuple[Candidate, int]:
    """What reach returns when the margins are those of `fun`, and how many it asked."""
    w = np.asarray(w, dtype=np.float64)
    steps, asked = reach(GOAL.candidate(w, float(fun(w[None])[0])), GOAL, box, allowed, seed), 0
    try:
        points = next(steps)
        while True:
            batch = np.array(points)
            assert ((batch >= box.lower) & (batch <= box.upper)).all()
            asked += len(batch)
            points = steps.send(fun(batch))
    except StopIteration as stop:
        return stop.value, asked


def plateau(batch: NDArray[Any]) -> NDArray[np.float64]:
    """Flat but in a far corner: valid where feature 2 is past 0.9 and feature 5 below -0.9."""
    return 1.0 - 0.7 * (batch[:, 2] > 0.9) - 0.7 * (batch[:, 5] < -0.9)


def valley(batch: NDArray[Any]) -> NDArray[np.float64]:
    """Either of two features alone makes it worse, both together make it valid."""
    first, second = batch[:, 0] > 0.5, batch[:, 1] > 0.5
    return np.where(first & second, -1.0, np.where(first | second, 2.0, 1.0))


@pytest.mark.parametrize("fun", [plateau, valley])
def test_it_finds_what_is_far_from_every_slope(fun: Any) -> None:
    found, asked = reached(fun, np.zeros(8), Box(np.full(8, -1.0), np.full(8, 1.0)), 2_000)
    assert found.valid
    assert fun(found.w[None])[0] == found.margin < 0
    assert asked <= 2_000


@pytest.mark.parametrize("allowed", [1, 2, 7, 100, 1_001])
def test_it_asks_all_that_is_allowed_and_no_more_where_nothing_is_valid(allowed: int) -> None:
    found, asked = reached(lambda batch: 1.0 + batch.sum(axis=1), np.full(4, 0.5), Box(0.0, 1.0), allowed)
    assert asked == allowed
    assert not found.valid
    assert found.margin <= 3.0


def test_open_sides_and_fixed_features() -> None:
    box = Box(np.array([-np.inf, 0.0, 0.3]), np.array([np.inf, 1.0, 0.3]))
    found, _ = reached(lambda batch: 3.0 - batch[:, 0], np.array([0.0, 0.0, 0.3]), box, 500)
    assert found.valid
    assert np.isfinite(found.w).all()
    assert found.w[2] == 0.3


def test_many_features_are_asked_in_part() -> None:
    """A look along all of them would cost more than there is."""

    def fun(batch: NDArray[Any]) -> NDArray[np.float64]:
        margins: NDArray[np.float64] = 40.0 - batch.sum(axis=1)
        return margins

    found, asked = reached(fun, np.zeros(300), Box(0.0, 1.0), 400)
    assert found.valid
    assert asked <= 400


def test_the_same_seed_asks_the_same_points() -> None:
    first, second = (reached(valley, np.zeros(6), Box(0.0, 1.0), 900, seed=4)[0] for _ in range(2))
    assert np.array_equal(first.w, second.w)


def steps_far_away(batch: NDArray[Any]) -> NDArray[np.float64]:
    """Two classes; the other one begins where two features are near the ends of their ranges."""
    margin = plateau(2.0 * batch.astype(np.float64) - 1.0)
    return np.stack([margin, np.zeros(len(batch))], axis=1)


@pytest.mark.parametrize("options", [{}, {"search": 3}, {"method": zm.methods.zo_ada_expmd(batch_size=20)}])
def test_a_search_with_nothing_valid_looks_at_the_far_ends(options: dict[str, Any]) -> None:
    model = Counted(steps_far_away)
    e = zm.explain(model, np.full(8, 0.5), signed=True, budget=3_000, rng=0, **options)
    assert e.valid
    assert e.nnz == 2
    assert np.argmax(steps_far_away(e.perturbed[None])) == 1
    assert e.nfev == model.rows <= 3_000


@pytest.mark.parametrize(("place", "least"), [(0.4, 1_800), (0.5, 1_700)], ids=["four starts", "one start, x0"])
def test_a_search_does_not_give_up_with_queries_unspent(place: float, least: int) -> None:
    model = Counted(lambda batch: np.stack([1.0 + batch.sum(axis=1), np.zeros(len(batch))], axis=1))
    e = zm.explain(model, np.full(8, place), signed=True, budget=2_000, rng=0)
    assert not e.valid
    assert e.status is zm.Status.NOT_FOUND
    assert least <= e.nfev == model.rows <= 2_000, "but for what is kept to refine what the last look finds"


def rising(batch: NDArray[Any]) -> NDArray[np.float64]:
    """Two classes; the other one comes nearer along a curved valley and is never met."""
    z = 4.0 * batch.astype(np.float64) - 2.0
    margin = 1.0 + (10 * (z[:, 1:] - z[:, :-1] ** 2) ** 2 + (1 - z[:, :-1]) ** 2).sum(axis=1)
    return np.stack([margin, np.zeros(len(batch))], axis=1)


def rising_to_an_edge(batch: NDArray[Any]) -> NDArray[np.float64]:
    """The same, and the other class begins at the end of one feature's range, to which no slope leads."""
    return np.where(batch[:, 3:4] > 0.98, [[0.0, 1.0]], rising(batch))


@pytest.mark.parametrize("d", [1, 2, 12, 40])
@pytest.mark.parametrize("budget", [110, 200, 301, 600])
def test_a_search_without_a_valid_point_keeps_to_its_budget_whatever_may_be_sent(d: int, budget: int) -> None:
    model = Counted(rising)
    e = zm.explain(model, np.full(d, 0.3), signed=True, budget=budget, max_sent=2 * budget, rng=0)
    assert e.status is zm.Status.NOT_FOUND
    assert model.rows == e.nfev <= budget
    alone = zm.explain(rising, np.full(d, 0.3), signed=True, budget=budget, rng=0)
    assert alone.contrast_label == alone.label == 0, "there was a query left for all scores of what came nearest"


def test_slopes_that_lead_nowhere_leave_queries_for_the_far_ends() -> None:
    for seed in range(6):
        x0 = np.random.default_rng(seed).uniform(0.0, 0.5, 12)
        assert zm.explain(rising_to_an_edge, x0, signed=True, budget=300, rng=seed).valid
