"""Read recorded values back in the order of the queries, with at most one record in memory."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

import numpy as np

from zomirror.errors import RunError
from zomirror.runs.record import MOST, UNIT, Kind, read_file_header, unpack
from zomirror.runs.scan import check_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zomirror.runs.record import Head, Place
    from zomirror.runs.scan import Scan


class Replay:
    """A cursor over the values that a scan found; it does not see records written later."""

    def __init__(self, fd: int, what: str, found: Scan) -> None:
        self._fd = fd
        self._what = what
        self._offset = UNIT
        header = read_file_header(os.pread(fd, UNIT, 0))
        self._crc = header[2] if header else 0
        self._asides = {position: list(offsets) for position, offsets in found.asides.items()}
        self._rest: NDArray[np.float64] = np.empty(0)
        self._points = 0
        self.position = 0
        self.recorded = found.tally.position
        self._beside = {at: sum(self._head(o).count for o in offsets) for at, offsets in found.asides.items()}

    def beside(self, position: int) -> int:
        """The number of rows recorded off the trajectory up to this position."""
        return sum(rows for at, rows in self._beside.items() if at <= position) if self._beside else 0

    def skip(self, place: Place) -> None:
        """Continue from the place of a checkpoint."""
        self._offset, self._crc, self.position = place.offset, place.tally.crc, place.tally.position
        self._rest = np.empty(0)

    def take(self, rows: int, points: int | None = None) -> NDArray[np.float64]:
        """The values of the next `rows` rows of the trajectory, or of as many as are recorded.

        `points` is the checksum of the points to query now: RunError if the values are those of other points.
        """
        parts = []
        wanted = min(rows, self.recorded - self.position)
        while wanted > 0:
            if not len(self._rest):
                self._rest = self._next()
            self._check(points, self._points, self.position)
            part, self._rest = self._rest[:wanted], self._rest[wanted:]
            parts.append(part)
            wanted -= len(part)
            self.position += len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0)

    def aside(self, rows: int, position: int, points: int | None = None) -> NDArray[np.float64] | None:
        """The next values recorded off the trajectory at a position, each once; None if they are not `rows` values."""
        offsets = self._asides.get(position)
        if not offsets or self._head(offsets[0]).count != rows:
            return None
        offset = offsets.pop(0)
        values, recorded = self._read(offset, self._head(offset))
        self._check(points, recorded, position)
        return values

    def _next(self) -> NDArray[np.float64]:
        while True:
            offset = self._offset
            # The chain is checked here too: the scan may have started after this record.
            head = self._head(offset, self._crc)
            self._offset += UNIT + head.size
            self._crc = head.crc
            if head.kind is Kind.VALUES:
                values, self._points = self._read(offset, head)
                return values

    def _head(self, offset: int, previous: int | None = None) -> Head:
        head = unpack(os.pread(self._fd, UNIT, offset), previous)
        if head is None or head.numbers > MOST.get(head.kind, head.numbers):
            raise self._changed(offset)
        return head

    def _read(self, offset: int, head: Head) -> tuple[NDArray[np.float64], int]:
        check_size(self._fd, self._what, offset, head)
        payload = bytearray(head.size)
        if os.preadv(self._fd, [payload], offset + UNIT) != head.size or zlib.crc32(payload) != head.payload_crc:
            raise self._changed(offset)
        return head.values(payload)

    def _check(self, points: int | None, recorded: int, position: int) -> None:
        if points is not None and points != recorded:
            raise RunError(
                f"{self._what} holds answers from query {position:,} on that belong to other points than would be "
                "asked now: resume it with the version of zomirror and the kind of machine that started it, or use "
                "another run_dir"
            )

    def _changed(self, offset: int) -> RunError:
        return RunError(
            f"{self._what} is damaged at byte {offset:,}, or was changed since it was opened: run the same call again, "
            "restore the file from a copy, or start in another run_dir"
        )
