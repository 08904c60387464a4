"""The search for one PP or PN, as a generator that an engine drives.

    1. Ask the label of x0 (and the scores of the baseline, for a PP).
    2. Descend loss(margin) + h(w); if nothing valid was met on the way, descend again with weaker penalties.
    3. Refine the best point with local linear models, which also makes most invalid points valid; where it does not,
       look along the whole range of every feature, and refine what that finds.
    4. Prune and shrink it, and make up for what can be left out with the features that are kept.
    5. Ask the best point of all that were asked once more, for all its scores.

A PN has many local optima: there 2 is short, 3 follows at once, and both are done from several starts, one after
another, as long as there are queries for the next; 4 is done for those that end near the best. Where none of them ends
with a valid point, most of the queries are left for the weaker penalties and the look along the whole ranges.

Every row asked counts, and the search never asks more than its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.progress import Found, Progress, Stopped
from zomirror.contrast.search.evaluate import ask_scores
from zomirror.contrast.search.finishing import BEYOND, FINISH_SHARE, ended, thinned
from zomirror.contrast.search.margin_descent import Course
from zomirror.contrast.search.multistart import from_each, starts_of
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request, Search
from zomirror.errors import ArgumentError
from zomirror.problem import ElasticNet
from zomirror.result import Status

WEAKER = 0.1
"""Where nothing was valid: the factor of the penalty of a second descent."""
SPARSEST = 4.0
"""The last of several levels has so many times the l1, and that part of the l2."""
UNUSED = 0.05
"""With more than this part of the budget left, a search has not ended for want of it."""


def search(progress: Progress) -> Search[Found]:
    """The whole of it; `progress` can be read by whoever made it, also after a failure."""
    return (yield from conducted(progress, _levels if progress.options.search else descend))


def conducted(progress: Progress, middle: Callable[[Progress], Generator[Request, Answer, Status]]) -> Search[Found]:
    """The label, then whatever `middle` does to find a better point, then all scores of the best."""
    yield from _find_label(progress)
    if np.isnan(progress.scores).any():
        progress.note = f"{Status.NONFINITE.value}: the scores of x0 are {_shown(progress.scores)}"
        return progress.found(Status.NONFINITE, progress.scores)
    best = progress.chosen
    if best.valid and best.fun == -progress.goal.kappa:
        progress.note = (
            f"x0 is not classified {progress.label}, so nothing has to change"
            if progress.place.kind == "PN"
            else "the baseline alone is given this class, and no less surely than x0: choose another baseline"
        )
        scores = yield from ask_scores(progress, [best.w])
        return progress.found(Status.TARGET, scores[0])
    try:
        status = yield from middle(progress)
    except Stopped:
        status = Status.CALLBACK
    best = progress.chosen
    if status is Status.BUDGET and progress.left > UNUSED * progress.options.budget:
        status = Status.STALLED  # the descent had used its share, and what followed ended by itself
    scores = yield from ask_scores(progress, [best.w])
    with suppress(Stopped):  # it is ending anyway
        progress.measured(best)
    return progress.found(status, scores[0])


def _find_label(progress: Progress) -> Generator[Request, Answer, None]:
    """The class at x0; a PP also looks at the baseline, a PN is at x0 where w = 0."""
    place, options = progress.place, progress.options
    nothing = np.zeros_like(place.start)
    points = [place.start, place.box.project(nothing)] if place.kind == "PP" else [nothing]
    scores = yield from ask_scores(progress, points)
    progress.scores = scores[0]
    classes = scores.shape[1]
    names = options.class_names
    if names is not None and len(names) != classes:
        raise ArgumentError(f"expected {classes} class_names, got {len(names)}: the model has {classes} classes")
    for name, value in (("label", options.label), ("target", options.target)):
        if value is not None and value >= classes:
            raise ArgumentError(f"expected {name} in 0..{classes - 1}, got {value}: the model has {classes} classes")
    if np.isnan(scores[0]).any():
        return
    progress.label = int(np.argmax(scores[0])) if options.label is None else options.label
    if options.target == progress.label:
        raise ArgumentError(
            f"expected target other than {options.target}, the class of x0: choose a class to change it to"
        )
    margins = progress.margins(scores)
    if place.kind == "PP" and margins[1] < 0 and margins[0] < margins[1]:
        # The baseline alone is given this class. What makes the model surer than that is still worth knowing.
        floor = float(-(margins[0] + margins[1]) / 2)
        progress.goal = replace(progress.goal, kappa=max(options.kappa, floor), floor=floor)
        progress.note = (
            "the baseline alone is given this class, so this is what makes the model surer: the margin had to "
            f"pass {floor:.3g}, half-way from the baseline's to that of x0"
        )
    for w, margin in zip(points, margins, strict=True):
        progress.consider(w, float(margin))
    progress.distance = max(float(margins[-1]), 0.0) if np.isfinite(margins[-1]) else 0.0


def descend(progress: Progress) -> Generator[Request, Answer, Status]:
    """Descents until something is valid, the best point of which is finished."""
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
    """On until `last`: a descent may use all that is left once something is valid, and half of it before."""
    allowed = last - progress.used
    return (yield from course.run(allowed, allowed // 2))


def _levels(progress: Progress) -> Generator[Request, Answer, Status]:
    """A search with half of the budget, its end refined under ever more l1 and less l2; the sparsest is wanted."""
    count, goal = progress.options.search, progress.goal
    course = Course(progress, starts_of(progress)[0], progress.best)
    share = progress.left if count == 1 else progress.left // 2
    last, allowed = progress.used + share, share - int(FINISH_SHARE * share)
    status = yield from course.run(allowed, allowed // 2)
    if status is Status.NONFINITE:
        return status
    end = yield from ended(progress, course.best, last)
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
    """The first scores, for a message."""
    return f"[{', '.join(f'{score:.3g}' for score in scores[:5])}{', ...' if scores.size > 5 else ''}]"
