"""The search for the nearest adversarial input: linear models from x0 on, the descent of a PN where they fail.

1. Ask the label of x0.
2. Look where the scores change most: in a picture whole cells first, else every feature, if that is affordable.
3. Walk to the nearest point beyond the boundary with local linear models, starting at x0; prune and shrink.
4. Go on from the best adversarial point with what is left; if there is none, descend as for a signed PN.
5. Ask the best point once more, for all its scores.
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
"""The part of the budget that the walk from x0 may use, so that a descent has a chance where it ends with nothing."""
FIRST, MOST_FIRST = 12, 800
"""In a picture one cell for so many features is asked first, and never more than so many cells."""
LOOK_SHARE = 0.6
"""The part of the walk's queries that looking for such cells may use."""
EACH, EACH_SHARE = 100, 0.01
"""Halved cells that are asked at every finer level: so many, or that part of the budget."""


def search(progress: Progress) -> Search[Found]:
    """The whole of it: like the search for a PN, but adversarial means beyond the boundary by kappa."""
    progress.goal = replace(progress.goal, floor=progress.goal.kappa)
    return (yield from conducted(progress, _nearest))


def _nearest(progress: Progress) -> Generator[Request, Answer, Status]:
    # A method that was asked for descends; scores that jump (trees) have no slopes to walk along.
    walked = Status.RUNNING
    if progress.options.method is None and progress.radius is None:
        walked = yield from _walk(progress)
    return walked if walked is not Status.RUNNING else (yield from descend(progress))


def _walk(progress: Progress) -> Generator[Request, Answer, Status]:
    """From x0 to the nearest point beyond the boundary: BUDGET when it got there, else RUNNING."""
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
        # Its share has ended the walk, and no descent needs the rest.
        yield from finish(progress, best, progress.left, slopes)
    return Status.BUDGET
