"""The result of a run: its status, history and final point."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics.arrays import Array


class Status(Enum):
    """Why a run ended; the value is the message for the user."""

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
        """Whether the run ended normally: by a limit, a target, the callback or a stall."""
        return self in _SUCCESSES


_SUCCESSES = frozenset({Status.BUDGET, Status.MAXITER, Status.MAX_TIME, Status.TARGET, Status.CALLBACK, Status.STALLED})


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """One entry per measured iterate, in order; all arrays have the same length.

    The last entry is the point measured with the query reserved for the end. No step was taken from it, so its eta and
    stationarity are NaN.
    """

    nfev: NDArray[np.int64]
    """Queries used up to and including its measurement."""
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
        """The least F so far. Plot this for the recommended method, which restarts and keeps its best point."""
        return np.minimum.accumulate(self.fun)


@dataclass(frozen=True, slots=True, eq=False)
class Intermediate:
    """What a callback gets after each iteration: the iterate x_t with the measured f(x_t)."""

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
    """The result of a run: `fun` is F measured at `x`, or NaN if nothing was measured."""

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
    """Queries ever sent: `nfev` of them were used, the others were retries or lost."""
    history: History = field(repr=False)

    @property
    def success(self) -> bool:
        """Whether the run ended normally: by a limit, a target, the callback or a stall."""
        return self.status.success

    @property
    def used(self) -> int:
        """Queries whose values were used: the same as nfev."""
        return self.nfev

    @property
    def lost(self) -> int:
        """Queries that were sent but whose values were not used."""
        return self.sent - self.nfev
