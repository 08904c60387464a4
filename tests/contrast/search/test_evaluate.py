"""How a search asks: every row counts, the best point seen is kept, and a callback may end it between two batches."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from tests.support.contrast_models import Affine
from tests.support.search_driver import Rows, conduct, labelled, progress_of
from zomirror.contrast.progress import CallbackStop, Progress
from zomirror.contrast.search.evaluate import ask_margins, ask_scores, driven

MODEL = Affine.draw(6, 3, seed=2)
X0 = np.linspace(0.2, 0.8, 6)


def under_way(**options: Any) -> Progress:
    return labelled(progress_of(X0, signed=True, **options), MODEL)


def inside(progress: Progress, count: int, seed: int = 0) -> list[Rows]:
    box = progress.place.box
    return list(np.random.default_rng(seed).uniform(box.lower, box.upper, (count, 6)))


def test_scores_are_those_of_the_model_at_the_points() -> None:
    progress = under_way()
    points = inside(progress, 5)
    scores, rows = conduct(ask_scores(progress, points), MODEL)
    np.testing.assert_array_equal(scores, MODEL(X0 + np.array(points)))
    assert scores.dtype == np.float64
    assert rows == 5
    assert progress.used == 1 + 5


@pytest.mark.parametrize("options", [{"kind": "PN"}, {"kind": "PP", "signed": False}, {"target": 2}])
def test_margins_are_those_of_the_scores(options: dict[str, Any]) -> None:
    progress = labelled(progress_of(X0, **({"signed": True} | options)), MODEL)
    points = inside(progress, 5)
    margins, rows = conduct(ask_margins(progress, points), MODEL)
    np.testing.assert_array_equal(margins, progress.margins(MODEL(progress.place.inputs(np.array(points)))))
    assert margins.shape == (rows,) == (5,)
    assert progress.used == 1 + 5


def batches(progress: Progress, sizes: tuple[int, ...]) -> Generator[list[Rows], Rows, str]:
    for i, size in enumerate(sizes):
        reply = yield inside(progress, size, seed=i)
        assert len(reply) == size
    return "the end"


@pytest.mark.parametrize("ask", [ask_scores, ask_margins])
def test_the_best_of_all_batches_is_kept_and_each_is_one_entry_of_the_history(ask: Any) -> None:
    progress, sizes = under_way(), (3, 20, 4)
    end, rows = conduct(driven(progress, batches(progress, sizes), ask), MODEL)
    assert end == "the end"
    assert rows == sum(sizes) == progress.used - 1
    everything = np.concatenate([inside(progress, size, seed=i) for i, size in enumerate(sizes)])
    margins = progress.margins(MODEL(X0 + everything))
    candidates = [progress.goal.candidate(w, float(m)) for w, m in zip(everything, margins, strict=True)]
    assert progress.best is not None
    assert not any(one.better_than(progress.best) for one in candidates)
    assert any(np.array_equal(one.w, progress.best.w) for one in candidates)
    assert progress.history().nfev.tolist() == [4, 24, 28]


def test_nothing_to_ask_asks_nothing() -> None:
    progress = under_way()
    end, rows = conduct(driven(progress, batches(progress, ()), ask_scores), MODEL)
    assert (end, rows) == ("the end", 0)
    assert progress.best is None


def test_a_nan_is_never_the_best() -> None:
    progress = under_way()

    def broken(batch: Rows) -> Rows:
        scores = MODEL(batch)
        scores[0] = np.nan
        return scores

    conduct(driven(progress, batches(progress, (3,)), ask_scores), broken)
    assert progress.best is not None
    assert np.isfinite(progress.best.margin)


def test_a_callback_that_stops_ends_it_and_what_was_seen_is_kept() -> None:
    shown = []

    def stop(glimpse: Any) -> None:
        shown.append(glimpse.nfev)
        raise StopIteration

    progress = under_way(callback=stop)
    with pytest.raises(CallbackStop):
        conduct(driven(progress, batches(progress, (3, 3)), ask_scores), MODEL)
    assert shown == [4]
    assert progress.used == 4
    assert progress.best is not None
