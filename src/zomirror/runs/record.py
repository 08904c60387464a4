"""The records of a journal: their bytes, and their totals.

A journal is a file header of 32 bytes followed by records, each a head of 32 bytes and a payload padded with zeros to a
multiple of 32. So no head crosses a page boundary, and a killed process leaves a head complete or absent. The file is
extended with zeros ahead of use: zeros up to the end of the file are free space.

    head: magic (3), kind (1), count (4), width (4), position (6), sent (6), CRC32 of the padded payload (4), CRC32 (4)

`width` is the length of each row of values: 0 for one number per row, k for k numbers. The payload of values starts
with the CRC32 of their points, so that a replay detects that it would query other points.

The last CRC covers the head and starts from the CRC of the record before, so that the records form a chain. This
detects changed bytes, and also records that were removed, duplicated, moved, or copied from another journal.
"""

from __future__ import annotations

import enum
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FORMAT = 2
UNIT = 32
MOST_ROWS = 1 << 20  # per record of values
MOST_NUMBERS = 1 << 27  # per record of values, which a reader holds in memory (1 GiB)
MOST_TEXT = 4096  # bytes per text
_MAGIC = b"\x89zmjour\n"
_FILE = struct.Struct("<8sI16sI")
MARK = b"zm\x1a"
_HEAD = struct.Struct("<3sBIIIHIHI")
_CRC = struct.Struct("<I")
HEAD = np.dtype(  # the same layout, to search many heads at once
    [
        *(("mark", "S3"), ("kind", "u1"), ("count", "<u4"), ("width", "<u4"), ("at", "<u4"), ("at_high", "<u2")),
        *(("sent", "<u4"), ("sent_high", "<u2"), ("crcs", "<u8")),
    ]
)
_WINDOW = struct.Struct("<QQ")
_POINTS = struct.Struct("<II")


class Kind(enum.IntEnum):
    """The kind of a record. `count` is its number of rows; for OPEN and LOST, the bytes of its text."""

    OPEN = 1  # a session starts; text: its process and machine
    RESERVE = 2  # up to a ceiling, queries may be sent; synced before any of them is sent
    START = 3  # these rows are sent now (again, if a batch is in flight)
    VALUES = 4  # values of the next rows of the trajectory
    ASIDE = 5  # values of rows off the trajectory, queried at `position`
    LOST = 6  # the batch in flight is given up; text: the reason
    CLOSE = 7  # the session ends; the unused part of the reservation is free again


_KINDS = {int(kind): kind for kind in Kind}  # faster than Kind(number)
TEXT = (Kind.OPEN, Kind.LOST)
ROWS = (Kind.VALUES, Kind.ASIDE)
MOST = dict.fromkeys(TEXT, MOST_TEXT) | dict.fromkeys(ROWS, MOST_NUMBERS)


def padded(size: int) -> int:
    """The next multiple of 32."""
    return -(-size // UNIT) * UNIT


def rows_of_a_record(width: int) -> int:
    """The number of rows of this width that fit into one record."""
    return min(MOST_ROWS, MOST_NUMBERS // max(1, width))


def room(rows: int, width: int) -> int:
    """Bytes of one batch: its START, and the records of its values."""
    records = -(-rows // rows_of_a_record(width))
    return UNIT + 3 * UNIT * records + padded(8 * rows * max(1, width))


@dataclass(slots=True)
class Tally:
    """The totals of the records so far. Writer and reader apply the same rules."""

    crc: int
    position: int = 0  # rows of the trajectory that have values
    asides: int = 0  # rows off the trajectory that have values
    sent: int = 0
    ceiling: int = 0  # `sent` may rise to this without another reservation
    capacity: int = 0  # length of the file when the reservation was synced
    open: int = 0  # rows of the batch in flight
    closed: bool = True
    session: bytes = b""
    sessions: int = 0

    @property
    def used(self) -> int:
        """Rows whose values are recorded."""
        return self.position + self.asides

    @property
    def lost(self) -> int:
        """Rows that were sent and will never be answered."""
        return self.sent - self.used - self.open

    def apply(self, kind: Kind, count: int, position: int, sent: int, payload: bytes = b"") -> None:
        """Add one record; ValueError if it cannot follow the ones before it."""
        if self.closed and kind is not Kind.OPEN:  # OPEN may also follow a session that was killed
            raise ValueError(f"{kind.name} outside a session")
        if kind is not Kind.ASIDE and position != self.position + (count if kind is Kind.VALUES else 0):
            raise ValueError(f"{kind.name} at row {position:,}, expected {self.position:,}")
        if kind is Kind.START:
            if sent != self.sent + count or sent > self.ceiling or count == 0 or (self.open and count > self.open):
                raise ValueError("START does not fit the reservation")
            self.open = self.open or count
        elif kind is Kind.OPEN:
            if not self.sent <= sent <= max(self.ceiling, self.sent):
                raise ValueError("OPEN with an impossible count")
            self.open, self.ceiling, self.closed, self.session = 0, sent, False, payload
            self.sessions += 1
        elif sent != self.sent:
            raise ValueError(f"{kind.name} changes the count of sent rows")
        elif kind is Kind.RESERVE:
            ceiling, capacity = _WINDOW.unpack_from(payload)
            if ceiling < sent or ceiling - sent != count:
                raise ValueError("RESERVE with an impossible ceiling")
            self.ceiling, self.capacity = ceiling, capacity
        elif kind in ROWS:
            if not 0 < count <= self.open:
                raise ValueError(f"values of {count:,} rows where {self.open:,} are in flight")
            self.open -= count
            if kind is Kind.ASIDE:
                if position > self.position:
                    raise ValueError("values off the trajectory at a row that was not reached")
                self.asides += count
            else:
                self.position = position
        else:
            if kind is Kind.LOST and not self.open:
                raise ValueError("a batch is lost, and none is in flight")
            self.open = 0
            if kind is Kind.CLOSE:
                self.closed, self.ceiling = True, sent
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Place:
    """The end of a record, and the totals up to it: reading a journal can start there."""

    offset: int  # where the record ends
    last: int  # where it starts; 0: there is no record, and the file header ends here
    tally: Tally
    asides: dict[int, list[int]]  # position -> offsets of the records off the trajectory


def file_header(run_id: bytes) -> bytes:
    """The first 32 bytes of a journal."""
    head = _FILE.pack(_MAGIC, FORMAT, run_id, 0)[:-4]
    return head + _CRC.pack(zlib.crc32(head))


def read_file_header(first: bytes) -> tuple[bytes, int, int] | None:
    """(run id, format, CRC) of these 32 bytes; None if they are not an intact file header."""
    magic, version, run_id, crc = _FILE.unpack(first)
    return (run_id, version, crc) if magic == _MAGIC and zlib.crc32(first[:-4]) == crc else None


def pack(
    kind: Kind, count: int, position: int, sent: int, payload: bytes, previous: int, width: int = 0
) -> tuple[bytes, int]:
    """The bytes of a record, and the CRC that the next record starts from."""
    payload += bytes(-len(payload) % UNIT)
    at, sums = divmod(position, 1 << 32)[::-1], divmod(sent, 1 << 32)[::-1]
    head = _HEAD.pack(MARK, kind, count, width, *at, *sums, zlib.crc32(payload))
    crc = zlib.crc32(head, previous)
    return head + _CRC.pack(crc) + payload, crc


def values_payload(values: NDArray[np.float64], points: int) -> bytes:
    """The payload of values, with the CRC32 of their points."""
    return _POINTS.pack(points, 0) + np.ascontiguousarray(values, "<f8").tobytes()


def window(ceiling: int, capacity: int) -> bytes:
    """The payload of a RESERVE."""
    return _WINDOW.pack(ceiling, capacity)


@dataclass(slots=True)  # not frozen: that takes 1 us more, for each record that is read
class Head:
    """The head of an intact record."""

    kind: Kind
    count: int
    width: int
    position: int
    sent: int
    payload_crc: int
    crc: int

    @property
    def size(self) -> int:
        """Bytes of the payload, including padding."""
        if self.kind in ROWS:
            return padded(_POINTS.size + 8 * self.numbers)
        return padded(_WINDOW.size if self.kind is Kind.RESERVE else self.count if self.kind in TEXT else 0)

    @property
    def numbers(self) -> int:
        """The numbers in a record of values; `count` for other records."""
        return self.count * max(1, self.width) if self.kind in ROWS else self.count

    def values(self, payload: bytearray) -> tuple[NDArray[np.float64], int]:
        """The values in the payload, (count,) or (count, width), and the CRC32 of their points; a view if possible."""
        values = np.frombuffer(payload, "<f8", self.numbers, _POINTS.size).astype(np.float64, copy=False)
        return values.reshape(self.count, self.width) if self.width else values, _POINTS.unpack_from(payload)[0]


def unpack(data: bytes, previous: int | None) -> Head | None:
    """The head in these 32 bytes; None if they are no head, or do not follow the record with the CRC `previous`."""
    if len(data) < UNIT:
        return None
    mark, kind, count, width, at, at_high, sent, sent_high, payload_crc = _HEAD.unpack_from(data)
    (crc,) = _CRC.unpack_from(data, _HEAD.size)
    if mark != MARK or kind not in _KINDS:
        return None
    if previous is not None and zlib.crc32(data[: _HEAD.size], previous) != crc:
        return None
    return Head(_KINDS[kind], count, width, at | at_high << 32, sent | sent_high << 32, payload_crc, crc)
