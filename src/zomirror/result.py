"""The result of a run: its status, history and final point."""

from __future__ import annotations

import math
from collections.abc import Iterator
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


MOST_ENTRIES = 4096
"""Groups of iterates that a history keeps, with one entry each: 230 kB in a checkpoint, and finer than any plot."""


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """One entry per measured iterate, in order; all arrays have the same length.

    The last entry is the point measured with the query reserved for the end. No step was taken from it, so its eta and
    stationarity are NaN.

    A long run keeps at most MOST_ENTRIES + 2 entries (4098): its first and its last iterate and, of every 2, 4, 8, ...
    iterates in between, the one with the least F. So `best` is exact at every entry. Which entries are kept depends on
    their number alone: a resumed run has the history of an uninterrupted one.
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


Entry = tuple[int, float, float, float, float, int]
"""nfev, fun, f, eta, stationarity and nnz of one measured iterate."""
_WIDTH = 7  # the number of the iterate, and its entry


class HistoryLog:
    """Collects the entries of a History in bounded memory.

    The iterates after the first are divided into groups of equal length, a power of 2; of each group the entry with
    the least F is kept. When there are MOST_ENTRIES groups, neighbours are joined.
    """

    __slots__ = ("_first", "_groups", "_last", "_length", "_open", "count")

    def __init__(self) -> None:
        self.count = 0
        """The number of iterates measured, kept or not."""
        self._length = 1
        self._first: tuple[int, Entry] | None = None
        self._groups: list[tuple[int, Entry]] = []  # complete ones
        self._open: tuple[int, Entry] | None = None  # the least of the group that is not complete
        self._last: tuple[int, Entry] | None = None

    def add(self, entry: Entry) -> None:
        """Add the entry of the next iterate."""
        self._last = numbered = (self.count, entry)
        if self.count == 0:
            self._first = numbered
        elif self.count % self._length == 0:
            self._groups.append(numbered if self._open is None else _lesser(self._open, numbered))
            self._open = None
            if len(self._groups) == MOST_ENTRIES:
                pairs = zip(self._groups[::2], self._groups[1::2], strict=True)
                self._groups = [_lesser(one, other) for one, other in pairs]
                self._length *= 2
        else:
            self._open = numbered if self._open is None else _lesser(self._open, numbered)
        self.count += 1

    def table(self) -> NDArray[np.float64]:
        """The entries kept, each after the number of its iterate: what `restore` takes."""
        return np.array([(i, *entry) for i, entry in self._kept()], dtype=np.float64).reshape(-1, _WIDTH)

    def history(self) -> History:
        """The entries kept, as arrays."""
        _, nfev, fun, f, eta, stationarity, nnz = self.table().T.copy()
        return History(nfev.astype(np.int64), fun, f, eta, stationarity, nnz.astype(np.int64))

    @classmethod
    def restored(cls, table: NDArray[np.float64]) -> HistoryLog:
        """The log that made this table; ValueError if none did."""
        if table.ndim != 2 or table.shape[1] != _WIDTH or table.dtype != np.float64:
            raise ValueError(f"is {table.dtype} {table.shape}, expected {_WIDTH} columns of float64")
        log = cls()
        if not len(table):
            return log
        numbers = table[:, 0]
        if numbers[0] != 0 or not (np.diff(numbers) > 0).all() or (numbers != np.floor(numbers)).any():
            raise ValueError("does not number its entries")
        rows = [(int(i), (int(n), fun, f, eta, g, int(nnz))) for i, n, fun, f, eta, g, nnz in table.tolist()]
        log._first, log._last, log.count = rows[0], rows[-1], rows[-1][0] + 1
        while (log.count - 1) // log._length >= MOST_ENTRIES:
            log._length *= 2
        whole = (log.count - 1) // log._length
        for numbered in rows[1:]:
            group = (numbered[0] - 1) // log._length
            if group == len(log._groups) < whole:
                log._groups.append(numbered)
            elif group == whole and log._open is None:
                log._open = numbered
            elif numbered is not rows[-1]:
                raise ValueError("holds other entries than are kept")
        if len(log._groups) != whole or (log._open is None) != ((log.count - 1) % log._length == 0):
            raise ValueError("lacks entries")
        return log

    def _kept(self) -> Iterator[tuple[int, Entry]]:
        if self._first is not None and self._last is not None:
            yield self._first
            yield from self._groups
            shown = self._groups[-1][0] if self._groups else 0
            if self._open is not None:
                yield self._open
                shown = self._open[0]
            if self._last[0] != shown:
                yield self._last


def _lesser(one: tuple[int, Entry], other: tuple[int, Entry]) -> tuple[int, Entry]:
    """The entry with the lesser F, the earlier of equals; NaN is larger than any number."""
    return other if other[1][1] < one[1][1] or math.isnan(one[1][1]) else one


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
