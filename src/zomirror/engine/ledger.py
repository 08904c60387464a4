"""The account of the queries of one search: in memory, or in the journal of a run directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import BudgetError, RunError
from zomirror.runs.directory import RunDirectory

Answer = NDArray[np.float64]
"""What is kept of an answer: (rows,), or (rows, k) where k numbers are kept of each row."""
Arrays = Mapping[str, NDArray[Any]]


class Ledger(Protocol):
    """The account of queries: `used` were answered, `sent` left here, the difference was lost."""

    @property
    def used(self) -> int:
        """Rows whose values the search has received."""
        ...

    @property
    def sent(self) -> int:
        """Rows ever sent, retries and lost ones included."""
        ...

    @property
    def keeps_points(self) -> bool:
        """Whether answers are kept with a checksum of their points."""
        ...

    def recall(self, rows: int, points: int, *, aside: bool = False) -> Answer | None:
        """The recorded values of the next `rows` rows, if an earlier process was answered; None otherwise.

        `points` is the checksum of the points that would be asked: RunError if the recorded ones were others. Rows
        `aside` are not part of the trajectory: a longer run would not have asked them there.
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

    def record(self, values: Answer, points: int) -> None:
        """Write down their values."""
        ...

    @property
    def checkpoint_due(self) -> bool:
        """Whether it is time to save the state of the search."""
        ...

    def checkpoint(self, state: Arrays) -> None:
        """Save the state of the search, so that a resumed run need not replay every answer."""
        ...

    def restore(self, into: Callable[[Arrays], object]) -> None:
        """Give the last saved state to `into`, if there is one; `into` refuses one that does not fit by RunError."""
        ...


class MemoryLedger:
    """A ledger that lives as long as the process."""

    keeps_points = checkpoint_due = False

    def __init__(self, max_sent: int | None = None) -> None:
        self.used = 0
        self.sent = 0
        self.max_sent = max_sent

    def recall(self, rows: int, points: int, *, aside: bool = False) -> None:
        """Nothing was recorded."""

    def lose(self, reason: str) -> None:
        """What was sent stays counted."""

    def affords(self, rows: int) -> bool:
        """Whether the cap allows it."""
        return self.max_sent is None or self.sent + rows <= self.max_sent

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """Count, or refuse."""
        if not self.affords(rows):
            raise BudgetError(
                f"expected to send at most {self.max_sent} queries, but {self.sent} were sent and {rows} more are "
                "needed: raise max_sent to go on"
            )
        self.sent += rows

    def record(self, values: Answer, points: int) -> None:
        """Count."""
        self.used += len(values)

    def checkpoint(self, state: Arrays) -> None:
        """There is nowhere to save it."""

    def restore(self, into: Callable[[Arrays], object]) -> None:
        """Nothing was saved."""


class JournalLedger:
    """The ledger of a run directory."""

    keeps_points = True
    _run: RunDirectory
    _in_flight = False

    def attach(self, run: RunDirectory) -> None:
        """Use this run, which is opened when its search begins: of ten thousand searches, few are open at a time."""
        self._run = run

    @property
    def used(self) -> int:
        """Rows answered in this trajectory so far, and those that ended an earlier session up to here."""
        return self._run.position + self._run.asides

    @property
    def sent(self) -> int:
        """Rows ever sent, by every process that worked on the run."""
        return self._run.sent

    def recall(self, rows: int, points: int, *, aside: bool = False) -> Answer | None:
        """What an earlier process was answered."""
        if aside:
            return self._run.aside(rows, points)
        if not self._run.replaying:
            return None
        values = self._run.take(rows, points)
        if len(values) != rows:
            raise RunError(f"expected {rows} recorded values, got {len(values)}: the run was recorded in other blocks")
        return values

    def affords(self, rows: int) -> bool:
        """Whether the cap allows it."""
        return self._run.affords(rows)

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """On the disk before anything is sent."""
        if self._in_flight:
            self._run.resend(rows)
        else:
            self._run.begin(rows, aside=aside)
        self._in_flight = True

    def record(self, values: Answer, points: int) -> None:
        """The answers."""
        self._run.values(values, points)
        self._in_flight = False

    def lose(self, reason: str) -> None:
        """No answer will come."""
        self._run.lose(reason)
        self._in_flight = False

    @property
    def checkpoint_due(self) -> bool:
        """Whether enough time has passed for a checkpoint to be worth its cost."""
        return self._run.checkpoint_due

    def checkpoint(self, state: Arrays) -> None:
        """Save the state beside the journal."""
        self._run.checkpoint(state)

    def restore(self, into: Callable[[Arrays], object]) -> None:
        """Give the state of the last good checkpoint to `into`."""
        self._run.restore(into)
