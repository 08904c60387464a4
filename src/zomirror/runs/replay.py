"""Recorded values, in the order in which the algorithm asks for them; at most one record of them in memory."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

import numpy as np

from zomirror.errors import RunError
from zomirror.runs.record import UNIT, Kind, unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zomirror.runs.record import Head
    from zomirror.runs.scan import Scan


class Replay:
    """A cursor over the values that a scan found; it does not see what is written later."""

    def __init__(self, fd: int, what: str, found: Scan) -> None:
        self._fd = fd
        self._what = what
        self._offset = UNIT
        self._asides = {position: list(offsets) for position, offsets in found.asides.items()}
        self._rest: NDArray[np.float64] = np.empty(0)
        self.position = 0
        self.recorded = found.ledger.position
        self._beside = {at: sum(self._head(o).count for o in offsets) for at, offsets in found.asides.items()}

    def beside(self, position: int) -> int:
        """How many rows were recorded beside the trajectory up to this position."""
        return sum(rows for at, rows in self._beside.items() if at <= position) if self._beside else 0

    def skip(self, offset: int, position: int) -> None:
        """Go on from a place that a checkpoint knows."""
        self._offset, self.position, self._rest = offset, position, np.empty(0)

    def take(self, rows: int) -> NDArray[np.float64]:
        """The values of the next `rows` rows of the trajectory, or of as many as are recorded."""
        parts = []
        wanted = min(rows, self.recorded - self.position)
        while wanted > 0:
            if not self._rest.size:
                self._rest = self._next()
            part, self._rest = self._rest[:wanted], self._rest[wanted:]
            parts.append(part)
            wanted -= part.size
            self.position += part.size
        return np.concatenate(parts) if parts else np.empty(0)

    def aside(self, rows: int, position: int) -> NDArray[np.float64] | None:
        """The next values recorded beside a position of the trajectory, if they are `rows` many; each once."""
        offsets = self._asides.get(position)
        if not offsets or self._head(offsets[0]).count != rows:
            return None
        offset = offsets.pop(0)
        return self._read(offset, self._head(offset))

    def _next(self) -> NDArray[np.float64]:
        while True:
            offset = self._offset
            head = self._head(offset)
            self._offset += UNIT + head.size
            if head.kind is Kind.VALUES:
                return self._read(offset, head)

    def _head(self, offset: int) -> Head:
        head = unpack(os.pread(self._fd, UNIT, offset), None)
        if head is None:
            raise self._changed(offset)
        return head

    def _read(self, offset: int, head: Head) -> NDArray[np.float64]:
        payload = os.pread(self._fd, head.size, offset + UNIT)
        if len(payload) != head.size or zlib.crc32(payload) != head.payload_crc:
            raise self._changed(offset)
        return np.frombuffer(payload, "<f8", head.count).astype(np.float64)

    def _changed(self, offset: int) -> RunError:
        return RunError(f"{self._what} has changed at byte {offset:,} since it was opened: run the same call again")
