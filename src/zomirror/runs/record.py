"""The records of a journal: their bytes, and the tally that they add up to.

A journal is a file header of 32 bytes and then records, each a head of 32 bytes and a payload padded with zeros to a
multiple of 32. So no head straddles a page, and a killed process leaves a head whole or not at all. The file is made
longer ahead of use, with zeros: zeros to the end of the file are its free space.

    head: magic (3), kind (1), count (4), width (4), position (6), sent (6), CRC32 of the padded payload (4), CRC32 (4)

`width` is the length of each row of values: 0 for one number a row, k for a row of k. The payload of values begins with
the CRC32 of the points that they belong to, so that a replay notices when other points would be asked.

The last CRC covers the head and starts from the one of the record before, so that the records form a chain: not only a
changed byte is found, but also a record taken out, doubled, moved, or brought in from another journal.
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
MOST_ROWS = 1 << 20  # of one record of values
MOST_NUMBERS = 1 << 27  # of one record of values: what a reader must hold at once
MOST_TEXT = 4096
_MAGIC = b"\x89zmjour\n"
_FILE = struct.Struct("<8sI16sI")
MARK = b"zm\x1a"
_HEAD = struct.Struct("<3sBIIIHIHI")
_CRC = struct.Struct("<I")
HEAD = np.dtype(  # the same, for looking at many places at once
    [
        *(("mark", "S3"), ("kind", "u1"), ("count", "<u4"), ("width", "<u4"), ("at", "<u4"), ("at_high", "<u2")),
        *(("sent", "<u4"), ("sent_high", "<u2"), ("crcs", "<u8")),
    ]
)
_WINDOW = struct.Struct("<QQ")
_POINTS = struct.Struct("<II")


class Kind(enum.IntEnum):
    """What a record says. `count` is rows, except for the two that carry text (bytes)."""

    OPEN = 1  # a session begins; text: its process and machine
    RESERVE = 2  # the count of queries sent may rise to a ceiling; synced before any of them is sent
    START = 3  # these rows are sent now (again, if a batch is open)
    VALUES = 4  # answers of the next rows of the trajectory
    ASIDE = 5  # answers to rows beside the trajectory, asked when it stood at `position`
    LOST = 6  # the open batch is given up; text: why
    CLOSE = 7  # the session ends; what was reserved and not sent is free again


TEXT = (Kind.OPEN, Kind.LOST)
ROWS = (Kind.VALUES, Kind.ASIDE)
MOST = dict.fromkeys(TEXT, MOST_TEXT) | dict.fromkeys(ROWS, MOST_NUMBERS)


def padded(size: int) -> int:
    """The next multiple of 32."""
    return -(-size // UNIT) * UNIT


def rows_of_a_record(width: int) -> int:
    """How many rows of this width fit into one record."""
    return min(MOST_ROWS, MOST_NUMBERS // max(1, width))


def room(rows: int, width: int) -> int:
    """Bytes that one batch takes: its START, and its values in as many records as they need."""
    records = -(-rows // rows_of_a_record(width))
    return UNIT + 3 * UNIT * records + padded(8 * rows * max(1, width))


@dataclass(slots=True)
class Tally:
    """What the records so far add up to. Writer and reader apply the same rules."""

    crc: int
    position: int = 0  # rows of the trajectory that have values
    asides: int = 0  # rows beside it that have values
    sent: int = 0
    ceiling: int = 0
    capacity: int = 0  # length of the file that was on the disk with the ceiling
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
        """Rows that were sent and will never have values."""
        return self.sent - self.used - self.open

    def apply(self, kind: Kind, count: int, position: int, sent: int, payload: bytes = b"") -> None:
        """Take one record in; ValueError says why it cannot follow the ones before it."""
        if self.closed and kind is not Kind.OPEN:  # OPEN itself may also follow a session that was killed
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
                    raise ValueError("values beside a row that was not reached")
                self.asides += count
            else:
                self.position = position
        else:
            self.open = 0
            if kind is Kind.CLOSE:
                self.closed, self.ceiling = True, sent
        self.sent = sent


def file_header(run_id: bytes) -> bytes:
    """The first 32 bytes of a journal."""
    head = _FILE.pack(_MAGIC, FORMAT, run_id, 0)[:-4]
    return head + _CRC.pack(zlib.crc32(head))


def read_file_header(first: bytes) -> tuple[bytes, int, int] | None:
    """(run id, format, CRC) of these 32 bytes, if they begin a journal and are whole."""
    magic, version, run_id, crc = _FILE.unpack(first)
    return (run_id, version, crc) if magic == _MAGIC and zlib.crc32(first[:-4]) == crc else None


def pack(
    kind: Kind, count: int, position: int, sent: int, payload: bytes, previous: int, width: int = 0
) -> tuple[bytes, int]:
    """The bytes of a record and the CRC that its successor starts from."""
    payload += bytes(-len(payload) % UNIT)
    at, sums = divmod(position, 1 << 32)[::-1], divmod(sent, 1 << 32)[::-1]
    head = _HEAD.pack(MARK, kind, count, width, *at, *sums, zlib.crc32(payload))
    crc = zlib.crc32(head, previous)
    return head + _CRC.pack(crc) + payload, crc


def values_payload(values: NDArray[np.float64], points: int) -> bytes:
    """The payload of values that were asked at the points with this CRC32."""
    return _POINTS.pack(points, 0) + np.ascontiguousarray(values, "<f8").tobytes()


def window(ceiling: int, capacity: int) -> bytes:
    """The payload of a RESERVE."""
    return _WINDOW.pack(ceiling, capacity)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of one record, found good."""

    kind: Kind
    count: int
    width: int
    position: int
    sent: int
    payload_crc: int
    crc: int

    @property
    def size(self) -> int:
        """Bytes of the payload, padding included."""
        if self.kind in ROWS:
            return padded(_POINTS.size + 8 * self.numbers)
        return padded(_WINDOW.size if self.kind is Kind.RESERVE else self.count if self.kind in TEXT else 0)

    @property
    def numbers(self) -> int:
        """How many numbers a record of values holds; the count of any other."""
        return self.count * max(1, self.width) if self.kind in ROWS else self.count

    def values(self, payload: bytes) -> tuple[NDArray[np.float64], int]:
        """The values in the payload, (count,) or (count, width), and the CRC32 of their points."""
        values = np.frombuffer(payload, "<f8", self.numbers, _POINTS.size).astype(np.float64)
        return values.reshape(self.count, self.width) if self.width else values, _POINTS.unpack_from(payload)[0]


def unpack(data: bytes, previous: int | None) -> Head | None:
    """The head in these 32 bytes, if they are one and it follows the record whose CRC is `previous` (if given)."""
    if len(data) < UNIT:
        return None
    mark, kind, count, width, at, at_high, sent, sent_high, payload_crc = _HEAD.unpack_from(data)
    (crc,) = _CRC.unpack_from(data, _HEAD.size)
    if mark != MARK or not Kind.OPEN <= kind <= Kind.CLOSE:
        return None
    if previous is not None and zlib.crc32(data[: _HEAD.size], previous) != crc:
        return None
    return Head(Kind(kind), count, width, at | at_high << 32, sent | sent_high << 32, payload_crc, crc)
