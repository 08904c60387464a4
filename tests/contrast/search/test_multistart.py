"""Several starts: where they are, and that together they keep to their queries and end with valid points only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Curved
from tests.support.search_driver import Rows, conduct, labelled, progress_of
from zomirror.contrast.progress import Progress
from zomirror.contrast.search.multistart import from_each, starts_of
from zomirror.result import Status

D = 10
X0 = np.linspace(0.2, 0.8, D)
MODEL = Curved.draw(D, seed=2)


def under_way(model: Any = MODEL, **options: Any) -> Progress:
    return labelled(progress_of(options.pop("x0", X0), **({"signed": True, "budget": 2_000} | options)), model)


def test_a_negative_begins_at_parts_of_the_way_to_the_start_of_the_paper() -> None:
    progress = under_way(signed=False)
    starts = starts_of(progress)
    assert len(starts) > 1
    centre = progress.place.start
    for start in starts:
        assert start.dtype == centre.dtype
        assert ((start >= progress.place.box.lower) & (start <= progress.place.box.upper)).all()
        part = start[0] / centre[0]
        assert 0 < part <= 1
        np.testing.assert_allclose(start, part * centre)


@pytest.mark.parametrize(
    "options",
    [{"kind": "PP", "signed": False}, {"method": zm.methods.zo_ada_expmd(batch_size=20)}],
    ids=["PP", "method"],
)
def test_a_positive_and_a_method_begin_where_the_paper_does(options: dict[str, Any]) -> None:
    progress = under_way(**options)
    [start] = starts_of(progress)
    assert np.array_equal(start, progress.place.start)


def test_few_queries_and_jumps_afford_one_start() -> None:
    many = np.linspace(0.2, 0.8, 200)
    model = Curved.draw(200)
    assert len(starts_of(under_way(model, x0=many, budget=300))) == 1
    assert len(starts_of(under_way(model, x0=many, budget=1_000))) > 1
    assert len(starts_of(under_way(model, x0=many, budget=1_000, radius=0.1))) == 1


@pytest.mark.parametrize("last", [70, 100, 400, 1_900])
@pytest.mark.parametrize("seed", [0, 1])
def test_all_together_keep_to_the_last_query_and_their_ends_are_valid(last: int, seed: int) -> None:
    progress = under_way(seed=seed)
    starts = starts_of(progress)
    for start in starts:
        start.flags.writeable = False
    (ends, status), rows = conduct(from_each(progress, starts, last), MODEL)
    assert rows == progress.used - 1
    assert progress.used <= last
    assert status is Status.BUDGET
    for end in ends:
        again = progress.goal.candidate(end.w, float(progress.margins(MODEL(X0 + end.w[None]))[0]))
        assert again.valid
        assert again.fun == end.fun
        assert not end.better_than(progress.best), "the best of all that was asked is at least as good"
    assert ends or last < 400


def test_starts_that_coincide_are_made_once() -> None:
    """At the centre of signed bounds every start is x0 itself."""
    spent = []
    for count in (1, 4):
        progress = under_way()
        conduct(from_each(progress, [progress.place.start] * count, 1_900), MODEL)
        spent.append(progress.used)
    assert spent[0] == spent[1]


def test_where_nothing_is_valid_most_of_the_queries_are_left() -> None:
    def never(batch: Rows) -> Rows:
        return np.column_stack([5.0 + batch.sum(axis=1), np.zeros(len(batch))])

    progress = under_way(never)
    (ends, _), rows = conduct(from_each(progress, starts_of(progress), 1_900), never)
    assert ends == []
    assert rows < 1_600


def test_scores_that_are_not_finite_end_it() -> None:
    progress = under_way()
    nothing = np.full((1, 3), np.nan)
    (ends, status), _ = conduct(
        from_each(progress, starts_of(progress), 1_900), lambda batch: np.repeat(nothing, len(batch), axis=0)
    )
    assert ends == []
    assert status is Status.NONFINITE
