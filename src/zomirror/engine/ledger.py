"""Count the queries of one search: in memory, or in the journal of a run directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import BudgetError
from zomirror.runs.directory import RunDirectory

Answer = NDArray[np.float64]
"""What is kept of an answer: (rows,), or (rows, k) if k numbers are kept per row."""
Arrays = Mapping[str, NDArray[Any]]


class Ledger(Protocol):
    """Counts queries: `sent` were sent, `used` were answered, the difference was lost."""

    @property
    def used(self) -> int:
        """Rows whose values the search has received."""
        ...

    @property
    def sent(self) -> int:
        """Rows ever sent, including retries and lost ones."""
        ...

    @property
    def keeps_points(self) -> bool:
        """Whether answers are stored with a checksum of their points."""
        ...

    def recall(self, rows: int, points: int, *, aside: bool = False) -> Answer | None:
        """The values of the next `rows` rows that an earlier process recorded; None if there are none.

        They are fewer than `rows` if that process was killed while it recorded an answer in several parts.
        `points` is the checksum of the points to query: RunError if the recorded points were others. Rows `aside` are
        not part of the trajectory: with a larger budget the run would not query them there.
        """
        ...

    def affords(self, rows: int) -> bool:
        """Whether `rows` more rows may be sent."""
        ...

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """Count `rows` rows before they are sent; BudgetError if they would exceed max_sent.

        A second call before `record` or `lose` counts rows of the same batch that are sent again.
        """
        ...

    def lose(self, reason: str) -> None:
        """Note that the rows last sent will not be answered."""
        ...

    def record(self, values: Answer, points: int) -> None:
        """Record the values of the rows last sent."""
        ...

    @property
    def checkpoint_due(self) -> bool:
        """Whether it is time to save the state of the search."""
        ...

    def checkpoint(self, state: Arrays) -> None:
        """Save the state of the search, so that a resumed run replays only later answers."""
        ...

    def restore(self, into: Callable[[Arrays], object]) -> None:
        """Pass the last saved state to `into`, if there is one; `into` raises RunError if it does not fit."""
        ...


class MemoryLedger:
    """A ledger in memory, which ends with the process."""

    keeps_points = checkpoint_due = False

    def __init__(self, max_sent: int | None = None) -> None:
        self.used = 0
        self.sent = 0
        self.max_sent = max_sent

    def recall(self, rows: int, points: int, *, aside: bool = False) -> None:
        """None: nothing was recorded."""

    def lose(self, reason: str) -> None:
        """Nothing to do: what was sent stays counted."""

    def affords(self, rows: int) -> bool:
        """Whether `rows` more rows stay within max_sent."""
        return self.max_sent is None or self.sent + rows <= self.max_sent

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """Count the rows; BudgetError if they would exceed max_sent."""
        if not self.affords(rows):
            raise BudgetError(
                f"expected to send at most {self.max_sent} queries, but {self.sent} were sent and {rows} more are "
                "needed: raise max_sent to continue"
            )
        self.sent += rows

    def record(self, values: Answer, points: int) -> None:
        """Count the rows as used."""
        self.used += len(values)

    def checkpoint(self, state: Arrays) -> None:
        """Nothing to do: without a run directory nothing is saved."""

    def restore(self, into: Callable[[Arrays], object]) -> None:
        """Nothing to do: nothing was saved."""


class JournalLedger:
    """The ledger of a run directory."""

    keeps_points = True
    _run: RunDirectory
    _in_flight = False
    _has_states = False
    """Whether the search saves states of its own: it has asked for the last one."""

    def attach(self, run: RunDirectory) -> None:
        """Use this run. It is opened when its search starts, so that few of many runs are open at a time."""
        self._run = run

    @property
    def used(self) -> int:
        """Rows answered so far on the trajectory, and off it up to this position."""
        return self._run.position + self._run.asides

    @property
    def sent(self) -> int:
        """Rows ever sent, by every process that worked on the run."""
        return self._run.sent

    def recall(self, rows: int, points: int, *, aside: bool = False) -> Answer | None:
        """The recorded values of the next rows; None if there are none."""
        if aside:
            return self._run.aside(rows, points)
        if not self._run.replaying:
            return None
        return self._run.take(rows, points)

    def affords(self, rows: int) -> bool:
        """Whether `rows` more rows stay within max_sent."""
        return self._run.affords(rows)

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """Write the rows to the journal before they are sent."""
        if self._in_flight:
            self._run.resend(rows)
        else:
            self._run.begin(rows, aside=aside)
        self._in_flight = True

    def record(self, values: Answer, points: int) -> None:
        """Write the values to the journal."""
        self._run.values(values, points)
        self._in_flight = False
        if not self._has_states and self._run.checkpoint_due:
            self._run.checkpoint({})  # only the place, so that `inspect` need not read the whole journal

    def lose(self, reason: str) -> None:
        """Write to the journal that the batch in flight is lost."""
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
        """Pass the state of the last good checkpoint to `into`."""
        self._has_states = True
        self._run.restore(into)
