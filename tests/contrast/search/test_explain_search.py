"""The whole search for one explanation, driven by hand: its budget, its label, what it refuses, and how it ends."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Affine, Counted, Curved, label_of
from tests.support.search_driver import Rows, conduct, progress_of
from zomirror.contrast.candidate import Candidate
from zomirror.contrast.progress import Found, Progress
from zomirror.contrast.search.explain_search import search
from zomirror.errors import ArgumentError
from zomirror.result import Status

D = 10
X0 = np.linspace(0.2, 0.8, D)
MODEL = Curved.draw(D, seed=2)
NEVER = Affine(np.zeros((2, D)), np.array([1.0, 0.0]))
OPTIONS: dict[str, dict[str, Any]] = {
    "PN": {"signed": True},
    "additive PN": {"signed": False},
    "PP": {"kind": "PP"},
    "levels": {"signed": True, "search": 3},
    "levels of a PP": {"kind": "PP", "search": 2},
    "softplus": {"signed": True, "loss": "softplus", "kappa": 0.3},
    "method": {"signed": True, "method": zm.methods.zo_ada_expmd(batch_size=20)},
    "radius": {"signed": True, "radius": 0.1},
}


def searched(model: Any = MODEL, x0: Any = X0, **options: Any) -> tuple[Found, int, Progress]:
    progress = progress_of(x0, **options)
    found, rows = conduct(search(progress), model)
    return found, rows, progress


@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize(
    ("model", "budget"),
    [(MODEL, 100), (MODEL, 333), (MODEL, 900), (NEVER, 251)],
    ids=["curved-100", "curved-333", "curved-900", "constant-251"],
)
def test_it_keeps_to_its_budget_and_tells_the_truth(case: str, model: Any, budget: int) -> None:
    found, rows, progress = searched(model, **OPTIONS[case], budget=budget)
    assert rows == progress.used <= budget
    setting, best = progress.place, found.best
    assert ((best.w >= setting.box.lower) & (best.w <= setting.box.upper)).all()
    assert found.label == label_of(model, X0)
    np.testing.assert_array_equal(found.scores_before, model(X0[None])[0])
    scores = model(setting.inputs(best.w[None]))
    np.testing.assert_array_equal(found.scores_after, scores[0])
    again = progress.goal.candidate(best.w, float(progress.margins(scores)[0]))
    assert again.valid is best.valid
    assert again.fun == pytest.approx(best.fun, rel=1e-12)
    assert (np.diff(found.history.nfev) > 0).all()


@pytest.mark.parametrize("case", OPTIONS)
def test_the_same_seed_finds_the_same(case: str) -> None:
    first, second = (searched(**OPTIONS[case], budget=400, seed=3)[0] for _ in range(2))
    assert np.array_equal(first.best.w, second.best.w)
    assert first.history.fun.tobytes() == second.history.fun.tobytes()


@pytest.mark.parametrize("kind", ["PN", "PP"])
@pytest.mark.parametrize("budget", [150, 300, 1_000])
def test_no_valid_entry_of_the_history_is_better_than_what_is_returned(kind: str, budget: int) -> None:
    found, _, progress = searched(kind=kind, signed=kind == "PN", budget=budget, kappa=0.0)
    assert progress.goal.kappa == 0
    valid = found.history.fun[found.history.f == 0]  # the hinge of a negative margin
    assert found.best.valid
    assert found.best.fun <= valid.min()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": 3}, "expected label in 0..2, got 3"),
        ({"target": 7}, "expected target in 0..2, got 7"),
        ({"target": label_of(MODEL, X0)}, "expected target other than"),
        ({"class_names": ["a", "b"]}, "expected 3 class_names, got 2"),
    ],
)
def test_what_does_not_fit_the_model_is_refused_after_one_query(options: dict[str, Any], words: str) -> None:
    model = Counted(MODEL)
    with pytest.raises(ArgumentError, match=words):
        searched(model, signed=True, budget=300, **options)
    assert model.rows == 1


def test_scores_of_x0_that_are_not_numbers_end_it_at_once() -> None:
    found, rows, _ = searched(lambda batch: np.full((len(batch), 7), np.nan), signed=True, budget=300)
    assert found.status is Status.NONFINITE
    assert rows == 1
    assert "nan, nan, nan, nan, nan, ..." in found.note
    assert not found.best.valid


def test_an_input_of_another_class_needs_no_change() -> None:
    other = (label_of(MODEL, X0) + 1) % 3
    found, rows, _ = searched(signed=True, budget=300, label=other)
    assert found.status is Status.TARGET
    assert found.best.valid
    assert not found.best.w.any()
    assert rows == 4  # x0, x0 beside another point, and the scores of the result
    assert f"not classified {other}" in found.note


def test_a_baseline_of_the_same_class_is_said() -> None:
    found, _, _ = searched(NEVER, kind="PP", budget=300)
    assert found.status is Status.TARGET
    assert "choose another baseline" in found.note
    surer = Affine(np.array([np.ones(D), np.zeros(D)]), np.array([1.0, 0.0]))
    found, _, progress = searched(surer, kind="PP", budget=600)
    assert "this explains what raises the margin" in found.note
    assert found.best.valid
    assert found.best.margin < -progress.goal.floor < -1.0


def test_a_callback_ends_it_and_the_best_is_asked_once_more() -> None:
    def stop(glimpse: Any) -> None:
        if glimpse.nfev > 100:
            raise StopIteration

    found, rows, progress = searched(signed=True, budget=900, callback=stop)
    assert found.status is Status.CALLBACK
    assert rows == progress.used < 900
    np.testing.assert_array_equal(found.scores_after, MODEL(X0 + found.best.w[None])[0])


def test_of_several_levels_the_sparsest_valid_end_is_chosen() -> None:
    progress = progress_of(X0, signed=True)
    assert not progress.chosen.valid
    assert not progress.chosen.w.any()
    dense, sparse = Candidate(np.ones(D), -1.0, 0.5, valid=True), Candidate(np.eye(D)[0], -1.0, 0.9, valid=True)
    invalid = Candidate(np.zeros(D), 1.0, 0.0, valid=False)
    progress.best = dense
    assert progress.chosen is dense
    progress.ends = [dense, invalid, sparse]
    assert progress.chosen is sparse
    progress.ends = [invalid]
    assert progress.chosen is dense


def test_more_levels_are_not_denser() -> None:
    one, several = (searched(signed=True, budget=1_200, search=levels)[0].best for levels in (1, 4))
    assert one.valid
    assert several.valid
    assert np.count_nonzero(several.w) <= np.count_nonzero(one.w)


@pytest.mark.parametrize("levels", [40, 10**6, 10**12])
def test_levels_that_get_no_queries_are_not_made(levels: int) -> None:
    """A million levels took as long as a million refinements, of which a hundred asked something."""
    started = time.process_time()
    found, rows, progress = searched(signed=True, budget=100, search=levels)
    assert time.process_time() - started < 5.0
    assert rows == progress.used <= 100
    assert len(progress.ends) <= 100
    assert found.status in (Status.BUDGET, Status.STALLED)


def test_scores_that_become_nan_later_end_it_with_what_was_found() -> None:
    def broken(batch: Rows) -> Rows:
        return np.where(np.abs(batch - X0).max(axis=1, keepdims=True) < 1e-9, MODEL(batch), np.nan)

    for options in ({}, {"search": 2}):
        found, rows, progress = searched(broken, signed=True, budget=300, **options)
        assert found.status is Status.NONFINITE
        assert rows == progress.used <= 300
