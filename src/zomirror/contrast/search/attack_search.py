"""The search for the nearest adversarial input, or for the one with the fewest changed pixels.

1. Query the scores of x0.
2. In a picture, query random pixels at full contrast and undo what is not needed: the first adversarial points.
3. Where pixels are counted (`l0`) or only the class is known, continue by few_pixels.py and label_search.py. Otherwise
   search a picture with slopes under a smooth prior (boundary_search.py), and walk from any other x0 across the
   boundary with local linear models.
4. Spend the rest of the budget on improving the best adversarial point; without one, descend as for a signed PN.
5. Query the best point once more, for all its scores.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zomirror.contrast.candidate import Candidate
from zomirror.contrast.pixel_search.few_pixels import PixelSearch, first_look
from zomirror.contrast.progress import Found, Progress
from zomirror.contrast.search.boundary.boundary_search import LARGEST, BoundarySearch
from zomirror.contrast.search.coarse_to_fine import is_picture, look
from zomirror.contrast.search.evaluate import ask_margins, ask_scores, driven
from zomirror.contrast.search.explain_search import conducted, descend
from zomirror.contrast.search.finishing import POLISH_SHARE, finish, pull_of
from zomirror.contrast.search.safety import ask_safe_margin
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request, Search
from zomirror.errors import ArgumentError
from zomirror.features.vector import VectorPlace
from zomirror.result import Status

WALK_SHARE = 0.6
"""The walk from x0 may use 60 % of the budget; the rest is for a descent if the walk finds nothing."""
FIRST, MOST_FIRST = 12, 800
"""The coarsest level of a picture has about one cell per 12 features, and at most 800 cells."""
LOOK_SHARE = 0.6
"""Estimating the slopes of the cells may use 60 % of the walk's queries."""
EACH, EACH_SHARE = 100, 0.01
"""Cells queried at each finer level: 100, or 1 % of the budget if that is more."""


FIRST_LOOKS = 5
"""The search with slopes begins with 5 times the queries of a first look, around x0 alone: a good answer comes soon.
With the rest it begins anew, around several origins."""
SECURED = 40
"""Queries that are kept for a safe margin of the answer, at most a quarter of those left."""
PUSHED = (1.01, 1.02, 1.04, 1.07, 1.1, 1.15, 1.2, 1.3)
"""Multiples of an answer whose margin is not safe."""


def search(progress: Progress) -> Search[Found]:
    """The search for a PN, but valid only where the other class wins by more than kappa."""
    progress.goal = replace(progress.goal, floor=progress.goal.kappa)
    place, l0, labels = progress.place, progress.options.l0, progress.options.scores == "label"
    if not isinstance(place, VectorPlace) or not np.isfinite(place.box.upper - place.box.lower).all():
        if l0 is not None or labels:
            name = "scores='label'" if l0 is None else "l0"
            raise ArgumentError(f"expected finite bounds with {name}, got infinite ones: pixels are moved to them")
        return (yield from conducted(progress, _nearest))
    few = PixelSearch(place)
    if l0 is not None:
        progress.goal = few.limited(progress.goal, None if l0 == "least" else int(l0))
    if l0 is not None or labels:
        middle = few.by_label if labels else few.search
        return (yield from conducted(progress, middle, lambda of: few.probe(of, shrink=False)))
    if progress.options.method is not None or not is_picture(place.x0.shape):
        return (yield from conducted(progress, _nearest))
    return (yield from conducted(progress, _nearest, lambda of: few.probe(of, shrink=True)))


def _nearest(progress: Progress) -> Generator[Request, Answer, Status]:
    # A method given by the caller always descends. Piecewise constant scores (trees) have no slopes to walk along.
    place, found = progress.place, Status.RUNNING
    if progress.options.method is None and progress.radius is None:
        if isinstance(place, VectorPlace) and is_picture(place.x0.shape) and place.d <= LARGEST:
            found = yield from _beyond(progress, place)
        else:
            found = yield from _walk(progress)
    return found if found is not Status.RUNNING else (yield from descend(progress))


def _beyond(progress: Progress, place: VectorPlace) -> Generator[Request, Answer, Status]:
    """With slopes under a smooth prior, as explain() does: BUDGET if a valid point is known, else RUNNING."""
    allowed, most = int(WALK_SHARE * progress.left), progress.left - min(SECURED, progress.left // 4)
    last, first = progress.used + most, FIRST_LOOKS * first_look(place)
    stages = (first, most - first) if 2 * first < most else (most,)
    for stage in stages:
        beyond = BoundarySearch(
            place, progress.goal, pull_of(progress), min(allowed, stage), min(stage, last - progress.used)
        )
        beyond.best = progress.best
        yield from driven(progress, beyond.run(), ask_scores)
    if progress.best is None or not progress.best.valid:
        return Status.RUNNING
    yield from _secured(progress, progress.best)
    if progress.best.valid:
        yield from finish(progress, progress.best, progress.left)
    return Status.BUDGET


def _secured(progress: Progress, best: Candidate) -> Generator[Request, Answer, None]:
    """Ask for the safe margin again, around the answer, where slopes are others than around x0; and reach it."""
    if progress.left < SECURED // 2:
        return
    yield from ask_safe_margin(progress, best.w, SECURED // 2)
    if best.margin < -progress.goal.floor:
        return
    pushed = [progress.place.box.project(best.w * best.w.dtype.type(factor)) for factor in PUSHED][: progress.left]
    if pushed:
        margins = yield from ask_margins(progress, pushed)
        for w, margin in zip(pushed, margins, strict=True):
            progress.consider(w, float(margin))


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
