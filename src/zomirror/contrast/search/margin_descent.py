"""One descent of the search for an explanation."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zomirror.contrast.candidate import Candidate
from zomirror.contrast.loss import LOSSES
from zomirror.contrast.progress import Progress
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request
from zomirror.methods.presets import recommended
from zomirror.numerics.arrays import Array
from zomirror.optimizer import Optimizer
from zomirror.problem import ElasticNet
from zomirror.result import Status

WARM = 0.1
"""A descent never stalls within the first 10 % of the budget."""
SLOW = {"PN": (0.05, 0.05), "PP": (0.1, 0.01)}
"""A PN descent stalls when 5 % of the budget lowered its best valid F by less than 5 %, a PP descent when 10 % of the
budget lowered it by less than 1 %: a PP loses its features one by one, with long plateaus between."""


class Course:
    """A descent from `start`: penalty scaled by `factor`, kappa raised by `beyond` times the margin at w = 0."""

    def __init__(
        self, progress: Progress, start: Array, best: Candidate | None = None, factor: float = 1.0, beyond: float = 0.0
    ) -> None:
        options, place = progress.options, progress.place
        l1, l2 = options.penalty.l1 * factor, options.penalty.l2 * factor
        self.best = best
        """The best iterate so far."""
        self._progress = progress
        self._loss = LOSSES[options.loss](progress.goal.kappa + beyond * progress.distance)
        method = options.method
        if method is None:
            radius, clip = progress.radius, progress.radius is not None
            method = recommended(start, ElasticNet(l1, l2), place.box, link=self._loss, radius=radius, clip=clip)
        self._optimizer = Optimizer(start, l1=l1, l2=l2, bounds=place.box, method=method, rng=progress.seed)
        self._used = 0
        self._mark = (0, np.inf)
        """Queries used at the last check for a stall, and the best F then."""

    @property
    def valid(self) -> bool:
        """Whether an iterate was valid."""
        return self.best is not None and self.best.valid

    def run(self, allowed: int, unless_valid: int | None = None) -> Generator[Request, Answer, Status]:
        """Run for at most `allowed` queries, or `unless_valid` while no iterate was valid; return why it ended."""
        progress, optimizer, options = self._progress, self._optimizer, self._progress.options
        first, most = self._used, allowed if unless_valid is None else unless_valid
        while True:
            query = optimizer.query
            if self._used - first + len(query) > (allowed if self.valid else most):
                return Status.BUDGET
            margins = yield Request(query, progress.kept_margins, progress.place.inputs)
            progress.used += len(query)
            self._used += len(query)
            optimizer.tell(margins if options.method is None else self._loss(margins))
            if optimizer.status is not Status.RUNNING:
                progress.note = progress.note or optimizer.result.message
                return optimizer.status
            latest = optimizer.latest
            if latest is None or latest.nit != optimizer.nit:
                continue
            candidate = progress.consider(latest.x, float(margins[0]))
            self.best = candidate if candidate.better_than(self.best) else self.best
            progress.measured(candidate, latest.eta, latest.stationarity)
            if self._slow():
                return Status.STALLED

    def _slow(self) -> bool:
        """Whether the descent has stalled (see SLOW and WARM)."""
        budget, (since, before) = self._progress.options.budget, self._mark
        lapse, gain = SLOW[self._progress.place.kind]
        if self.best is None or not self.best.valid or self._used - since < lapse * budget:
            return False
        self._mark = (self._used, self.best.fun)
        return self._used > WARM * budget and self.best.fun > before - gain * abs(before)
