"""One descent: it keeps to its queries, knows its best point, goes on where it was, and says why it ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Affine, Curved
from tests.support.search_driver import Rows, conduct, labelled, progress_of
from zomirror.contrast.progress import Progress
from zomirror.contrast.search.margin_descent import Course
from zomirror.result import Status

D = 10
X0 = np.linspace(0.2, 0.8, D)
MODEL = Curved.draw(D, seed=2)
PAPER = zm.methods.zo_ada_expmd(batch_size=15)
OPTIONS: dict[str, dict[str, Any]] = {
    "PN": {"signed": True},
    "PP": {"kind": "PP"},
    "softplus": {"signed": True, "loss": "softplus"},
    "method": {"signed": True, "method": PAPER},
    "radius": {"signed": True, "radius": 0.2},
}


def under_way(model: Any = MODEL, **options: Any) -> Progress:
    return labelled(progress_of(X0, **({"budget": 1_000} | options)), model)


@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("allowed", [0, 1, 15, 40, 300])
def test_it_keeps_to_its_queries(case: str, allowed: int) -> None:
    progress = under_way(**OPTIONS[case])
    course = Course(progress, progress.place.start)
    status, rows = conduct(course.run(allowed), MODEL)
    assert rows == progress.used - 1 <= allowed
    assert status in (Status.BUDGET, Status.STALLED)


@pytest.mark.parametrize("case", OPTIONS)
def test_its_best_is_the_best_iterate_and_is_inside_the_box(case: str) -> None:
    progress = under_way(**OPTIONS[case])
    start = progress.place.start
    start.flags.writeable = False
    course = Course(progress, start)
    conduct(course.run(400), MODEL)
    assert course.best is not None
    assert course.valid is course.best.valid
    w, box = course.best.w, progress.place.box
    assert ((w >= box.lower) & (w <= box.upper)).all()
    margin = float(progress.margins(MODEL(progress.place.inputs(w[None])))[0])
    assert progress.goal.candidate(w, margin).fun == pytest.approx(course.best.fun, rel=1e-12)
    history = progress.history()
    valid = history.f == 0  # the hinge of a negative margin, as kappa = 0
    assert course.valid == valid.any()
    assert course.best.fun == (history.fun[valid].min() if course.valid else history.fun[np.argmin(history.f)])
    assert not course.best.better_than(progress.best)


def test_a_best_that_is_given_is_never_lost() -> None:
    progress = under_way(signed=True)
    given = progress.goal.candidate(np.zeros(D), -1.0)
    course = Course(progress, progress.place.start, given)
    conduct(course.run(200), MODEL)
    assert course.best is given, "nothing is less than F = 0 at no change"


def test_while_nothing_is_valid_it_may_be_given_less() -> None:
    def never(batch: Rows) -> Rows:
        return np.column_stack([np.full(len(batch), 5.0), batch.sum(axis=1) / D])

    progress = under_way(never, signed=True)
    status, rows = conduct(Course(progress, progress.place.start).run(400, 100), never)
    assert status is Status.BUDGET
    assert rows <= 100


@pytest.mark.parametrize("method", [None, PAPER], ids=["recommended", "paper"])
def test_run_twice_is_run_once(method: Any) -> None:
    """What it asks does not depend on where it was interrupted."""
    histories = []
    for parts in ([400], [100, 100, 200]):
        progress = under_way(signed=True, method=method)
        course = Course(progress, progress.place.start)
        for part in parts:
            conduct(course.run(part), MODEL)
        histories.append(progress.history().fun.tolist())
    count = min(map(len, histories))
    assert count >= 5
    assert histories[0][:count] == histories[1][:count]


def test_where_it_no_longer_falls_it_is_stalled() -> None:
    """Valid everywhere, by kappa, and nothing is penalised: nothing can be gained, and most queries are left."""

    def always(batch: Rows) -> Rows:
        return np.column_stack([np.zeros(len(batch)), np.ones(len(batch))])

    progress = progress_of(X0, signed=True, budget=2_000, l1=0.0, l2=0.0, kappa=1.0, label=0)
    status, rows = conduct(Course(progress, progress.place.start).run(2_000), always)
    assert status is Status.STALLED
    assert rows < 1_000


def test_scores_that_are_not_finite_end_it_with_a_word() -> None:
    progress = under_way(signed=True)
    status, _ = conduct(Course(progress, progress.place.start).run(300), lambda batch: np.full((len(batch), 3), np.nan))
    assert status is Status.NONFINITE
    assert progress.note


def test_weaker_penalties_lead_further_beyond_the_boundary() -> None:
    model = Affine(np.array([np.zeros(D), np.ones(D)]), np.array([8.0, 0.0]))
    margins = []
    for factor, beyond in ((1.0, 0.0), (0.1, 0.5)):
        progress = under_way(model, signed=True)
        course = Course(progress, progress.place.start, factor=factor, beyond=beyond)
        conduct(course.run(900), model)
        margins.append(progress.history().f[-1])
    assert margins[1] <= margins[0] + 1e-9
