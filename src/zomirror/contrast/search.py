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

from zomirror.arrays import Array
from zomirror.contrast.asking import ask_margins, ask_scores, driven
from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.course import Course
from zomirror.contrast.engine import Reply, Request, Search
from zomirror.contrast.polish import polish
from zomirror.contrast.progress import Found, Progress, Stopped
from zomirror.contrast.reach import reach
from zomirror.contrast.refine import Pull, refine
from zomirror.contrast.thin import thin
from zomirror.errors import ArgumentError
from zomirror.penalty import ElasticNet
from zomirror.result import Status

STARTS = (0.25, 1.0, 0.5, 0.1)
"""Where the descents for a PN begin, as parts of the way from x0 to the paper's start, the centre of the decision set:
from there on the way in they meet other classes than from near x0, and any may be the nearest one."""
SHORT, SHORTEST = 0.03, 60
"""The part of the budget that each of them has, and at least so many queries: step 3 does more with the others."""
EACH_START = 2.5
"""A start needs so many queries for each free feature."""
JUMPY = 3
"""Of scores that jump, which refining does less with, the starts need so many times as many in all."""
WITHOUT = 4
"""While nothing is valid, a start may use one part in so many of what is left: there is more that can be tried."""
NEAR = 1.3
"""What is at most so many times as far above the least F, -kappa, as the best of them is pruned too, and may end below
it."""
WEAKER, BEYOND = 0.1, 0.1
"""Where nothing was valid: the factor of the penalty of a second descent, and how far beyond the boundary to aim, as a
part of the distance to it. Scores that jump have a tie where the hinge is least, and a tie is not valid."""
SPARSEST = 4.0
"""The last of several levels has so many times the l1, and that part of the l2."""
FINISH_SHARE = 0.25
"""The part of the queries that the descent leaves for refining, pruning and shrinking."""
POLISH_SHARE = 0.1
"""The part of that which is for pruning and shrinking."""
UNUSED = 0.05
"""With more than this part of the budget left, a search has not ended for want of it."""


def search(progress: Progress) -> Search[Found]:
    """The whole of it; `progress` can be read by whoever made it, also after a failure."""
    return (yield from conducted(progress, _levels if progress.aim.search else descend))


def conducted(progress: Progress, middle: Callable[[Progress], Generator[Request, Reply, Status]]) -> Search[Found]:
    """The label, then whatever `middle` does to find a better point, then all scores of the best."""
    yield from _find_label(progress)
    if np.isnan(progress.scores).any():
        progress.note = f"{Status.NONFINITE.value}: the scores of x0 are {_shown(progress.scores)}"
        return found(progress, Status.NONFINITE, progress.scores)
    best = chosen(progress)
    if best.valid and best.fun == -progress.goal.kappa:
        progress.note = (
            f"x0 is not classified {progress.label}, so nothing has to change"
            if progress.setting.kind == "PN"
            else "the baseline alone is given this class, and no less surely than x0: choose another baseline"
        )
        scores = yield from ask_scores(progress, [best.w])
        return found(progress, Status.TARGET, scores[0])
    try:
        status = yield from middle(progress)
    except Stopped:
        status = Status.CALLBACK
    best = chosen(progress)
    if status is Status.BUDGET and progress.left > UNUSED * progress.aim.budget:
        status = Status.STALLED  # the descent had used its share, and what followed ended by itself
    scores = yield from ask_scores(progress, [best.w])
    with suppress(Stopped):  # it is ending anyway
        progress.measured(best)
    return found(progress, status, scores[0])


def chosen(progress: Progress) -> Candidate:
    """The best point seen, or x0 as it is when nothing was; of several levels the sparsest valid end."""
    if any(end.valid for end in progress.ends):
        return min(progress.ends, key=lambda end: (not end.valid, np.count_nonzero(end.w), end.fun))
    place = progress.setting
    as_it_is = place.start if place.kind == "PP" else np.zeros_like(place.start)
    return progress.best or Candidate(as_it_is, np.nan, np.nan, valid=False)


def found(progress: Progress, status: Status, scores_after: NDArray[np.float64], note: str = "") -> Found:
    """What has been reached."""
    return Found(
        status=status,
        label=progress.label,
        best=chosen(progress),
        scores_before=progress.scores,
        scores_after=scores_after,
        history=progress.history(),
        nfev=progress.used,
        note=note or progress.note,
    )


def _find_label(progress: Progress) -> Generator[Request, Reply, None]:
    """The class at x0; a PP also looks at the baseline, a PN is at x0 where w = 0."""
    setting, aim = progress.setting, progress.aim
    nothing = np.zeros_like(setting.start)
    points = [setting.start, setting.box.project(nothing)] if setting.kind == "PP" else [nothing]
    scores = yield from ask_scores(progress, points)
    progress.scores = scores[0]
    classes = scores.shape[1]
    if aim.classes not in (0, classes):
        raise ArgumentError(f"expected {classes} class_names, got {aim.classes}: the model has {classes} classes")
    for name, value in (("label", aim.label), ("target", aim.target)):
        if value is not None and value >= classes:
            raise ArgumentError(f"expected {name} in 0..{classes - 1}, got {value}: the model has {classes} classes")
    if np.isnan(scores[0]).any():
        return
    progress.label = int(np.argmax(scores[0])) if aim.label is None else aim.label
    if aim.target == progress.label:
        raise ArgumentError(f"expected target other than {aim.target}, the class of x0: choose a class to change it to")
    margins = progress.margins(scores)
    if setting.kind == "PP" and margins[1] < 0 and margins[0] < margins[1]:
        # The baseline alone is given this class. What makes the model surer than that is still worth knowing.
        floor = float(-(margins[0] + margins[1]) / 2)
        progress.goal = replace(progress.goal, kappa=max(aim.kappa, floor), floor=floor)
        progress.note = (
            "the baseline alone is given this class, so this is what makes the model surer: the margin had to "
            f"pass {floor:.3g}, half-way from the baseline's to that of x0"
        )
    for w, margin in zip(points, margins, strict=True):
        progress.consider(w, float(margin))
    progress.distance = max(float(margins[-1]), 0.0) if np.isfinite(margins[-1]) else 0.0


def _starts(progress: Progress) -> list[Array]:
    """Where to begin: the paper's start, for a PN by the recommended method several, if there are queries for one."""
    setting, aim = progress.setting, progress.aim
    if setting.kind == "PP" or aim.method is not None:
        return [setting.start]
    affordable = progress.left >= _each_start(progress) * (1 if aim.radius is None else JUMPY)
    parts = STARTS if affordable else STARTS[:1]
    return [setting.box.project(setting.start * setting.start.dtype.type(part)) for part in parts]


def _each_start(progress: Progress) -> float:
    return _short(progress) + EACH_START * progress.setting.free


def _short(progress: Progress) -> int:
    return max(SHORTEST, int(SHORT * progress.aim.budget))


def descend(progress: Progress) -> Generator[Request, Reply, Status]:
    """Descents until something is valid, the best point of which is finished."""
    starts, last = _starts(progress), progress.used + progress.left
    kept = int(FINISH_SHARE * progress.left)
    if len(starts) > 1:
        ends, status = yield from _from_each(progress, starts, last)
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
        yield from _ended(progress, best, last)
    return status


def _from_each(
    progress: Progress, starts: list[Array], last: int
) -> Generator[Request, Reply, tuple[list[Candidate], Status]]:
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
        allowed = last - progress.used - int(POLISH_SHARE * FINISH_SHARE * progress.aim.budget)
        bar = min((end.fun for end in ends), default=np.inf)
        unless_valid = None if ends else (last - progress.used) // WITHOUT
        end = yield from finish(progress, course.best, allowed, bar=bar, unless_valid=unless_valid)
        ends += [end] if end is not None and end.valid else []
    for end in sorted(ends, key=lambda end: end.fun):
        if progress.best is None or _near(progress.goal, end.fun, progress.best.fun):
            yield from _pruned(progress, end, last - progress.used)
    return ends, Status.BUDGET


def _gone(progress: Progress, course: Course, last: int) -> Generator[Request, Reply, Status]:
    """On until `last`: a descent may use all that is left once something is valid, and half of it before."""
    allowed = last - progress.used
    return (yield from course.run(allowed, allowed // 2))


def _levels(progress: Progress) -> Generator[Request, Reply, Status]:
    """A search with half of the budget, its end refined under ever more l1 and less l2; the sparsest is wanted."""
    count, goal = progress.aim.search, progress.goal
    course = Course(progress, _starts(progress)[0], progress.best)
    share = progress.left if count == 1 else progress.left // 2
    last, allowed = progress.used + share, share - int(FINISH_SHARE * share)
    status = yield from course.run(allowed, allowed // 2)
    if status is Status.NONFINITE:
        return status
    end = yield from _ended(progress, course.best, last)
    for i in range(1, count):
        if end is None:
            break
        progress.ends.append(end)
        factor = SPARSEST ** (i / (count - 1))
        stronger = replace(goal, penalty=ElasticNet(goal.penalty.l1 * factor, goal.penalty.l2 / factor))
        start = stronger.candidate(end.w, end.margin)
        sparser = yield from _thinned(progress, start, progress.left // (count - i), stronger)
        end = None if sparser is None else goal.candidate(sparser.w, sparser.margin)
    progress.ends += [] if end is None else [end]
    return status


def _ended(progress: Progress, best: Candidate | None, last: int) -> Generator[Request, Reply, Candidate | None]:
    """`best` finished; while nothing at all is valid, what is left until `last` is spent on reaching something."""
    left = last - progress.used
    end = yield from _thinned(progress, best, left if best is not None and best.valid else left // 2)
    nearest, left = progress.best, last - progress.used
    if nearest is None or nearest.valid or left <= 0:
        return end
    allowed = max(1, int((1 - FINISH_SHARE) * left))
    reached = reach(nearest, progress.goal, progress.setting.box, allowed, progress.aim.seed)
    nearest = yield from driven(progress, reached, ask_margins)
    return (yield from _thinned(progress, nearest, last - progress.used))


def _thinned(
    progress: Progress, start: Candidate | None, allowed: int, goal: Goal | None = None
) -> Generator[Request, Reply, Candidate | None]:
    """`start` finished and then, once it is valid, with as few features as do."""
    last = progress.used + min(allowed, progress.left)
    end = yield from finish(progress, start, allowed, goal=goal)
    if end is None or not end.valid:
        return end
    return (yield from _pruned(progress, end, last - progress.used, goal))


def _pruned(
    progress: Progress, end: Candidate, allowed: int, goal: Goal | None = None
) -> Generator[Request, Reply, Candidate]:
    """The valid `end` with as few features as do."""
    box, step = progress.setting.box, progress.aim.radius
    thinner = thin(end, progress.goal if goal is None else goal, box, pull_of(progress), allowed, step=step)
    return (yield from driven(progress, thinner, ask_scores))


def finish(
    progress: Progress,
    start: Candidate | None,
    allowed: int,
    slopes: NDArray[np.float64] | None = None,
    goal: Goal | None = None,
    bar: float = np.inf,
    unless_valid: int | None = None,
) -> Generator[Request, Reply, Candidate | None]:
    """`start` refined and then, once it is valid, pruned and shrunk; `goal` if it is not the search's.

    Refining ends where it falls behind the `bar`, or after `unless_valid` queries without a valid point, and what is
    left far above the `bar` is not pruned.
    """
    if start is None:
        return None
    end, box, last = start, progress.setting.box, progress.used + min(allowed, progress.left)
    goal = progress.goal if goal is None else goal
    if (rows := last - progress.used - int(POLISH_SHARE * allowed)) > 1:
        beyond = BEYOND * progress.distance
        pull, step = pull_of(progress), progress.aim.radius
        refined = refine(
            end, goal, box, pull, rows, step=step, beyond=beyond, slopes=slopes, bar=bar, unless_valid=unless_valid
        )
        end = yield from driven(progress, refined, ask_scores)
    if end.valid and last > progress.used and _near(goal, end.fun, bar):
        end = yield from driven(progress, polish(end, goal, box, last - progress.used), ask_margins)
    return end


def _near(goal: Goal, fun: float, best: float) -> bool:
    """Whether F is not much further than the best above the least that it can be, -kappa."""
    return fun + goal.kappa <= NEAR * (best + goal.kappa)


def pull_of(progress: Progress) -> Pull:
    """What is wanted of which class."""
    target, label = progress.aim.target, progress.label
    if progress.setting.kind == "PP":
        return Pull(label, kept=True)
    return Pull(label, kept=False) if target is None else Pull(target, kept=True)


def _shown(scores: NDArray[np.float64]) -> str:
    """The first scores, for a message."""
    return f"[{', '.join(f'{score:.3g}' for score in scores[:5])}{', ...' if scores.size > 5 else ''}]"
