"""The search for the nearest adversarial input: linear models from x0, then a PN descent if they find nothing.

1. Query the scores of x0.
2. Estimate where the scores change most: cell by cell in a picture, otherwise feature by feature.
3. Walk from x0 across the boundary with local linear models; prune and shrink the result.
4. Spend the rest of the budget on improving the best adversarial point; without one, descend as for a signed PN.
5. Query the best point once more, for all its scores.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zomirror.contrast.progress import Found, Progress
from zomirror.contrast.search.coarse_to_fine import is_picture, look
from zomirror.contrast.search.evaluate import ask_scores, driven
from zomirror.contrast.search.explain_search import conducted, descend
from zomirror.contrast.search.finishing import POLISH_SHARE, finish, pull_of
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request, Search
from zomirror.result import Status

WALK_SHARE = 0.6
"""The walk from x0 may use 60 % of the budget; the rest is for a descent if the walk finds nothing."""
FIRST, MOST_FIRST = 12, 800
"""The coarsest level of a picture has about one cell per 12 features, and at most 800 cells."""
LOOK_SHARE = 0.6
"""Estimating the slopes of the cells may use 60 % of the walk's queries."""
EACH, EACH_SHARE = 100, 0.01
"""Cells queried at each finer level: 100, or 1 % of the budget if that is more."""


def search(progress: Progress) -> Search[Found]:
    """The search for a PN, but valid only where the other class wins by more than kappa."""
    progress.goal = replace(progress.goal, floor=progress.goal.kappa)
    return (yield from conducted(progress, _nearest))


def _nearest(progress: Progress) -> Generator[Request, Answer, Status]:
    # A method given by the caller always descends. Piecewise constant scores (trees) have no slopes to walk along.
    walked = Status.RUNNING
    if progress.options.method is None and progress.radius is None:
        walked = yield from _walk(progress)
    return walked if walked is not Status.RUNNING else (yield from descend(progress))


def _walk(progress: Progress) -> Generator[Request, Answer, Status]:
    """From x0 to the nearest point beyond the boundary: BUDGET if it found a valid point, else RUNNING."""
    place, pull = progress.place, pull_of(progress)
    origin = progress.goal.candidate(np.zeros_like(place.start), progress.distance)
    share, slopes = int(WALK_SHARE * progress.left), None
    last = progress.used + share
    if is_picture(place.x0.shape):
        first, each = min(MOST_FIRST, place.d // FIRST), max(EACH, int(EACH_SHARE * progress.options.budget))
        sizes = {"first": first, "each": each, "allowed": int(LOOK_SHARE * (last - progress.used))}
        looked = look(origin, progress.scores, place.x0.shape, progress.goal, place.box, pull, **sizes)
        slopes = yield from driven(progress, looked, ask_scores)
    ended = yield from finish(progress, origin, last - progress.used, slopes)
    best = progress.best
    if best is None or not best.valid:
        return Status.RUNNING
    if ended is None or not ended.valid or last - progress.used <= POLISH_SHARE * share:
        # The walk used up its share; since a valid point is known, no descent needs the rest.
        yield from finish(progress, best, progress.left, slopes)
    return Status.BUDGET
