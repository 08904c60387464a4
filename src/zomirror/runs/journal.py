"""The journal of a run records what may be sent, what was sent and what was answered. It never undercounts queries.

**The promise.** The queries sent never exceed `max_sent`, whatever happens: a reservation (the ceiling up to which the
count may rise) is on the disk before the first of them is sent, and no reservation exceeds `max_sent`. After any crash
the recorded values are a prefix of the uninterrupted stream, bit for bit.

**The cost.** A sync takes 0.2 to 4 ms, a batch of a fast black box less. So a reservation covers a window of batches,
sized by the measured rate so that syncs take about 1/64 of the time. Within the window each batch costs two plain
writes: START before it is sent, VALUES after. For a slow black box the window is one batch, and values are synced at
once.

**What a crash costs.** A killed process (SIGKILL, out of memory, os._exit) loses nothing that it has written, because
the pages belong to the kernel. The STARTs then say exactly what was sent, and only the batch in flight is lost. A
machine that crashes may lose everything since the last sync, STARTs included: then the whole window counts as sent, and
the values since the last sync are lost. Both are at most what fits between two syncs (about a second), or one batch.
The boot identifier of the kernel, written at the start of each session, tells the two cases apart. If it is unknown, on
another host, or if the file is shorter than its last reservation says, a crash of the machine is assumed.

**A full disk** is detected when the window is reserved, not when answers arrive: the file is extended with zeros before
anything is sent. So a batch is sent only if the disk has room for its answers and for the end of the session.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from zomirror.errors import ArgumentError, BudgetError, RunError
from zomirror.runs.folder import refusal, write_all
from zomirror.runs.record import (
    MOST_NUMBERS,
    MOST_ROWS,
    MOST_TEXT,
    UNIT,
    Kind,
    Place,
    pack,
    padded,
    room,
    rows_of_a_record,
    values_payload,
    window,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from zomirror.runs.record import Tally
    from zomirror.runs.scan import Scan

MOST_BATCH = 1 << 26  # rows per batch
_SHARE = 64  # syncs take at most 1 / _SHARE of the time
_OFTEN = 0.5  # least time between two syncs, in seconds: each also slows other processes
_SLACK = 2 * MOST_TEXT  # bytes kept free after the answers for the next RESERVE, a LOST and the CLOSE
_BLOCK = 1 << 20
_sync = getattr(os, "fdatasync", os.fsync)


class Pace:
    """How often to sync; journals that are open at the same time share one, and with it the time for syncs."""

    __slots__ = ("cost", "members")

    def __init__(self) -> None:
        self.cost = 1e-3
        self.members = 0

    @property
    def interval(self) -> float:
        """Seconds between two syncs of one journal."""
        return min(10.0, max(_OFTEN, _SHARE * self.cost * max(1, self.members)))

    def took(self, seconds: float) -> None:
        """Update the mean cost with the duration of one sync."""
        self.cost += 0.25 * (seconds - self.cost)


class Journal:
    """Writes a journal, continuing from a scan; writes nothing before the first batch."""

    def __init__(
        self,
        fd: int,
        what: str,
        found: Scan,
        *,
        session: bytes,
        max_sent: int | None,
        pace: Pace | None = None,
    ) -> None:
        self._fd = fd
        self._what = what
        self._found = found.tally
        self._tally = found.settled()
        self._end = found.end
        self._last = found.last
        self._asides = found.asides
        self._dropped = found.dropped
        self._capacity = found.size
        self._session = session
        self._live = False
        self._broken: str | None = None
        self._mutex = threading.RLock()
        self._pace = pace or Pace()
        self._max_sent = max_sent
        self._batches = 1
        self._reserved = time.monotonic()
        self._due = self._reserved + 2 * self._pace.interval
        self._sent_then = self._tally.sent
        self._width = 0
        """The width of the last values; before a batch is sent, room is made for values of this width."""

    @property
    def tally(self) -> Tally:
        """Position, used, sent and lost at this moment."""
        return self._tally

    @property
    def place(self) -> Place:
        """The end of the records with their totals, from which a later process can read on."""
        tally = self._tally if self._live else self._found
        return Place(self._end, self._last, replace(tally), {at: [*where] for at, where in self._asides.items()})

    def expect(self, width: int) -> None:
        """Make room for values of this width, as an earlier session recorded them."""
        self._width = max(self._width, width)

    def affords(self, rows: int) -> bool:
        """Whether `rows` more rows stay within `max_sent`."""
        return self._max_sent is None or self._tally.sent + rows <= self._max_sent

    def begin(self, rows: int) -> None:
        """Record that a batch is sent now; BudgetError, and no record, if it would exceed `max_sent`."""
        with self._mutex:
            if self._tally.open:
                raise RunError(
                    f"a batch of {self._tally.open:,} rows is in flight: record its values or give it up first"
                )
            self._send(rows)

    def resend(self, rows: int) -> None:
        """Record that rows of the batch in flight are sent again."""
        with self._mutex:
            if rows > self._tally.open:
                raise RunError(f"cannot send {rows:,} rows again, {self._tally.open:,} are in flight")
            self._send(rows)

    def values(self, values: ArrayLike, *, points: int = 0, beside: int | None = None) -> None:
        """Record the values of the next rows in flight: (rows,) or (rows, width).

        `points` is the checksum of the points; `beside` is the position, for rows off the trajectory.
        """
        with self._mutex:
            array = np.asarray(values, dtype="<f8")
            if array.ndim not in (1, 2) or not 0 < len(array) <= self._tally.open:
                raise RunError(f"expected values for at most {self._tally.open:,} rows in flight, got {array.shape}")
            width = array.shape[1] if array.ndim == 2 else 0
            if width > MOST_NUMBERS or (array.ndim == 2 and not width):
                raise RunError(f"expected rows of 1 to {MOST_NUMBERS:,} numbers, got {width:,}")
            self._width, most = max(self._width, width), rows_of_a_record(width)
            for start in range(0, len(array), most):
                part = array[start : start + most]
                kind, position = Kind.VALUES, self._tally.position + len(part)
                if beside is not None:
                    kind, position = Kind.ASIDE, beside
                    self._asides.setdefault(beside, []).append(self._end)
                self._append(kind, len(part), position, payload=values_payload(part, points), width=width)
            if time.monotonic() > self._due:
                self.sync()

    def lose(self, reason: str) -> None:
        """Give up the batch in flight; the reason is stored, so it must not contain a secret (use a type's name)."""
        with self._mutex:
            if self._tally.open:
                text = reason.encode("utf-8", "replace")[:MOST_TEXT]
                self._append(Kind.LOST, len(text), self._tally.position, payload=text)

    def sync(self) -> None:
        """Force everything written to the disk. An error is final, because what the disk holds is then unknown."""
        with self._mutex:
            started = time.monotonic()
            try:
                _sync(self._fd)
            except OSError as error:
                self._broken = f"{self._what} could not be forced to the disk"
                raise refusal(self._what, error) from error
            now = time.monotonic()
            self._pace.took(now - started)
            self._due = now + 2 * self._pace.interval

    def close(self) -> None:
        """End the session; the unused part of the reservation is free again. Closing twice is allowed."""
        with self._mutex:
            if self._fd < 0:
                return
            try:
                if self._live and not self._broken:
                    self._append(Kind.CLOSE, 0, self._tally.position)
                    self.sync()
                    os.ftruncate(self._fd, self._end)
            except OSError as error:
                raise refusal(self._what, error) from error
            finally:
                self._leave()

    def abandon(self) -> None:
        """Close the file without writing, as a forked child must."""
        self._live = False
        self._leave()

    def _leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._live:
            self._pace.members -= 1
            self._live = False

    def _send(self, rows: int) -> None:
        if not 0 < rows <= MOST_BATCH:
            raise ArgumentError(f"expected a batch of 1 to {MOST_BATCH:,} rows, got {rows:,}")
        tally = self._tally
        if not self.affords(rows):
            raise BudgetError(
                f"{tally.sent:,} queries were sent ({tally.lost:,} of them lost); {rows:,} more would pass "
                f"max_sent = {self._max_sent:,}. Nothing was sent: run again with a larger max_sent to continue"
            )
        if (
            not self._live
            or tally.sent + rows > tally.ceiling
            or self._end + room(rows, self._width) + _SLACK > self._capacity
        ):
            self._reserve(rows)
        self._append(Kind.START, rows, tally.position, sent=tally.sent + rows)

    def _reserve(self, rows: int) -> None:
        if not self._live:
            self._open_session()
        batches = self._next_window(rows)
        try:
            self._grow(self._end + 2 * UNIT + batches * room(rows, self._width) + _SLACK)
        except RunError:
            if batches == 1 or self._broken:
                raise
            batches = 1  # the disk is nearly full: continue as long as one batch fits
            self._grow(self._end + 2 * UNIT + room(rows, self._width) + _SLACK)
        total = batches * rows
        if self._max_sent is not None:
            total = min(total, self._max_sent - self._tally.sent)
        ceiling = self._tally.sent + total
        self._append(Kind.RESERVE, total, self._tally.position, payload=window(ceiling, self._capacity))
        self.sync()
        self._batches = batches
        self._reserved = time.monotonic()
        self._sent_then = self._tally.sent

    def _next_window(self, rows: int) -> int:
        """Batches to reserve: as many as are sent between two syncs at the rate since the last reservation."""
        elapsed = time.monotonic() - self._reserved
        lately = self._tally.sent - self._sent_then
        wanted = lately * self._pace.interval / max(elapsed, 1e-9) / rows
        return max(1, min(int(wanted), 16 * self._batches, MOST_ROWS // rows))

    def _open_session(self) -> None:
        """Clear an unfinished write and start the session; done late, so that reading a run does not change it."""
        try:
            for start in range(self._end, self._end + self._dropped, _BLOCK):
                write_all(self._fd, bytes(min(_BLOCK, self._end + self._dropped - start)), start)
        except OSError as error:
            raise refusal(self._what, error) from error
        self._append(Kind.OPEN, len(self._session), self._tally.position, payload=self._session)
        self._capacity = max(self._capacity, self._end)
        self._live = True
        self._pace.members += 1

    def _grow(self, size: int) -> None:
        if size <= self._capacity:
            return
        # Doubled, in whole pages, if the disk has room: then few syncs have to write a new file length.
        generous = max(size, min(2 * self._capacity, self._capacity + _BLOCK))
        for target in (-(-generous // 4096) * 4096, padded(size)):
            try:
                for start in range(self._capacity, target, _BLOCK):
                    write_all(self._fd, bytes(min(_BLOCK, target - start)), start)
            except OSError as error:
                refused = refusal(f"the room for the next answers in {self._what}", error)
            else:
                self._capacity = target
                return
            try:
                os.ftruncate(self._fd, self._capacity)
            except OSError as error:
                self._broken = f"{self._what} could not be brought back to its length"
                raise refused from error
        raise refused

    def _append(
        self, kind: Kind, count: int, position: int, *, sent: int | None = None, payload: bytes = b"", width: int = 0
    ) -> None:
        tally = self._tally
        if self._broken or self._fd < 0:
            raise RunError(f"{self._broken or self._what + ' is closed'}: run the same call again to resume")
        sent = tally.sent if sent is None else sent
        data, crc = pack(kind, count, position, sent, payload, tally.crc, width)
        try:
            write_all(self._fd, data, self._end)
            tally.apply(kind, count, position, sent, payload)
            tally.crc = crc
            self._last = self._end
            self._end += len(data)
            self._capacity = max(self._capacity, self._end)
        except OSError as error:
            self._broken = f"{self._what} could not be written"
            raise refusal(self._what, error) from error
        except BaseException:
            # Ctrl-C between the write and the update of the tally: the file is as after a kill, this object is not.
            self._broken = f"{self._what} was interrupted while it was written"
            raise
