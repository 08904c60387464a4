"""The search for one PP or PN, as a generator that an engine drives.

    1. Ask the label of x0 (and the scores of the baseline, for a PP).
    2. Descend loss(margin) + h(w); remember the best valid iterate, which costs nothing.
    3. If none is valid, descend again with weaker penalties.
    4. Refine the best point with local linear models, which also makes most invalid points valid.
    5. Prune and shrink it.
    6. Ask it once more, for all its scores.

Every row asked counts, and the search never asks more than its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from zomirror.arrays import Array
from zomirror.contrast.candidate import Candidate
from zomirror.contrast.engine import Reply, Request, Search
from zomirror.contrast.polish import polish
from zomirror.contrast.progress import LOSSES, Asking, Found, Progress, ask_margins, ask_scores
from zomirror.contrast.refine import Pull, refine
from zomirror.errors import ArgumentError
from zomirror.optimizer import Optimizer
from zomirror.penalty import ElasticNet
from zomirror.presets import recommended
from zomirror.result import Status

T = TypeVar("T")

ALONG = (1.0, 0.5, 0.25, 0.125, 0.0625)
"""Where on the way from x0 to the paper's start the recommended method looks for a better place to begin a PN."""
TRIES = ((1.0, 0.0), (0.1, 0.1), (0.01, 0.3))
"""Tried in turn until something is valid: factors of the penalty, and how far beyond the boundary to aim, as parts
of the distance to it. Scores that jump have a tie where the hinge is least, and a tie is not valid."""
FINISH_SHARE = 0.5
"""The part of the budget that the descent leaves for refining, pruning and shrinking."""
POLISH_SHARE = 0.1
"""The part of that which is for pruning and shrinking."""
UNUSED = 0.05
"""With more than this part left, a search has not ended for want of budget."""


def search(progress: Progress) -> Search[Found]:
    """The whole of it; `progress` can be read by whoever made it, also after a failure."""
    return (yield from conducted(progress, _levels if progress.aim.search else descend))


def conducted(progress: Progress, middle: Callable[[Progress], Generator[Request, Reply, Status]]) -> Search[Found]:
    """The label, then whatever `middle` does to find a better point, then all scores of the best."""
    yield from _find_label(progress)
    if np.isnan(progress.scores).any():
        progress.note = f"{Status.NONFINITE.value}: the scores of x0 are {_shown(progress.scores)}"
        return found(progress, Status.NONFINITE, progress.scores)
    if progress.best is not None and progress.best.fun == -progress.goal.kappa and progress.is_valid:
        progress.note = (
            f"x0 is not classified {progress.label}, so nothing has to change"
            if progress.setting.kind == "PN"
            else "the baseline alone is given this class, and no less surely than x0: choose another baseline"
        )
        scores = yield from ask_scores(progress, [progress.best.w])
        return found(progress, Status.TARGET, scores[0])
    status = yield from middle(progress)
    best = chosen(progress)
    if status is Status.BUDGET and progress.left > UNUSED * progress.aim.budget:
        status = Status.STALLED  # the descent had used its share, and what followed ended by itself
    scores = yield from ask_scores(progress, [best.w])
    return found(progress, status, scores[0])


def chosen(progress: Progress) -> Candidate:
    """The best point seen, or the start when nothing was seen."""
    return progress.best or Candidate(progress.setting.start, np.nan, np.nan, valid=False)


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
        raise ArgumentError(f"expected target other than {aim.target}, the class of x0: a PN changes the class")
    margins = progress.margins(scores)
    if setting.kind == "PP" and margins[1] < 0 and margins[0] < margins[1]:
        # The baseline alone is given this class. What makes the model surer than that is still worth knowing.
        floor = float(-(margins[0] + margins[1]) / 2)
        progress.goal = replace(progress.goal, kappa=max(aim.kappa, floor), floor=floor)
        progress.note = (
            "the baseline alone is given this class, so this is what makes the model surer: the margin had to "
            f"pass {floor:.3g}, half-way from the baseline's to that of x0"
        )
    seen = [progress.consider(w, float(margin)) for w, margin in zip(points, margins, strict=True)]
    progress.distance = max(float(margins[-1]), 0.0) if np.isfinite(margins[-1]) else 0.0
    if setting.kind == "PN" and aim.method is None:
        yield from _find_start(progress, seen[0])


def _find_start(progress: Progress, at_x0: Candidate) -> Generator[Request, Reply, None]:
    """Begin a PN where F is least between x0 and the centre of the decision set: five queries that save many."""
    centre, box = progress.setting.start, progress.setting.box
    points: list[Array] = [box.project(centre * centre.dtype.type(c)) for c in ALONG]
    margins = yield from ask_margins(progress, points)
    seen = [progress.consider(w, float(margin)) for w, margin in zip(points, margins, strict=True)]
    progress.start = min([at_x0, *seen], key=lambda candidate: candidate.fun).w


def descend(progress: Progress) -> Generator[Request, Reply, Status]:
    """The penalty as given, where that ends with nothing valid weaker ones; and the best point finished."""
    status = Status.BUDGET
    for i, (factor, beyond) in enumerate(TRIES):
        # Each try may use all that is left once something is valid, and half of it before.
        status = yield from _once(progress, factor, beyond=beyond, patient=i == len(TRIES) - 1)
        if progress.is_valid or status in (Status.NONFINITE, Status.CALLBACK):
            break
    yield from finish(progress, status, progress.left)
    return status


def _levels(progress: Progress) -> Generator[Request, Reply, Status]:
    """Several strengths of the penalty within one budget; the sparsest valid point of all is kept."""
    count, ends, status = progress.aim.search, [], Status.BUDGET
    for i in range(count):
        progress.best = None
        factor = 4.0 ** (2 * i / (count - 1) - 1) if count > 1 else 1.0
        # Shares of the same size, of which each descent leaves the same part for what follows.
        share = progress.left // (count - i)
        kept = int(FINISH_SHARE * share)
        status = yield from _once(progress, factor, patient=True, allowed=share - kept)
        yield from finish(progress, status, kept)
        ends.append(chosen(progress))
        if status in (Status.CALLBACK, Status.NONFINITE):
            break
    progress.best = min(ends, key=lambda end: (not end.valid, np.count_nonzero(end.w), end.fun))
    return status


def _once(
    progress: Progress, factor: float, *, patient: bool, beyond: float = 0.0, allowed: int | None = None
) -> Generator[Request, Reply, Status]:
    aim, setting = progress.aim, progress.setting
    l1, l2 = aim.penalty.l1 * factor, aim.penalty.l2 * factor
    loss, method = LOSSES[aim.loss](progress.goal.kappa + beyond * progress.distance), aim.method
    if method is None:
        clip = aim.radius is not None
        method = recommended(progress.start, ElasticNet(l1, l2), setting.box, link=loss, radius=aim.radius, clip=clip)
    optimizer = Optimizer(progress.start, l1=l1, l2=l2, bounds=setting.box, method=method, rng=aim.seed)
    first = improved = progress.used
    least = np.inf
    allowed = progress.left - _kept_rows(progress) if allowed is None else allowed
    while True:
        query, spent = optimizer.query, progress.used - first
        if spent + len(query) > (allowed if progress.is_valid or patient else allowed // 2):
            return Status.BUDGET
        reply = yield Request(query, setting, lambda scores: progress.margins(scores)[:, None])
        progress.used += len(query)
        margins = reply[:, 0]
        optimizer.tell(margins if aim.method is None else loss(margins))
        if optimizer.status is not Status.RUNNING:
            progress.note = progress.note or optimizer.result.message
            return optimizer.status
        latest = optimizer.latest
        if latest is None or latest.nit != optimizer.nit:
            continue
        candidate = progress.consider(latest.x, float(margins[0]))
        hinge = max(candidate.margin, -progress.goal.kappa)
        progress.add(candidate.fun, hinge, latest.eta, latest.stationarity, latest.nnz)
        if not progress.shown(candidate, latest.nnz):
            return Status.CALLBACK
        if progress.is_valid and progress.best is not None and progress.best.fun < 0.998 * least:
            least, improved = progress.best.fun, progress.used
        if progress.is_valid and progress.used - improved > aim.patience * aim.budget:
            return Status.STALLED


def finish(
    progress: Progress, status: Status, allowed: int, slopes: NDArray[np.float64] | None = None
) -> Generator[Request, Reply, None]:
    """The best point refined and then, once it is valid, pruned and shrunk, unless the search was told to stop."""
    if progress.best is None or status in (Status.CALLBACK, Status.NONFINITE):
        return
    box, goal, last = progress.setting.box, progress.goal, progress.used + min(allowed, progress.left)
    if (rows := last - progress.used - int(POLISH_SHARE * allowed)) > 1:
        beyond = TRIES[1][1] * progress.distance
        pull, step = pull_of(progress), progress.aim.radius
        refined = refine(progress.best, goal, box, pull, rows, step=step, beyond=beyond, slopes=slopes)
        progress.best = yield from driven(progress, refined, ask_scores)
    if progress.best.valid and last > progress.used:
        polished = polish(progress.best, goal, box, last - progress.used)
        progress.best = yield from driven(progress, polished, ask_margins)


def pull_of(progress: Progress) -> Pull:
    """What is wanted of which class."""
    target, label = progress.aim.target, progress.label
    if progress.setting.kind == "PP":
        return Pull(label, kept=True)
    return Pull(label, kept=False) if target is None else Pull(target, kept=True)


def driven(
    progress: Progress,
    steps: Generator[list[Array], NDArray[np.float64], T],
    ask: Callable[[Progress, list[Array]], Asking],
) -> Generator[Request, Reply, T]:
    """What `steps` returns, its points asked."""
    try:
        points = next(steps)
        while True:
            points = steps.send((yield from ask(progress, points)))
    except StopIteration as stop:
        end: T = stop.value
        return end


def _kept_rows(progress: Progress) -> int:
    return int(FINISH_SHARE * progress.aim.budget)


def _shown(scores: NDArray[np.float64]) -> str:
    """The first scores, for a message."""
    return f"[{', '.join(f'{score:.3g}' for score in scores[:5])}{', ...' if scores.size > 5 else ''}]"
