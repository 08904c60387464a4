"""What a run leaves behind: F along the way and how it ended, small enough to keep thousands of."""

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
"""Up to here F is kept after every step, beyond it after every fifth."""


def steps(iterations: int) -> tuple[int, ...]:
    """After how many steps F is kept; a step is 201 queries, whatever the method does with them."""
    kept = [s for s in range(iterations) if s <= EVERY or s % 5 == 0]
    return (*kept, iterations)


@dataclass(frozen=True, slots=True)
class Outcome:
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
    """F after `steps(iterations)` steps, to five digits; the least so far of the recommended method, which gives back
    the best point that it has met."""
    valid: bool
    """Whether the point that was returned is an explanation: the class kept (PP) or changed (PN)."""
    nnz: int
    """Non-zero coordinates of the point that was returned."""
    queries: int
    seconds: float
    network: str = ""
    upscale: int = 1
    shared: bool = False
    repeat: int = 0
    replayed: bool = False

    @property
    def place(self) -> tuple[object, ...]:
        """Its place in a study. Of two runs at one place, whose keys differ, the later one counts."""
        what = (self.data, self.settings, self.network, self.kind, self.algorithm, self.image)
        return (*what, self.iterations, self.upscale, self.shared, self.repeat, self.replayed)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without what goes without saying."""
        usual = {item.name: item.default for item in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    @classmethod
    def from_dict(cls, document: Any) -> Outcome:
        """The same again; DataError when it is something else."""
        try:
            found = cls(**{item.name: document[item.name] for item in fields(cls) if item.name in document})
            fun = tuple(float(value) for value in found.fun)
            whole = len(fun) == len(steps(int(found.iterations))) and all(map(math.isfinite, fun))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"expected the outcome of a run, got {str(document)[:80]}") from error
        if not whole:
            raise DataError(f"expected F at {len(steps(found.iterations))} points of run {found.key}, got {len(fun)}")
        return cls(**(asdict(found) | {"fun": fun}))


def outcome(task: Task, label: int, result: Result, *, valid: bool, seconds: float) -> Outcome:
    """What is kept of a result."""
    # x_k was reached with the queries that had been used when x_{k-1} was known.
    reached = np.concatenate([[0], result.history.nfev[:-1]])
    at = np.searchsorted(reached, QUERIES * np.array(steps(task.iterations)), side="right") - 1
    fun = result.history.best if task.algorithm == RECOMMENDED.name else result.history.fun
    return Outcome(
        key=task.key,
        data=task.data,
        settings=task.settings,
        kind=task.kind,
        algorithm=task.algorithm,
        image=task.image,
        label=label,
        network=task.network,
        iterations=task.iterations,
        upscale=task.upscale,
        shared=task.shared,
        repeat=task.repeat,
        replayed=task.replayed,
        fun=tuple(float(f"{value:.5g}") for value in fun[at]),
        valid=valid,
        nnz=int(np.count_nonzero(result.x)),
        queries=result.nfev,
        seconds=round(seconds, 2),
    )
