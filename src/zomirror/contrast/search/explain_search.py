"""The search for one PP or PN, as a generator that an engine drives.

    1. Query the scores of x0 (and of the baseline, for a PP).
    2. An image is searched with slopes under a smooth prior (boundary_search.py). If that finds a valid point, step 6
       follows; if not, and for all other inputs, the rest of the budget is spent on the following steps.
    3. Minimise loss(margin) + h(w) by a descent. If it meets no valid point, descend again with a weaker penalty.
    4. Refine the best point with local linear models. This also makes most invalid points valid. If it does not, try
       each feature over its whole range and refine what that finds.
    5. Shrink the point and prune features, adjusting the features that are kept.
    6. Query the best point of the search once more, for all its scores.

A PN has many local minima. There steps 3 and 4 are short and are run from several starts, one after another, as long
as the budget lasts; step 5 is run for the results close to the best. If no start leads to a valid point, most of the
budget is still there for the weaker penalty and the search over the whole ranges.

Every row counts as a query, and the search never exceeds its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate
from zomirror.contrast.progress import CallbackStop, Found, Progress
from zomirror.contrast.search.boundary.boundary_search import LARGEST, BoundarySearch, leads_of
from zomirror.contrast.search.coarse_to_fine import is_picture
from zomirror.contrast.search.evaluate import ask_scores, driven
from zomirror.contrast.search.finishing import BEYOND, FINISH_SHARE, ended, pull_of, thinned
from zomirror.contrast.search.margin_descent import Course
from zomirror.contrast.search.multistart import from_each, starts_of
from zomirror.contrast.search.repeatability import prepare, repeated, settled
from zomirror.contrast.search.safety import ask_safe_margin
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request, Search
from zomirror.errors import ArgumentError
from zomirror.features.vector import VectorPlace
from zomirror.problem import ElasticNet
from zomirror.result import Status

WEAKER = 0.1
"""When the first descent finds nothing valid, a second one has 0.1 times the penalty."""
BOUNDARY_SHARE = 0.4
"""While nothing is valid, the search beyond the boundary may use 40 % of the queries; the rest is for a descent."""
SPARSEST = 4.0
"""The last level of `search=` has 4 times the l1 and a quarter of the l2."""
UNUSED = 0.05
"""A search that ends with more than 5 % of its budget left has the status STALLED, not BUDGET."""


def search(progress: Progress) -> Search[Found]:
    """The whole search; after a failure the caller can still read `progress`."""
    return (yield from conducted(progress, _levels if progress.options.search else _nearest))


Stage = Callable[[Progress], Generator[Request, Answer, Status]]


def conducted(progress: Progress, middle: Stage, opening: Stage | None = None) -> Search[Found]:
    """Query the label, run `middle` to find better points, then query all scores of the best one.

    An `opening` comes before the queries that tell a safe margin.
    """
    yield from _find_label(progress)
    if np.isnan(progress.scores).any():
        progress.note = f"{Status.NONFINITE.value}: the scores of x0 are {_shown(progress.scores)}"
        return progress.found(Status.NONFINITE, progress.scores)
    best = progress.chosen
    steady = progress.answers is None  # else x0 or the baseline, queried once, may have been lucky
    if steady and best.valid and best.fun == -progress.goal.kappa:
        progress.note = (
            f"x0 is not classified {progress.label}, so nothing has to change"
            if progress.place.kind == "PN"
            else "the baseline alone has this class, by at least the margin of x0: choose another baseline"
        )
        scores = yield from ask_scores(progress, [best.w])
        return progress.found(Status.TARGET, scores[0])
    try:
        if opening is not None:
            yield from opening(progress)
        yield from ask_safe_margin(progress)
        status = yield from middle(progress)
    except CallbackStop:
        status = Status.CALLBACK
    if status is Status.BUDGET and progress.left > UNUSED * progress.options.budget:
        status = Status.STALLED  # the descent used its share, and the later stages stopped by themselves
    best, scores = yield from settled(progress)
    others: tuple[tuple[Candidate, NDArray[np.float64]], ...] = ()
    if progress.answers is None and progress.others:
        more = yield from ask_scores(progress, [one.w for one in progress.others])
        others = tuple(zip(progress.others, more, strict=True))
    with suppress(CallbackStop):  # it is ending anyway
        progress.measured(best)
    return progress.found(status, scores, best=best, others=others)


def _find_label(progress: Progress) -> Generator[Request, Answer, None]:
    """Query the class of x0 and, for a PP, of the baseline."""
    place, options = progress.place, progress.options
    points = [place.as_it_is, place.absent] if place.kind == "PP" else [place.as_it_is]
    scores = yield from ask_scores(progress, points)
    progress.scores = scores[0]
    classes = scores.shape[1]
    names = options.class_names
    if names is not None and len(names) != classes:
        raise ArgumentError(f"expected {classes} class_names, got {len(names)}: the model has {classes} classes")
    for name, value in (("label", options.label), ("target", options.target)):
        if value is not None and value >= classes:
            raise ArgumentError(f"expected {name} in 0..{classes - 1}, got {value}: the model has {classes} classes")
    if np.isnan(progress.scores).any():
        return
    _choose_label(progress)
    scores[0] = progress.scores = yield from repeated(progress, scores[0])
    _choose_label(progress)
    margins = progress.margins(scores)
    if place.kind == "PP" and margins[1] < 0 and margins[0] < margins[1]:
        # The baseline alone already has this class: look for the features that raise the margin half-way to x0's.
        floor = float(-(margins[0] + margins[1]) / 2)
        progress.goal = replace(progress.goal, kappa=max(progress.goal.kappa, floor), floor=floor)
        progress.note = (
            "the baseline alone has this class, so this explains what raises the margin: it had to exceed "
            f"{floor:.3g}, half-way from the baseline's to that of x0"
        )
    prepare(progress)
    for w, margin in zip(points, margins, strict=True):
        progress.consider(w, float(margin))
    if progress.far is not None:
        progress.consider(progress.far[0], float(progress.margins(progress.far[1][None])[0]))
    progress.distance = max(float(margins[-1]), 0.0) if np.isfinite(margins[-1]) else 0.0


def _choose_label(progress: Progress) -> None:
    """The class that is explained: the given one, or that of x0."""
    options = progress.options
    progress.label = int(np.argmax(progress.scores)) if options.label is None else options.label
    if options.target == progress.label:
        raise ArgumentError(
            f"expected target other than {options.target}, the class of x0: choose a class to change it to"
        )


def _nearest(progress: Progress) -> Generator[Request, Answer, Status]:
    """Search an image beyond the boundary; descend if that does not apply or finds nothing."""
    found = yield from _beyond(progress, progress.left)
    return Status.BUDGET if found is not None else (yield from descend(progress))


def _beyond(progress: Progress, most: int) -> Generator[Request, Answer, Candidate | None]:
    """The best valid point that the search beyond the boundary finds, if it applies."""
    place = progress.place
    if not isinstance(place, VectorPlace) or not _smooth(progress, place):
        return None
    prior, goal, pull = progress.options.prior, progress.goal, pull_of(progress)
    leads = leads_of(prior, place, goal, pull)
    search = BoundarySearch(place, goal, pull, int(BOUNDARY_SHARE * most), most, prior=prior, leads=leads)
    found = yield from driven(progress, search.run(), ask_scores)
    return found if found is not None and found.valid else None


def _smooth(progress: Progress, place: VectorPlace) -> bool:
    """Whether slopes can be guessed: neighbours in an image have similar ones, or there is a prior; not of trees."""
    given = progress.options.method is not None or progress.radius is not None
    known = is_picture(place.x0.shape) or progress.options.prior is not None
    return not given and known and place.d <= LARGEST


def descend(progress: Progress) -> Generator[Request, Answer, Status]:
    """Descend until a valid point is found, then refine, prune and shrink the best one."""
    starts, last = starts_of(progress), progress.used + progress.left
    kept = int(FINISH_SHARE * progress.left)
    if len(starts) > 1:
        ends, status = yield from from_each(progress, starts, last)
        if ends or status is Status.NONFINITE:
            return status
        best, kept = progress.best, int(FINISH_SHARE * progress.left)
    else:
        course = Course(progress, starts[0], progress.best)
        status = yield from _gone(progress, course, last - kept)
        best = course.best
    if status is not Status.NONFINITE and (best is None or not best.valid):
        course = Course(progress, starts[0], best, WEAKER, BEYOND)
        status = yield from _gone(progress, course, last - kept)
        best = course.best
    if status is not Status.NONFINITE:
        yield from ended(progress, best, last)
    return status


def _gone(progress: Progress, course: Course, last: int) -> Generator[Request, Answer, Status]:
    """Descend until `last` queries are used; stop at half of them if nothing valid was found by then."""
    allowed = last - progress.used
    return (yield from course.run(allowed, allowed // 2))


def _levels(progress: Progress) -> Generator[Request, Answer, Status]:
    """Search with half of the budget, then refine the result at each level under a larger l1 and a smaller l2."""
    count, goal = progress.options.search, progress.goal
    share = progress.left if count == 1 else progress.left // 2
    last, allowed = progress.used + share, share - int(FINISH_SHARE * share)
    best, status = (yield from _beyond(progress, allowed)), Status.BUDGET
    if best is None:
        course = Course(progress, starts_of(progress)[0], progress.best)
        allowed = last - progress.used - int(FINISH_SHARE * share)
        status = yield from course.run(allowed, allowed // 2)
        if status is Status.NONFINITE:
            return status
        best = course.best
    end = yield from ended(progress, best, last)
    count = min(count, 1 + progress.left)  # a level without queries is not made
    for i in range(1, count):
        if end is None:
            break
        progress.ends.append(end)
        factor = SPARSEST ** (i / (count - 1))
        stronger = replace(goal, penalty=ElasticNet(goal.penalty.l1 * factor, goal.penalty.l2 / factor))
        start = stronger.candidate(end.w, end.margin)
        sparser = yield from thinned(progress, start, progress.left // (count - i), stronger)
        end = None if sparser is None else goal.candidate(sparser.w, sparser.margin)
    progress.ends += [] if end is None else [end]
    return status


def _shown(scores: NDArray[np.float64]) -> str:
    """The first five scores, for a message."""
    return f"[{', '.join(f'{score:.3g}' for score in scores[:5])}{', ...' if scores.size > 5 else ''}]"
