"""What a search is asked for, and what it has seen so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Glimpse, Goal
from zomirror.contrast.driver import Scores
from zomirror.contrast.loss import Hinge, Loss, Softplus, change_margin, keep_margin
from zomirror.features.vector import Setting
from zomirror.methods.descent import Method
from zomirror.numerics.arrays import Array
from zomirror.problem import ElasticNet
from zomirror.result import History, Status

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


class Stopped(Exception):  # noqa: N818 - not an error
    """The callback asked to stop."""


class Progress:
    """What a search has seen so far: the one thing in it that changes."""

    def __init__(self, setting: Setting, aim: Aim, callback: Callback | None = None) -> None:
        self.setting, self.aim, self.callback = setting, aim, callback
        self.goal = Goal(aim.penalty, aim.kappa)
        self.label = -1 if aim.label is None else aim.label
        self.scores = np.empty(0)
        self.best: Candidate | None = None
        """The best of all points asked."""
        self.ends: list[Candidate] = []
        """Where each level of `search=` ended; the sparsest of them is wanted, not the best."""
        self.distance = 0.0
        """The margin where nothing has been changed (PN) or put back (PP) yet."""
        self.used = 0
        self.note = ""
        self._rows: list[tuple[float, ...]] = []

    @property
    def left(self) -> int:
        """Queries for the descent and the polish; one stays for the end."""
        return self.aim.budget - self.used - 1

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

    def measured(self, candidate: Candidate, eta: float = np.nan, stationarity: float = np.nan) -> None:
        """One more entry of the history, shown to the callback, which may end the search."""
        nnz = int(np.count_nonzero(candidate.w))
        hinge = max(candidate.margin, -self.goal.kappa)
        self._rows.append((self.used, candidate.fun, hinge, eta, stationarity, nnz))
        if self.callback is None:
            return
        best = self.best.fun if self.best is not None and self.best.valid else np.nan
        try:
            self.callback(Glimpse(self.setting.to_change(candidate.w), candidate.fun, best, self.used, nnz))
        except StopIteration:
            self.callback = None  # who has asked to stop is not called again
            raise Stopped from None

    def history(self) -> History:
        """The iterates' numbers."""
        nfev, fun, f, eta, stationarity, nnz = np.array(self._rows, dtype=np.float64).reshape(-1, 6).T
        return History(nfev.astype(np.int64), fun, f, eta, stationarity, nnz.astype(np.int64))
