"""The black box, counted: the one mutable object of the core.

It refuses before overspending, asks block by block, and checks what comes back. What was asked is written in a
ledger, which may live in memory or on a disk.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import positive_integer, some
from zomirror.engine.resend import accounted
from zomirror.errors import ArgumentError, BudgetError, OracleError, ZomirrorError
from zomirror.methods.query import Query
from zomirror.numerics.arrays import Array, Values, finite


class Ledger(Protocol):
    """The account of queries: `used` were answered, `sent` left here, `lost` were sent and never answered."""

    @property
    def used(self) -> int:
        """Rows whose values the method has received."""
        ...

    @property
    def sent(self) -> int:
        """Rows ever sent, retries and lost ones included."""
        ...

    def recall(self, rows: int, *, aside: bool = False) -> Values | None:
        """The recorded values of the next `rows` rows, when they were answered in an earlier life of the run.

        Rows `aside` are not part of the trajectory: a longer run would not have asked them there.
        """
        ...

    def affords(self, rows: int) -> bool:
        """Whether `rows` more rows may be sent."""
        ...

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """Write down that `rows` rows are about to be sent; BudgetError when that is too many.

        Before they are answered or lost, this says that rows of the same batch are sent once more.
        """
        ...

    def lose(self, reason: str) -> None:
        """Write down that the rows last sent will not be answered."""
        ...

    def record(self, values: Values) -> None:
        """Write down their values: (rows,), or (rows, k) where k numbers are kept of each."""
        ...


class MemoryLedger:
    """A ledger that lives as long as the process."""

    def __init__(self, max_sent: int | None = None) -> None:
        self.used = 0
        self.sent = 0
        self.max_sent = max_sent

    def recall(self, rows: int, *, aside: bool = False) -> None:
        """There is no earlier life."""

    def lose(self, reason: str) -> None:
        """What was sent stays counted."""

    def affords(self, rows: int) -> bool:
        """Whether the cap allows it."""
        return self.max_sent is None or self.sent + rows <= self.max_sent

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """Count, or refuse."""
        refuse_overspending(self.sent, rows, self.max_sent)
        self.sent += rows

    def record(self, values: Values) -> None:
        """Count."""
        self.used += len(values)


def refuse_overspending(sent: int, rows: int, max_sent: int | None) -> None:
    """Raise BudgetError when `rows` more rows would pass the cap."""
    if max_sent is not None and sent + rows > max_sent:
        raise BudgetError(
            f"expected to send at most {max_sent} queries, but {sent} were sent and {rows} more are needed: "
            "raise max_sent to go on"
        )


@dataclass(frozen=True, slots=True)
class Retry:
    """`on_error` policy: send a failed block again, at most `times` times; every attempt counts as sent."""

    times: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", positive_integer("times", self.times))


class Again:
    """Charges rows that are sent once more to the ledgers whose batch they are of, each with its number of rows.

    Which rows of a joint batch they were is not known: they are dealt out from the first ledger on.
    """

    def __init__(self, owners: Sequence[tuple[Ledger, int]]) -> None:
        self._owners = owners
        self.refused: ZomirrorError | None = None
        """Why they were not allowed to leave."""

    def __call__(self, rows: int) -> None:
        """Write them down before they leave."""
        try:
            for ledger, most in cycle(self._owners):
                if rows <= 0:
                    return
                ledger.begin(min(rows, most))
                rows -= most
        except ZomirrorError as error:
            self.refused = error
            raise


class Oracle:
    """f, asked in batches: maps a Query to one float64 value a row."""

    def __init__(
        self,
        fun: Callable[..., Any],
        budget: int,
        *,
        ledger: Ledger | None = None,
        vectorized: bool = True,
        on_error: Retry | None = None,
    ) -> None:
        self.fun = fun
        self.budget = positive_integer("budget", budget)
        self.ledger = MemoryLedger() if ledger is None else ledger
        self.vectorized = vectorized
        self.on_error = on_error
        self._buffer = _Buffer()

    @property
    def remaining(self) -> int:
        """Queries of the budget not used yet."""
        return self.budget - self.ledger.used

    def __call__(self, query: Query, *, aside: bool = False) -> Values:
        """The values of the query's points; refused whole when the budget does not hold it."""
        if not aside:
            self._refuse_beyond(len(query))
        parts = [self._block(query, start, stop, aside=aside) for start, stop in query.blocks()]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _block(self, query: Query, start: int, stop: int, *, aside: bool) -> Values:
        recorded = self.ledger.recall(stop - start, aside=aside)
        if recorded is not None:
            return recorded
        if aside:  # those that are recorded have been counted
            self._refuse_beyond(stop - start)
        return self._ask(query, start, stop, aside=aside)

    def _refuse_beyond(self, rows: int) -> None:
        if rows > self.remaining:
            raise BudgetError(
                f"expected at most {self.remaining} more queries (budget {self.budget}), got {rows}: nothing was sent"
            )

    def _ask(self, query: Query, start: int, stop: int, *, aside: bool) -> Values:
        attempts = 1 + (self.on_error.times if self.on_error else 0)
        first = self.ledger.used
        points = self._buffer.view(query, start, stop)  # before they count as sent: a kill may come at any moment
        for attempt in range(1, attempts + 1):
            self.ledger.begin(stop - start, aside=aside)
            again = Again([(self.ledger, stop - start)])
            try:
                with accounted(again):
                    answer = self._call(query, points, start, stop)
            except Exception as error:
                if error is again.refused:
                    self.ledger.lose(type(error).__name__)
                    raise
                if attempt == attempts:
                    self.ledger.lose(type(error).__name__)
                    raise OracleError(
                        f"the function raised {type(error).__name__}: {error} (queries {first} to "
                        f"{first + stop - start - 1} of the run, attempt {attempt} of {attempts})",
                        rows=range(first, first + stop - start),
                    ) from error
            else:
                try:
                    values = checked_values(answer, stop - start, first)
                except OracleError:
                    self.ledger.lose("values that are not one number a row")
                    raise
                self.ledger.record(values)
                return values
        raise AssertionError("unreachable")

    def _call(self, query: Query, points: Array, start: int, stop: int) -> Any:
        samples = query.samples(start, stop) if query.stochastic else None
        return call(self.fun, points, samples, vectorized=self.vectorized)


def call(fun: Callable[..., Any], points: Array, samples: NDArray[np.int64] | None, *, vectorized: bool) -> Any:
    """What `fun` answers to the points, of the random draws `samples` if it is stochastic."""
    if samples is None:
        return fun(points) if vectorized else _stack([fun(row) for row in points])
    if vectorized:
        return fun(points, samples)
    return _stack([fun(row, int(draw)) for row, draw in zip(points, samples, strict=True)])


LINE = 64
"""Points begin on a line of the cache, and with them each row whose length allows it: no vector crosses two lines."""


class _Buffer:
    """One block of memory for the points, reused unless the function kept a reference to it."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._rows: Array = np.empty((0, 0))
        self._readable = memoryview(b"")
        self._lent: weakref.ref[Array] | None = None

    def view(self, query: Query, start: int, stop: int) -> Array:
        """The points start .. stop-1, read-only, so that the function cannot write into what we count on."""
        shape, dtype = (stop - start, query.d), query.dtype
        held = self._lent is not None and self._lent() is not None
        if held or self._rows.shape != shape or self._rows.dtype != dtype:
            need = shape[0] * shape[1] * dtype.itemsize
            if held or self._memory.size < need:
                memory = np.empty(need + LINE, np.uint8)
                self._memory = memory[-memory.ctypes.data % LINE :][:need]
            self._rows = self._memory[:need].view(dtype).reshape(shape)
            self._readable = self._memory.data[:need].toreadonly()
        query.points(start, stop, out=self._rows)
        # numpy takes this for a foreign buffer, so whatever is made of the points keeps `lent` alive.
        lent: Array = np.frombuffer(self._readable, dtype)
        self._lent = weakref.ref(lent)
        return lent.reshape(shape)


def _stack(answers: list[Any]) -> Any:
    """One number per row from a function of one point, which may give 0-d or one-element arrays."""
    for answer in answers:
        if np.size(answer) != 1:
            raise ArgumentError(f"expected one number for one point, got shape {np.shape(answer)}")
    return np.array([np.reshape(answer, ()) for answer in answers])


def checked_values(answer: Any, rows: int, first: int = 0) -> Values:
    """`answer` as float64 values of shape (rows,), or OracleError with what to return instead."""
    where = range(first, first + rows)
    try:
        given = np.asarray(answer)
    except ValueError:
        raise OracleError("expected one number per row, got a ragged sequence", rows=where) from None
    if given.dtype.kind not in "biuf":
        raise OracleError(
            f"expected values that are real numbers, got dtype {given.dtype}: return one float per row",
            rows=where,
        )
    if given.shape != (rows,):
        raise OracleError(
            f"expected values of shape ({rows},), got {given.shape}: return one number per row", rows=where
        )
    return given.astype(np.float64)


def nonfinite_rows(values: Values) -> str:
    """`row 3` or `rows 1, 2 and 7 more` for the values that are NaN or infinite; empty when all are finite."""
    if finite(values):
        return ""
    bad = np.flatnonzero(~np.isfinite(values))
    return f"{values[bad[0]]} in {some(bad, 'row')} of the batch"
