"""Query points for their scores or margins, and record every batch.

Each batch adds an entry to the history, is shown to the callback, and updates the best point so far. A search that
fails or is stopped therefore still has its best point.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.progress import Progress
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request
from zomirror.methods.query import GivenPoints
from zomirror.numerics.arrays import Array

Asking = Generator[Request, Answer, NDArray[np.float64]]
Points = Sequence[Array] | Array
"""Points as a list of vectors or the rows of an array."""
T = TypeVar("T")


def ask_scores(progress: Progress, points: Points) -> Asking:
    """All scores at the points."""
    scores = yield Request(GivenPoints(np.asarray(points)), progress.kept_scores, progress.place.inputs)
    progress.used += len(points)
    return scores


def ask_margins(progress: Progress, points: Points) -> Asking:
    """The margins at the points."""
    margins = yield Request(GivenPoints(np.asarray(points)), progress.kept_margins, progress.place.inputs)
    progress.used += len(points)
    return margins


def driven(
    progress: Progress,
    steps: Generator[Any, NDArray[np.float64], T],
    ask: Callable[[Progress, Points], Asking],
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


def _watch(progress: Progress, points: Points, reply: NDArray[np.float64]) -> None:
    """Record a batch, and its best point in the history."""
    progress.measured(progress.consider_all(points, reply if reply.ndim == 1 else progress.margins(reply)))
