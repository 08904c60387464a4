"""The state of a search: its best point, its history and the queries used."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Glimpse, Goal
from zomirror.contrast.loss import change_margin, keep_margin
from zomirror.contrast.options import Options
from zomirror.errors import OracleError
from zomirror.features.place import Place
from zomirror.numerics.arrays import Array
from zomirror.result import History, HistoryLog, Status

Callback = Callable[[Glimpse], object]
_NO_DEPTH = 1 << 30
Scores = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The outcome of a search."""

    status: Status
    label: int
    best: Candidate
    scores_before: NDArray[np.float64]
    scores_after: NDArray[np.float64]
    history: History
    note: str
    steady: bool = True
    """Whether the model gave the same answer to the same input."""
    others: tuple[tuple[Candidate, NDArray[np.float64]], ...] = ()
    """Further answers and their scores."""


class CallbackStop(Exception):  # noqa: N818 - not an error
    """The callback asked to stop."""


class Progress:
    """The state of a search: the only mutable object in it."""

    def __init__(
        self,
        place: Place,
        options: Options,
        seed: int,
        radius: float | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.place, self.options, self.seed, self.callback = place, options, seed, callback
        self.radius = radius
        """The finite-difference step for piecewise constant scores (trees); None for others."""
        self.goal = Goal(options.penalty, options.kappa or 0.0, fewest=options.fewest)
        self.label = -1 if options.label is None else options.label
        self.scores = np.empty(0)
        """The scores of x0."""
        self.best: Candidate | None = None
        """The best of all points queried."""
        self.ends: list[Candidate] = []
        """The result of each level of `search=`; the sparsest valid one is returned."""
        self.others: list[Candidate] = []
        """Further answers, where several were asked for."""
        self.distance = 0.0
        """The margin at w = 0, or 0 if it is negative: at x0 for a PN, at the baseline for a PP."""
        self.used = 0
        self.note = ""
        self.far: tuple[Array, NDArray[np.float64]] | None = None
        """A point far from x0 and its scores, which were queried beside x0."""
        self.answers: NDArray[np.float64] | None = None
        """The scores of one input that was answered differently; None while the model is deterministic."""
        self.spread = 0.0
        """The standard deviation of the margin of such an input."""
        self.floor = 0.0
        """The margin that an answer must exceed whatever the noise; the goal asks for more."""
        self.modest: Goal | None = None
        """The goal without the margin that kappa=None adds, for searches that cannot reach it."""
        self.held = 0
        """Queries kept for confirming the answer of a model that is not deterministic."""
        self.deeper: dict[int, Candidate] = {}
        """The best valid point for each power of two of the margin."""
        self._log = HistoryLog()

    @property
    def left(self) -> int:
        """Queries left; one more is reserved for the scores of the result, and some for confirming it under noise."""
        return self.options.budget - self.used - 1 - self.held

    def consider(self, w: Array, margin: float) -> Candidate:
        """Evaluate the point, and keep it if it is the best so far."""
        candidate = self.goal.candidate(w, margin, self.place.sizes(w))
        if candidate.better_than(self.best):
            self.best = candidate
        if candidate.valid and margin < 0:
            depth = math.frexp(margin)[1]
            if candidate.better_than(self.deeper.get(depth)):
                self.deeper[depth] = candidate
        return candidate

    def consider_all(self, points: Sequence[Array] | Array, margins: NDArray[np.float64]) -> Candidate:
        """Evaluate a batch and keep its best valid points; return the best one, or the one with the least margin."""
        valid = np.flatnonzero(margins < -self.goal.floor)
        rows = valid if valid.size else np.argsort(margins, kind="stable")[:1]  # NaN comes last
        counted = self.goal.fewest or self.goal.pixels is not None
        if counted or self.place.space != "vector" or rows.size == 1:
            seen = [self.consider(points[i], float(margins[i])) for i in rows]
            return min(seen, key=lambda one: (not one.valid, one.fun))
        fun, _ = self.goal.judge(np.asarray(points)[rows], margins[rows])
        depths = np.where(margins[rows] < 0, np.frexp(margins[rows])[1], _NO_DEPTH).tolist()
        best: dict[int, int] = {}
        for i, (depth, one) in enumerate(zip(depths, fun.tolist(), strict=True)):
            if depth not in best or one < fun[best[depth]]:
                best[depth] = i
        seen = [self.consider(points[rows[i]], float(margins[rows[i]])) for i in best.values()]
        return min(seen, key=lambda one: one.fun)

    def aim(self, goal: Goal) -> None:
        """Change the goal, and judge the points seen so far by it."""
        seen = [*([] if self.best is None else [self.best]), *self.deeper.values()]
        self.goal, self.best, self.deeper = goal, None, {}
        for one in seen:
            self.consider(one.w, one.margin)

    @property
    def chosen(self) -> Candidate:
        """The point to return: the sparsest valid result of several levels, else the best point, else x0."""
        if any(end.valid for end in self.ends):
            return min(self.ends, key=lambda end: (not end.valid, np.count_nonzero(end.w), end.fun))
        return self.best or Candidate(self.place.as_it_is, np.nan, np.nan, valid=False)

    def margins(self, scores: Scores) -> NDArray[np.float64]:
        """The margin of each row: negative where the class is kept (PP) or changed (PN)."""
        if self.place.kind == "PP":
            return keep_margin(scores, self.label).astype(np.float64)
        return change_margin(scores, self.label, self.options.target).astype(np.float64)

    def kept_scores(self, scores: Scores, rows: int) -> NDArray[np.float64]:
        """The scores as float64; OracleError if the number of classes has changed."""
        if self.scores.size not in (0, scores.shape[1]):
            raise OracleError(
                f"expected scores of {self.scores.size} classes, as in the first answer, got {scores.shape[1]}: "
                "score the same classes every time"
            )
        return scores.astype(np.float64)

    def kept_margins(self, scores: Scores, rows: int) -> NDArray[np.float64]:
        """The margins of the scores; OracleError if the number of classes has changed."""
        self.kept_scores(scores[:1], 1)
        return self.margins(scores)

    def measured(self, candidate: Candidate, eta: float = np.nan, stationarity: float = np.nan) -> None:
        """Add an entry to the history and call the callback, which may end the search by CallbackStop."""
        nnz = int(np.count_nonzero(self.place.sizes(candidate.w)))
        hinge = max(candidate.margin, -self.goal.kappa)
        self._log.add((self.used, candidate.fun, hinge, eta, stationarity, nnz))
        self.shown(candidate)

    def shown(self, candidate: Candidate) -> None:
        """Call the callback, which may end the search by CallbackStop."""
        if self.callback is None:
            return
        nnz = int(np.count_nonzero(self.place.sizes(candidate.w)))
        best, w = (self.best.fun, self.best.w) if self.best is not None and self.best.valid else (np.nan, None)
        try:
            self.callback(Glimpse(self.place.change(candidate.w), candidate.fun, best, self.used, nnz, self.place, w))
        except StopIteration:
            self.callback = None  # not called again after it asked to stop
            raise CallbackStop from None

    def history(self) -> History:
        """The history so far, as arrays."""
        return self._log.history()

    def found(
        self,
        status: Status,
        scores_after: NDArray[np.float64] | None = None,
        note: str = "",
        best: Candidate | None = None,
        others: tuple[tuple[Candidate, NDArray[np.float64]], ...] = (),
    ) -> Found:
        """The outcome of a search that ends now."""
        return Found(
            status=status,
            label=self.label,
            best=best or self.chosen,
            scores_before=self.scores,
            scores_after=np.full_like(self.scores, np.nan) if scores_after is None else scores_after,
            history=self.history(),
            note=note or self.note,
            steady=self.answers is None,
            others=others,
        )
