"""Several starts for a pertinent negative, which has many local optima: a short descent from each, finished at once.

Each is as short as it is because local linear models do more with the queries that are left.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zomirror.contrast.candidate import Candidate
from zomirror.contrast.progress import Progress
from zomirror.contrast.search.finishing import FINISH_SHARE, POLISH_SHARE, finish, near, pruned
from zomirror.contrast.search.margin_descent import Course
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request
from zomirror.numerics.arrays import Array
from zomirror.result import Status

STARTS = (0.25, 1.0, 0.5, 0.1)
"""Where the descents for a PN begin, as parts of the way from x0 to the paper's start, the centre of the decision set:
from there on the way in they meet other classes than from near x0, and any may be the nearest one."""
SHORT, SHORTEST = 0.03, 60
"""The part of the budget that each of them has, and at least so many queries: refining does more with the others."""
EACH_START = 2.5
"""A start needs so many queries for each free feature."""
JUMPY = 3
"""Of scores that jump, which refining does less with, the starts need so many times as many in all."""
WITHOUT = 4
"""While nothing is valid, a start may use one part in so many of what is left: there is more that can be tried."""


def starts_of(progress: Progress) -> list[Array]:
    """Where to begin: the paper's start, for a PN by the recommended method several, if there are queries for one."""
    place, options = progress.place, progress.options
    if place.kind == "PP" or options.method is not None:
        return [place.start]
    affordable = progress.left >= _each_start(progress) * (1 if progress.radius is None else JUMPY)
    parts = STARTS if affordable else STARTS[:1]
    return [place.box.project(place.start * place.start.dtype.type(part)) for part in parts]


def from_each(
    progress: Progress, starts: list[Array], last: int
) -> Generator[Request, Answer, tuple[list[Candidate], Status]]:
    """The valid ends of short descents from the starts, as many as there are queries for, the best of them thinned.

    While there is none, each leaves most queries for those that follow and for what else can be tried.
    """
    ends: list[Candidate] = []
    for i, start in enumerate(starts):
        left = last - progress.used
        if i and (left if ends else left // WITHOUT) < _each_start(progress):
            break
        if any(np.array_equal(start, other) for other in starts[:i]):
            continue  # parts of nothing: x0 is the centre, or the bounds are open
        course = Course(progress, start)
        status = yield from course.run(_short(progress))
        if status is Status.NONFINITE:
            return ends, status
        allowed = last - progress.used - int(POLISH_SHARE * FINISH_SHARE * progress.options.budget)
        bar = min((end.fun for end in ends), default=np.inf)
        unless_valid = None if ends else (last - progress.used) // WITHOUT
        end = yield from finish(progress, course.best, allowed, bar=bar, unless_valid=unless_valid)
        ends += [end] if end is not None and end.valid else []
    for end in sorted(ends, key=lambda end: end.fun):
        if progress.best is None or near(progress.goal, end.fun, progress.best.fun):
            yield from pruned(progress, end, last - progress.used)
    return ends, Status.BUDGET


def _each_start(progress: Progress) -> float:
    return _short(progress) + EACH_START * progress.place.free


def _short(progress: Progress) -> int:
    return max(SHORTEST, int(SHORT * progress.options.budget))
