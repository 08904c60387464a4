"""Several starts for a pertinent negative, which has many local minima: a short descent from each, then refinement.

The descents are short because the refinement makes better use of the queries.
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
"""Starts of a PN, as fractions of the way from x0 to the paper's start, the centre of the decision set. Descents from
far away meet other classes than descents from near x0, and any of these classes may be the nearest."""
SHORT, SHORTEST = 0.03, 60
"""Each descent has 3 % of the budget, and at least 60 queries."""
EACH_START = 2.5
"""After its descent a start needs 2.5 queries per free feature for the refinement."""
JUMPY = 3
"""Piecewise constant scores (trees) need 3 times the queries for several starts, as refinement helps them less."""
WITHOUT = 4
"""While nothing is valid, a start may use a quarter of the remaining queries; the rest is for other stages."""


def starts_of(progress: Progress) -> list[Array]:
    """The paper's start; for a PN by the recommended method all of STARTS, or the first if the budget is small."""
    place, options = progress.place, progress.options
    if place.kind == "PP" or options.method is not None:
        return [place.start]
    affordable = progress.left >= _each_start(progress) * (1 if progress.radius is None else JUMPY)
    parts = STARTS if affordable else STARTS[:1]
    return [place.box.project(place.start * place.start.dtype.type(part)) for part in parts]


def from_each(
    progress: Progress, starts: list[Array], last: int
) -> Generator[Request, Answer, tuple[list[Candidate], Status]]:
    """Descend and refine from each start while queries last; return the valid results, the best of which are pruned.

    While nothing is valid, each start leaves most of the queries for the next ones and for other stages.
    """
    ends: list[Candidate] = []
    for i, start in enumerate(starts):
        left = last - progress.used
        if i and (left if ends else left // WITHOUT) < _each_start(progress):
            break
        if any(np.array_equal(start, other) for other in starts[:i]):
            continue  # the starts coincide where x0 is the centre or the bounds are infinite
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
