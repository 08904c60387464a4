"""The search for one PP or PN, as a generator that an engine drives.

    1. Ask the label of x0 (and the scores of the baseline, for a PP).
    2. Descend loss(margin) + h(w); remember the best valid iterate, which costs nothing.
    3. If none is valid, descend again with weaker penalties.
    4. Prune and shrink the best valid point.
    5. Ask it once more, for all its scores.

Every row asked counts, and the search never asks more than its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zomirror.arrays import Array
from zomirror.contrast.candidate import Candidate, Glimpse, Goal
from zomirror.contrast.engine import Reply, Request, Scores, Search
from zomirror.contrast.polish import polish
from zomirror.contrast.setting import Setting
from zomirror.descent import Method
from zomirror.errors import ArgumentError
from zomirror.losses import Hinge, Loss, Softplus, change_margin, keep_margin
from zomirror.optimizer import Optimizer
from zomirror.penalty import ElasticNet
from zomirror.presets import recommended
from zomirror.query import Query, Segment
from zomirror.result import History, Status

ALONG = (1.0, 0.5, 0.25, 0.125, 0.0625)
"""Where on the way from x0 to the paper's start the recommended method looks for a better place to begin a PN."""
WEAKER = (1.0, 0.1, 0.01)
"""Factors of the penalty, tried in turn until something is valid."""
POLISH_SHARE = 0.1
"""The part of the budget that pruning and shrinking may use."""

Callback = Callable[[Glimpse], object]

LOSSES: dict[str, Callable[[float], Loss]] = {"hinge": Hinge, "softplus": Softplus}
"""From kappa to what is descended; the objective that is reported is always the hinge's."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What is wanted of an explanation, beside its decision set."""

    penalty: ElasticNet
    kappa: float
    loss: str
    budget: int
    method: Method | None
    """None: the recommended method, whose memory is of the margin, not of its loss."""
    seed: int
    label: int | None = None
    target: int | None = None
    classes: int = 0
    """How many classes have names; 0: no names were given."""
    search: int = 0
    radius: float | None = None
    """How far to look for a change of the scores, where the model knows (trees)."""
    patience: float = 0.2
    """The descent ends when this part of the budget has brought no better valid point."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search ends with."""

    status: Status
    label: int
    best: Candidate
    scores_before: NDArray[np.float64]
    scores_after: NDArray[np.float64]
    history: History
    nfev: int
    note: str


class Progress:
    """What a search has seen so far: the one thing in it that changes."""

    def __init__(self, setting: Setting, aim: Aim, callback: Callback | None = None) -> None:
        self.setting, self.aim, self.callback = setting, aim, callback
        self.goal = Goal(aim.penalty, aim.kappa)
        self.label = -1 if aim.label is None else aim.label
        self.scores = np.empty(0)
        self.best: Candidate | None = None
        self.start = setting.start
        self.used = 0
        self.note = ""
        self._rows: list[tuple[float, ...]] = []

    @property
    def left(self) -> int:
        """Queries for the descent and the polish; one stays for the end."""
        return self.aim.budget - self.used - 1

    @property
    def is_valid(self) -> bool:
        """Whether something valid was seen."""
        return self.best is not None and self.best.valid

    def consider(self, w: Array, margin: float) -> Candidate:
        """Keep the point if it is the best so far."""
        candidate = self.goal.candidate(w, margin)
        if candidate.better_than(self.best):
            self.best = candidate
        return candidate

    def margins(self, scores: Scores) -> NDArray[np.float64]:
        """How far from valid each row is."""
        if self.setting.kind == "PP":
            return keep_margin(scores, self.label).astype(np.float64)
        return change_margin(scores, self.label, self.aim.target).astype(np.float64)

    def add(self, fun: float, f: float, eta: float, stationarity: float, nnz: int) -> None:
        """One more iterate."""
        self._rows.append((self.used, fun, f, eta, stationarity, nnz))

    def shown(self, candidate: Candidate, nnz: int) -> bool:
        """Show the iterate to the callback; False when it asks to stop."""
        if self.callback is None:
            return True
        best = self.best.fun if self.best is not None and self.best.valid else np.nan
        try:
            self.callback(Glimpse(self.setting.to_change(candidate.w), candidate.fun, best, self.used, nnz))
        except StopIteration:
            return False
        return True

    def history(self) -> History:
        """The iterates' numbers."""
        nfev, fun, f, eta, stationarity, nnz = np.array(self._rows, dtype=np.float64).reshape(-1, 6).T
        return History(nfev.astype(np.int64), fun, f, eta, stationarity, nnz.astype(np.int64))


Asking = Generator[Request, Reply, NDArray[np.float64]]


def search(progress: Progress) -> Search[Found]:
    """The whole of it; `progress` can be read by whoever made it, also after a failure."""
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
        scores = yield from _ask_scores(progress, [progress.best.w])
        return found(progress, Status.TARGET, scores[0])
    status = yield from (_levels(progress) if progress.aim.search else _descents(progress))
    yield from _polished(progress)
    best = chosen(progress)
    scores = yield from _ask_scores(progress, [best.w])
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
    scores = yield from _ask_scores(progress, points)
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
    if setting.kind == "PN" and aim.method is None:
        yield from _find_start(progress, seen[0])


def _find_start(progress: Progress, at_x0: Candidate) -> Generator[Request, Reply, None]:
    """Begin a PN where F is least between x0 and the centre of the decision set: five queries that save many."""
    centre, box = progress.setting.start, progress.setting.box
    points: list[Array] = [box.project(centre * centre.dtype.type(c)) for c in ALONG]
    margins = yield from _ask_margins(progress, points)
    seen = [progress.consider(w, float(margin)) for w, margin in zip(points, margins, strict=True)]
    progress.start = min([at_x0, *seen], key=lambda candidate: candidate.fun).w


def _descents(progress: Progress) -> Generator[Request, Reply, Status]:
    """The penalty as given; where that ends with nothing valid, weaker ones."""
    status = Status.BUDGET
    for i, factor in enumerate(WEAKER):
        # Each try may use all that is left once something is valid, and half of it before.
        status = yield from _descend(progress, factor, patient=i == len(WEAKER) - 1)
        if progress.is_valid or status in (Status.NONFINITE, Status.CALLBACK):
            break
    return status


def _levels(progress: Progress) -> Generator[Request, Reply, Status]:
    """Several strengths of the penalty within one budget; the sparsest valid point of all is kept."""
    count, ends, status = progress.aim.search, [], Status.BUDGET
    for i in range(count):
        progress.best = None
        factor = 4.0 ** (2 * i / (count - 1) - 1) if count > 1 else 1.0
        allowed = (progress.left - _polish_rows(progress)) // (count - i)
        status = yield from _descend(progress, factor, patient=True, allowed=allowed)
        yield from _polished(progress, _polish_rows(progress) // (count - i))
        ends.append(chosen(progress))
        if status is Status.CALLBACK:
            break
    progress.best = min(ends, key=lambda end: (not end.valid, np.count_nonzero(end.w), end.fun))
    return status


def _descend(
    progress: Progress, factor: float, *, patient: bool, allowed: int | None = None
) -> Generator[Request, Reply, Status]:
    aim, setting = progress.aim, progress.setting
    l1, l2 = aim.penalty.l1 * factor, aim.penalty.l2 * factor
    loss, method = LOSSES[aim.loss](progress.goal.kappa), aim.method
    if method is None:
        clip = aim.radius is not None
        method = recommended(progress.start, ElasticNet(l1, l2), setting.box, link=loss, radius=aim.radius, clip=clip)
    optimizer = Optimizer(progress.start, l1=l1, l2=l2, bounds=setting.box, method=method, rng=aim.seed)
    first = improved = progress.used
    least = np.inf
    allowed = progress.left - _polish_rows(progress) if allowed is None else allowed
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


def _polished(progress: Progress, allowed: int | None = None) -> Generator[Request, Reply, None]:
    """The best valid point, pruned and shrunk."""
    if progress.best is None or not progress.best.valid:
        return
    allowed = min(progress.left, _polish_rows(progress) if allowed is None else allowed)
    steps = polish(progress.best, progress.goal, progress.setting.box, allowed)
    try:
        points = next(steps)
        while True:
            margins = yield from _ask_margins(progress, points)
            points = steps.send(margins)
    except StopIteration as stop:
        progress.best = stop.value


def _polish_rows(progress: Progress) -> int:
    return int(POLISH_SHARE * progress.aim.budget)


def _ask_scores(progress: Progress, points: list[Array]) -> Asking:
    scores = yield Request(_query(points), progress.setting, lambda scores: scores.astype(np.float64))
    progress.used += len(points)
    return scores


def _ask_margins(progress: Progress, points: list[Array]) -> Asking:
    reply = yield Request(_query(points), progress.setting, lambda scores: progress.margins(scores)[:, None])
    progress.used += len(points)
    return reply[:, 0]


def _query(points: list[Array]) -> Query:
    return Query(tuple(Segment(w, 1) for w in points))


def _shown(scores: NDArray[np.float64]) -> str:
    """The first scores, for a message."""
    return f"[{', '.join(f'{score:.3g}' for score in scores[:5])}{', ...' if scores.size > 5 else ''}]"
