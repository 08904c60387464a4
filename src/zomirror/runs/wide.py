"""Answers that are wider than the one number a row that a journal holds: they lie beside it, in wide.bin.

Each reply is one frame (a head as in the journal, then its numbers), on the disk before the journal has its rows.
In the journal every row of it is a NaN that carries the CRC of the frame, so a frame that is missing, damaged or of
another reply is found when it is asked for. Frames behind the journal's last row are of a reply that was never
recorded, and are written over.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

import numpy as np

from zomirror.errors import RunError
from zomirror.runs.folder import refusal, write_all
from zomirror.runs.record import UNIT, Kind, pack, padded, unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zomirror.runs.folder import Folder
    from zomirror.runs.record import Head

NAME = "wide.bin"
_TAG = 0x7FF85A4D  # a quiet NaN that no arithmetic makes
_MOST = 1 << 27  # numbers of one reply: what a reader must hold at once
_WIDEST = 1 << 16  # numbers of one row
_sync = getattr(os, "fdatasync", os.fsync)
_allocate = getattr(os, "posix_fallocate", lambda *_: None)  # not on every system


def carried(values: NDArray[np.float64]) -> int | None:
    """The CRC that journalled values carry, None if they are plain numbers."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    return int(bits[0]) & 0xFFFFFFFF if bits.size and int(bits[0]) >> 32 == _TAG and (bits == bits[0]).all() else None


class Wide:
    """The file beside a journal; it is made when the first wide reply comes."""

    def __init__(self, folder: Folder, run_id: str) -> None:
        self._folder = folder
        self._seed = zlib.crc32(bytes.fromhex(run_id))
        self._fd = -1
        self._end = 0
        self._room = 0
        self._width = 0
        self._frames: dict[int, tuple[int, Head]] = {}

    def reserve(self, rows: int) -> None:
        """Make room for one more reply like the last, before it is asked for: a full disk is met here."""
        if self._open(create=False) and self._width:
            size = self._end + UNIT + padded(8 * rows * self._width)
            if size > self._room:
                try:
                    _allocate(self._fd, self._end, size - self._end)
                except OSError as error:
                    raise refusal(f"the room for the next answers in {self._folder.where(NAME)}", error) from error
                self._room = size

    def write(self, position: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep the (n, k) answers to the rows from `position` on; gives the n values for the journal."""
        self._open(create=True)
        for stale in [at for at in self._frames if at >= position]:
            self._end = min(self._end, self._frames.pop(stale)[0])
        payload = np.ascontiguousarray(values, "<f8").tobytes()
        data, _ = pack(Kind.VALUES, values.size, position, values.shape[1], payload, self._seed)
        try:
            write_all(self._fd, data, self._end)
            _sync(self._fd)
        except OSError as error:
            raise refusal(self._folder.where(NAME), error) from error
        head = unpack(data[:UNIT], self._seed)
        assert head is not None  # noqa: S101 - it was packed above
        self._frames[position] = (self._end, head)
        self._end += len(data)
        self._width = values.shape[1]
        return np.full(len(values), _TAG << 32 | head.payload_crc, np.uint64).view(np.float64)

    def read(self, position: int, rows: int, crc: int) -> NDArray[np.float64]:
        """What was kept for so many rows from `position` on, which the journal knows by its CRC."""
        self._open(create=False)
        offset, head = self._frames.get(position, (0, None))
        fits = head is not None and head.payload_crc == crc and head.count == rows * head.sent
        payload = os.pread(self._fd, head.size, offset + UNIT) if head is not None and fits else b""
        if head is None or not fits or zlib.crc32(payload) != crc:
            raise RunError(
                f"{self._folder.where(NAME)} lacks the answers to the queries from {position:,} on, which were paid "
                f"for: bring the file back from a copy, or begin in another run_dir"
            )
        return np.frombuffer(payload, "<f8", head.count).astype(np.float64).reshape(-1, head.sent)

    def close(self) -> None:
        """Let go of the file; closing twice is allowed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self, *, create: bool) -> bool:
        if self._fd >= 0:
            return True
        new = self._folder.kind(NAME) is None
        if new and not create:
            return False
        self._fd = self._folder.open_file(NAME, os.O_RDWR | (os.O_CREAT if create else 0))
        if new:
            os.fsync(self._folder.fd)
        size = os.fstat(self._fd).st_size
        while (head := unpack(os.pread(self._fd, UNIT, self._end), self._seed)) is not None:
            unfit = head.kind is not Kind.VALUES or not 0 < head.sent <= _WIDEST or head.count > _MOST
            if unfit or self._end + UNIT + head.size > size:
                break
            self._frames[head.position] = (self._end, head)
            self._end += UNIT + head.size
            self._width = head.sent
        return True
