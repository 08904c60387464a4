"""Read a journal, from its first byte or from a place known to be intact: its totals, its end, and any damage."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import numpy as np

from zomirror.errors import RunError
from zomirror.runs import lock
from zomirror.runs.record import (
    FORMAT,
    HEAD,
    MARK,
    MOST,
    ROWS,
    TEXT,
    UNIT,
    Head,
    Kind,
    Place,
    Tally,
    read_file_header,
    unpack,
)

MOST_ASIDES = 1 << 16  # records off the trajectory; a journal with more is damaged
MOST_FREE = 1 << 30  # bytes after the last record; a journal with more is damaged
_BLOCK = 1 << 20
PLAIN = 1 << 24
"""Bytes of a record that is always read."""
PACKED = 256
"""A larger record has at most 256 times the bytes that its file takes on the disk: file systems that compress reach
that, files of holes exceed it."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found in a journal. Records end at byte `end`; `dropped` bytes of an unfinished write follow."""

    run_id: bytes
    tally: Tally
    end: int
    size: int
    dropped: int
    records: int  # intact ones that were read
    asides: dict[int, list[int]] = field(default_factory=dict)  # position -> offsets of the records
    same_machine: bool = False  # the machine was not restarted since the last session
    last: int = 0  # where the last record starts; 0: there is none
    start: int = UNIT  # where reading started

    @property
    def cut(self) -> bool:
        """Whether the file is shorter than it was when its last reservation was synced."""
        return not self.tally.closed and self.size < self.tally.capacity

    def settled(self) -> Tally:
        """The tally for the next session: a batch in flight is lost, and doubtful rows count as sent.

        The START of a batch is written, but not synced, before the batch is sent. It survives a kill of the process,
        but may be missing after a crash of the machine or if the file was cut: then everything reserved counts as sent.
        """
        unsure = not self.tally.closed and (self.cut or not self.same_machine)
        return replace(self.tally, open=0, sent=self.tally.ceiling if unsure else self.tally.sent)


def scan(fd: int, what: str, *, place: Place | None = None, moving: bool = False) -> Scan:
    """Read a journal from its first byte to its last intact record; RunError with the byte where it is damaged.

    Reading starts at `place` instead, if the journal has that record and that state there.

    A bad tail without later records is an unfinished write, and is left out. If the machine was not restarted since the
    last session, every record before another one was once intact, so a bad one there is damage. After a restart, any
    page that was not synced may be missing, and the tail starts at the first of them; but never before a reservation
    that was used, because that was synced. A journal whose owner is writing it is `moving`: it ends at the first byte
    that cannot be read, because later ones may be newer.
    """
    size = os.fstat(fd).st_size
    with os.fdopen(os.dup(fd), "rb", buffering=_BLOCK) as file:
        run_id, crc = _check_file_header(os.pread(fd, UNIT, 0), what)
        tally = Tally(crc)
        asides: dict[int, list[int]] = {}
        end, last = UNIT, 0
        if place is not None and _holds(fd, place, crc, size):
            tally, end, last = replace(place.tally), place.offset, place.last
            asides = {position: [*offsets] for position, offsets in place.asides.items()}
        file.seek(end)
        start, records, beside = end, 0, sum(len(offsets) for offsets in asides.values())
        torn_head = False
        while True:
            if end >= size:  # its owner may be writing faster than we read
                break
            data = file.read(UNIT)
            if len(data) < UNIT or not any(data):
                break
            head = unpack(data, tally.crc)
            if head is None:
                torn_head = True
                break
            if head.numbers > MOST.get(head.kind, head.numbers):
                raise _damage(what, end, f"{head.kind.name} of {head.numbers:,}, more than is ever written")
            check_size(fd, what, end, head)
            payload = _read_payload(file, head)
            if payload is None:
                break
            if head.kind is Kind.ASIDE:
                asides.setdefault(head.position, []).append(end)
                beside += 1
                if beside > MOST_ASIDES:
                    raise _damage(what, end, "more values beside the trajectory than are ever written")
            try:
                tally.apply(head.kind, head.count, head.position, head.sent, payload)
            except ValueError as error:
                raise _damage(what, end, str(error)) from error
            tally.crc = head.crc
            last = end
            end += UNIT + head.size
            records += 1
    owner = lock.Owner.read(tally.session)
    same_machine = owner is not None and owner.boot != "" and owner.boot == lock.boot_id()
    if moving:
        return Scan(run_id, tally, end, size, 0, records, asides, same_machine, last, start)
    if torn_head and same_machine:  # a kill may cut a payload, never a head: this was once an intact record
        raise _damage(what, end, "the record there is not intact")
    dropped = _check_tail(fd, what, end, size, ceiling=None if same_machine else tally.ceiling)
    return Scan(run_id, tally, end, size, dropped, records, asides, same_machine, last, start)


def check_size(fd: int, what: str, offset: int, head: Head) -> None:
    """RunError if a record is far larger than its whole file on the disk: a file of holes would fill the memory."""
    if head.size > PLAIN and head.size > PACKED * 512 * os.fstat(fd).st_blocks:
        raise _damage(what, offset, f"a record of {head.size:,} bytes in a file that takes far less of the disk")


def _holds(fd: int, place: Place, header: int, size: int) -> bool:
    """Whether the record that ends at the place is there, with the CRC and the totals of the place."""
    tally = place.tally
    if place.last == 0:
        return place.offset == UNIT and tally == Tally(header) and not place.asides
    if not UNIT <= place.last < place.offset <= size:
        return False
    head = unpack(os.pread(fd, UNIT, place.last), None)
    return (
        head is not None
        and place.last + UNIT + head.size == place.offset
        and (head.crc, head.sent) == (tally.crc, tally.sent)
        and (head.kind is Kind.ASIDE or head.position == tally.position)
    )


def _check_file_header(first: bytes, what: str) -> tuple[bytes, int]:
    header = read_file_header(first) if len(first) == UNIT else None
    if header is None:
        raise _damage(what, 0, "the file header is missing or not intact")
    run_id, version, crc = header
    if version != FORMAT:
        raise RunError(
            f"{what} has format {version}, this version reads format {FORMAT}: use the version that wrote it"
        )
    return run_id, crc


def _read_payload(file: BinaryIO, head: Head) -> bytes | None:
    """The payload of a text or a reservation, b'' for values; None if it fails its CRC."""
    crc, left, kept = 0, head.size, b""
    while left:
        block = file.read(min(left, _BLOCK))
        if not block:
            return None
        crc = zlib.crc32(block, crc)
        left -= len(block)
        if head.kind not in ROWS:
            kept += block
    if crc != head.payload_crc:
        return None
    return kept[: head.count] if head.kind in TEXT else kept


def _check_tail(fd: int, what: str, end: int, size: int, *, ceiling: int | None) -> int:
    """The number of bytes up to the last non-zero one; RunError if they contain records.

    With a `ceiling` they may contain records, but none that proves that a later reservation was synced.
    """
    if size - end > MOST_FREE:
        raise _damage(what, end, f"{size - end:,} bytes without a record follow, more than are ever written")
    dropped = records = reserves = last = 0
    proof = False
    for start in range(end, size, _BLOCK):
        block = os.pread(fd, min(_BLOCK, size - start), start)
        (used,) = np.nonzero(np.frombuffer(block, np.uint8))
        if not used.size:
            continue
        dropped = start - end + int(used[-1]) + 1
        heads = np.frombuffer(block, HEAD, len(block) // UNIT)
        seen = (heads["mark"] == MARK) & (heads["kind"] >= Kind.OPEN) & (heads["kind"] <= Kind.CLOSE)
        if start == end:
            seen[:1] = False  # the record that failed
        heads = heads[seen]
        if heads.size:
            records += heads.size
            reserves += int((heads["kind"] == Kind.RESERVE).sum())
            last = int(heads["kind"][-1])
            sent = heads["sent"].astype(np.int64) + (heads["sent_high"].astype(np.int64) << 32)
            proof |= bool(((heads["kind"] == Kind.START) & (sent > (ceiling or 0))).any())
    proof |= reserves > (last == Kind.RESERVE)
    if records and (ceiling is None or proof):
        raise _damage(what, end, f"the record there is not intact, and {records:,} more follow it")
    return dropped


def _damage(what: str, offset: int, reason: str) -> RunError:
    return RunError(
        f"{what} is damaged at byte {offset:,}: {reason}. What lies before is intact; restore the file from a copy, "
        f"or start in another run_dir"
    )
