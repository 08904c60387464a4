"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics.arrays import Array


class Status(Enum):
    """Why a run ended; the value is the sentence a person reads."""

    RUNNING = "the run has not ended"
    BUDGET = "the budget of queries is used up"
    MAX_SENT = "the allowed number of sent queries is used up, retries included"
    MAXITER = "the allowed number of iterations is done"
    MAX_TIME = "the allowed time is over"
    TARGET = "the objective fell to the target"
    CALLBACK = "the callback asked to stop"
    STALLED = "nothing better was found for a while"
    NOT_FOUND = "no valid explanation was found"
    INTERRUPTED = "the run was interrupted; the same call with its run_dir resumes it"
    NONFINITE = "the function gave a value that is not finite"
    DIVERGED = "the iterates left the range of floating point: use a larger eta or an adaptive step"
    ERROR = "the function failed"

    @property
    def success(self) -> bool:
        """Whether the run ended as it was told to."""
        return self in _SUCCESSES


_SUCCESSES = frozenset({Status.BUDGET, Status.MAXITER, Status.MAX_TIME, Status.TARGET, Status.CALLBACK, Status.STALLED})


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """One entry for every measured iterate, in order; arrays of one length.

    The last entry is the point measured with the query that is kept for the end: no step was taken from it, so
    its eta and stationarity are NaN.
    """

    nfev: NDArray[np.int64]
    """Queries used when it was known."""
    fun: NDArray[np.float64]
    """F(x_t) = f(x_t) + h(x_t)."""
    f: NDArray[np.float64]
    """f(x_t)."""
    eta: NDArray[np.float64]
    """The step size taken from x_t."""
    stationarity: NDArray[np.float64]
    """|G|_2 at x_t, from the estimated gradient."""
    nnz: NDArray[np.int64]
    """Non-zero coordinates of x_t."""

    def __len__(self) -> int:
        return self.fun.size

    @property
    def best(self) -> NDArray[np.float64]:
        """The least F so far: what to draw of the recommended method, which begins again and keeps its best point."""
        return np.minimum.accumulate(self.fun)


@dataclass(frozen=True, slots=True, eq=False)
class Intermediate:
    """What a callback is shown after each iteration: the iterate x_t, with the f(x_t) just measured."""

    x: Array
    fun: float
    f: float
    nfev: int
    nit: int
    eta: float
    stationarity: float
    nnz: int


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The outcome of a run: `fun` is F measured at `x`, unless no value was ever measured (then it is NaN)."""

    x: Array
    fun: float
    f: float
    nfev: int
    nit: int
    status: Status
    message: str
    stationarity: float
    seed: int
    sent: int
    """Queries ever sent: `nfev` of them were used, the rest were retries or lost."""
    history: History = field(repr=False)

    @property
    def success(self) -> bool:
        """Whether the run ended as it was told to."""
        return self.status.success

    @property
    def used(self) -> int:
        """Queries whose values were used: another name of nfev, beside `sent` and `lost`."""
        return self.nfev

    @property
    def lost(self) -> int:
        """Queries sent whose values never came."""
        return self.sent - self.nfev
