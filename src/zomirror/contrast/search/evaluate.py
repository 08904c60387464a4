"""Query points for their scores or margins, and record every batch.

Each batch adds an entry to the history, is shown to the callback, and updates the best point so far. A search that
fails or is stopped therefore still has its best point.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.progress import Progress
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request
from zomirror.methods.query import Query, Segment
from zomirror.numerics.arrays import Array

Asking = Generator[Request, Answer, NDArray[np.float64]]
T = TypeVar("T")


def ask_scores(progress: Progress, points: list[Array]) -> Asking:
    """All scores at the points."""
    scores = yield Request(_query(points), progress.kept_scores, progress.place.inputs)
    progress.used += len(points)
    return scores


def ask_margins(progress: Progress, points: list[Array]) -> Asking:
    """The margins at the points."""
    margins = yield Request(_query(points), progress.kept_margins, progress.place.inputs)
    progress.used += len(points)
    return margins


def driven(
    progress: Progress,
    steps: Generator[list[Array], NDArray[np.float64], T],
    ask: Callable[[Progress, list[Array]], Asking],
) -> Generator[Request, Answer, T]:
    """Run the generator `steps`, query each batch of points that it yields, and return its value."""
    try:
        points = next(steps)
        while True:
            reply = yield from ask(progress, points)
            _watch(progress, points, reply)
            points = steps.send(reply)
    except StopIteration as stop:
        end: T = stop.value
        return end


def _watch(progress: Progress, points: list[Array], reply: NDArray[np.float64]) -> None:
    """Record a batch: all its valid points, or the one with the least margin."""
    margins = reply if reply.ndim == 1 else progress.margins(reply)
    valid = np.flatnonzero(margins < -progress.goal.floor)
    rows = valid if valid.size else np.argsort(margins, kind="stable")[:1]  # NaN comes last
    seen = [progress.consider(points[i], float(margins[i])) for i in rows]
    progress.measured(min(seen, key=lambda one: (not one.valid, one.fun)))


def _query(points: list[Array]) -> Query:
    return Query(tuple(Segment(w, 1) for w in points))
