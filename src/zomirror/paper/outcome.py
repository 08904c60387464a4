"""The stored result of a run: F after selected steps and how the run ended."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from zomirror.errors import DataError
from zomirror.paper.grid import Task
from zomirror.paper.settings import QUERIES, RECOMMENDED
from zomirror.result import Result

EVERY = 50
"""F is stored after every step up to this one, and after every fifth step beyond it."""


def steps(iterations: int) -> tuple[int, ...]:
    """The steps after which F is stored; a step is 201 queries of any method."""
    kept = [s for s in range(iterations) if s <= EVERY or s % 5 == 0]
    return (*kept, iterations)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """One run of the grid."""

    key: str
    data: str
    settings: str
    kind: str
    algorithm: str
    image: int
    label: int
    iterations: int
    fun: tuple[float, ...]
    """F after `steps(iterations)` steps, to five digits; for the recommended method, which returns its best point, the
    lowest F so far."""
    valid: bool
    """Whether the returned point is an explanation: the class is kept (PP) or changed (PN)."""
    nnz: int
    """Non-zero coordinates of the returned point."""
    queries: int
    seconds: float
    network: str = ""
    upscale: int = 1
    shared: bool = False
    repeat: int = 0
    replayed: bool = False

    @property
    def place(self) -> tuple[object, ...]:
        """Its place in a study; of two runs at one place, made with different methods, the later one is kept."""
        what = (self.data, self.settings, self.network, self.kind, self.algorithm, self.image)
        return (*what, self.iterations, self.upscale, self.shared, self.repeat, self.replayed)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without the fields that have their default values."""
        usual = {item.name: item.default for item in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    @classmethod
    def from_dict(cls, document: Any) -> RunOutcome:
        """The outcome that `to_dict` described; DataError for any other document."""
        try:
            found = cls(**{item.name: document[item.name] for item in fields(cls) if item.name in document})
            fun = tuple(float(value) for value in found.fun)
            whole = len(fun) == len(steps(int(found.iterations))) and all(map(math.isfinite, fun))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"expected the outcome of a run, got {str(document)[:80]}") from error
        if not whole:
            raise DataError(f"expected F at {len(steps(found.iterations))} points of run {found.key}, got {len(fun)}")
        return cls(**(asdict(found) | {"fun": fun}))


def outcome(task: Task, label: int, result: Result, *, valid: bool, seconds: float) -> RunOutcome:
    """The outcome of a task from the result of its run."""
    # The queries used before x_k was known are those counted at x_{k-1}.
    reached = np.concatenate([[0], result.history.nfev[:-1]])
    at = np.searchsorted(reached, QUERIES * np.array(steps(task.iterations)), side="right") - 1
    fun = result.history.best if task.algorithm == RECOMMENDED.name else result.history.fun
    of_task = {item.name: getattr(task, item.name) for item in fields(RunOutcome) if hasattr(task, item.name)}
    return RunOutcome(
        **of_task,
        label=label,
        fun=tuple(float(f"{value:.5g}") for value in fun[at]),
        valid=valid,
        nnz=int(np.count_nonzero(result.x)),
        queries=result.nfev,
        seconds=round(seconds, 2),
    )
