"""The journal: its ledger never counts low, a torn tail is dropped, damage is refused with its place (F14, F16)."""

from __future__ import annotations

import os
import re
import resource
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from zomirror.errors import ArgumentError, BudgetError, RunError
from zomirror.runs import journal as journals
from zomirror.runs import lock, record
from zomirror.runs import scan as scans
from zomirror.runs.journal import Journal, Pace
from zomirror.runs.record import UNIT, Kind, file_header, pack, room
from zomirror.runs.replay import Replay
from zomirror.runs.scan import Scan, scan

RUN = bytes(range(16))


def owner(boot: str | None = None) -> bytes:
    return lock.Owner(1, "host", lock.boot_id() if boot is None else boot, "2", "2026-01-01T00:00:00Z").write()


def create(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.pwrite(fd, file_header(RUN), 0)
    return fd


def session(path: Path, *, boot: str | None = None, max_sent: int | None = None, pace: Pace | None = None) -> Journal:
    fd = os.open(path, os.O_RDWR)
    return Journal(fd, "the journal", scan(fd, "the journal"), session=owner(boot), max_sent=max_sent, pace=pace)


def look(path: Path) -> Scan:
    fd = os.open(path, os.O_RDONLY)
    try:
        return scan(fd, "the journal")
    finally:
        os.close(fd)


def recorded(path: Path) -> NDArray[np.float64]:
    fd = os.open(path, os.O_RDONLY)
    try:
        found = scan(fd, "the journal")
        return Replay(fd, "the journal", found).take(found.tally.position)
    finally:
        os.close(fd)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    os.close(create(tmp_path / "journal.bin"))
    return tmp_path / "journal.bin"


def write_small(path: Path, *, close: bool) -> tuple[Scan, NDArray[np.float64]]:
    """Two sessions with a lost batch, a batch sent again and rows beside the trajectory; killed, unless closed."""
    one = session(path)
    one.begin(3)
    one.values([0.5, -1.0, np.pi])
    one.begin(2)
    one.lose("OracleError")
    one.close()
    two = session(path)
    two.begin(4)
    two.resend(2)
    two.values([1.0, 2.0])
    two.values([np.inf, np.nan])
    two.begin(1)
    two.values([7.0], beside=7)
    two.begin(5)
    two.values(np.arange(5.0))
    if close:
        two.close()
    else:
        two.abandon()
    return look(path), recorded(path)


def test_ledger_of_a_small_journal(path: Path) -> None:
    found, values = write_small(path, close=True)
    ledger = found.tally
    assert (ledger.position, ledger.used, ledger.sent, ledger.lost, ledger.sessions) == (12, 13, 17, 4, 2)
    assert found.dropped == 0
    assert found.size == found.end
    np.testing.assert_array_equal(values, [0.5, -1, np.pi, 1, 2, np.inf, np.nan, 0, 1, 2, 3, 4])
    fd = os.open(path, os.O_RDONLY)
    replay = Replay(fd, "the journal", found)
    assert replay.aside(1, 6) is None
    assert replay.aside(2, 7) is None
    assert replay.aside(1, 7) == [7.0]
    assert replay.aside(1, 7) is None
    pieces = [replay.take(n) for n in (0, 1, 5, 4, 9, 3)]
    assert [len(piece) for piece in pieces] == [0, 1, 5, 4, 2, 0]
    np.testing.assert_array_equal(np.concatenate(pieces), values)
    os.close(fd)


def read_back(fd: int) -> tuple[Scan, NDArray[np.float64]]:
    found = scan(fd, "the journal")
    return found, Replay(fd, "the journal", found).take(found.tally.position)


@pytest.mark.parametrize("close", [True, False])
def test_journal_cut_at_every_byte(path: Path, close: bool) -> None:
    """Whatever was cut off, the rest is a prefix; and while the cut is in the last window, the count is not low."""
    whole, values = write_small(path, close=close)
    data = path.read_bytes()
    reservations = [at for at in range(UNIT, whole.end, UNIT) if data[at : at + 4] == record.MARK + b"\2"]
    sizes = range(min(len(data), whole.end + 3 * UNIT) - 1, -1, -1)
    fd = os.open(path, os.O_RDWR)
    for size in sizes:
        os.ftruncate(fd, size)
        if size < UNIT:
            with pytest.raises(RunError, match="damaged at byte 0:"):
                scan(fd, "the journal")
            continue
        found, kept = read_back(fd)
        np.testing.assert_array_equal(kept, values[: len(kept)])
        assert found.end <= size
        assert found.dropped <= size - found.end
        if size >= reservations[-1] + 2 * UNIT:  # later reservations are unknown only if their records are gone
            assert found.settled().sent >= whole.tally.sent
    os.close(fd)


@pytest.mark.parametrize("boot", ["same", "another"])
@pytest.mark.parametrize("close", [True, False])
def test_journal_with_any_byte_flipped(path: Path, close: bool, boot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every flipped byte is found: refused with its place, or the record is dropped with what cannot be known."""
    whole, values = write_small(path, close=close)
    if boot == "another":
        monkeypatch.setattr(lock, "boot_id", lambda: "another start of the machine")
    data = path.read_bytes()
    last = whole.end - (UNIT if close else 2 * UNIT + 32)
    fd = os.open(path, os.O_RDWR)
    refused = dropped = 0
    for at in range(min(len(data), whole.end + 5 * UNIT)):
        mask = 1 << at % 7 if at % 2 else 0xFF  # one bit, or all of them
        os.pwrite(fd, bytes([data[at] ^ mask]), at)
        try:
            found, kept = read_back(fd)
        except RunError as error:
            [place] = re.findall(r"damaged at byte ([\d,]+)", str(error))
            assert int(place.replace(",", "")) <= at
            refused += 1
        else:
            np.testing.assert_array_equal(kept, values[: len(kept)])
            assert found.settled().sent >= whole.tally.sent
            assert found.dropped > 0
            if at < whole.end:
                assert found.end <= at, "a record with a flipped byte was believed"
                assert at >= last or boot == "another"
                dropped += 1
        os.pwrite(fd, data[at : at + 1], at)
    os.close(fd)
    assert refused > 250
    if boot == "same":  # a kill tears payloads only: the payload of the last values, which is lost
        assert dropped == (0 if close else 64)
    else:
        assert dropped >= 32


def test_damage_before_a_later_session_is_refused_also_after_the_machine_went_down(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wide window of the first session covers all that the second sent; still the second was synced."""
    monkeypatch.setattr(journals, "_sync", lambda fd: None)
    one = session(path, boot="boot 1")
    for _ in range(300):
        one.begin(2)
        one.values([1.0, 2.0])
        place = one.place.offset
    assert one.tally.ceiling > 600 + 2
    one.close()
    two = session(path, boot="boot 2")
    two.begin(2)
    two.values([3.0, 4.0])
    two.abandon()
    data = bytearray(path.read_bytes())
    data[place - 1] ^= 1
    path.write_bytes(data)
    monkeypatch.setattr(lock, "boot_id", lambda: "boot 3")
    with pytest.raises(RunError, match=f"damaged at byte {place - 2 * UNIT:,}"):
        look(path)


def test_records_taken_out_doubled_or_swapped_are_found(path: Path) -> None:
    found, _ = write_small(path, close=True)
    data = path.read_bytes()
    starts, at, crc = [], UNIT, record.read_file_header(data[:UNIT])[2]  # type: ignore[index]
    while at < found.end:
        head = record.unpack(data[at : at + UNIT], crc)
        assert head is not None
        starts.append((at, at + UNIT + head.size))
        at, crc = starts[-1][1], head.crc
    assert len(starts) == found.records > 15
    for i, (a, b) in enumerate(starts[:-1]):
        c = starts[i + 1][1]
        for changed in (data[:a] + data[b:], data[:b] + data[a:], data[:a] + data[b:c] + data[a:b] + data[c:]):
            path.write_bytes(changed)
            try:
                seen = look(path)
            except RunError:
                continue
            else:  # only where nothing good can follow: the end of the file
                assert seen.end <= b
                assert i >= len(starts) - 2


def test_a_journal_of_another_run_or_format_is_not_taken(path: Path) -> None:
    header = file_header(RUN)
    other = bytearray(header)
    other[8] = 1
    path.write_bytes(bytes(other))
    with pytest.raises(RunError, match="damaged at byte 0"):
        look(path)
    import struct
    import zlib

    older = header[:8] + struct.pack("<I", 1) + header[12:28]
    path.write_bytes(older + struct.pack("<I", zlib.crc32(older)))
    with pytest.raises(RunError, match="format 1, this version reads format 2: use the version"):
        look(path)


LIES: dict[str, list[tuple[Any, ...]]] = {
    "no session": [(Kind.START, 1, 0, 1, b"")],
    "no reservation": [(Kind.OPEN, 2, 0, 0, b"{}"), (Kind.START, 1, 0, 1, b"")],
    "count from nowhere": [(Kind.OPEN, 2, 0, 9, b"{}")],
    "values from nowhere": [(Kind.OPEN, 2, 0, 0, b"{}"), (Kind.VALUES, 1, 1, 0, bytes(8))],
    "beyond the ceiling": [
        (Kind.OPEN, 2, 0, 0, b"{}"),
        (Kind.RESERVE, 5, 0, 0, record.window(5, 0)),
        (Kind.START, 6, 0, 6, b""),
    ],
    "ceiling": [(Kind.OPEN, 2, 0, 0, b"{}"), (Kind.RESERVE, 5, 0, 0, record.window(1 << 60, 0))],
    "huge text": [(Kind.OPEN, 1 << 31, 0, 0, b"{}")],
    "huge values": [
        (Kind.OPEN, 2, 0, 0, b"{}"),
        (Kind.RESERVE, 1 << 31, 0, 0, record.window(1 << 31, 0)),
        (Kind.START, 1 << 31, 0, 1 << 31, b""),
        (Kind.VALUES, 1 << 31, 1 << 31, 1 << 31, bytes(8)),
    ],
    "no rows": [
        (Kind.OPEN, 2, 0, 0, b"{}"),
        (Kind.RESERVE, 1, 0, 0, record.window(1, 0)),
        (Kind.START, 0, 0, 0, b""),
    ],
    "lost from nowhere": [(Kind.OPEN, 2, 0, 0, b"{}"), (Kind.LOST, 0, 0, 0, b"")],
    "beside what was not reached": [
        (Kind.OPEN, 2, 0, 0, b"{}"),
        (Kind.RESERVE, 1, 0, 0, record.window(1, 0)),
        (Kind.START, 1, 0, 1, b""),
        (Kind.ASIDE, 1, 5, 1, bytes(8)),
    ],
}


@pytest.mark.parametrize("lie", LIES)
def test_records_with_good_checksums_that_lie_are_refused(path: Path, lie: str) -> None:
    data = file_header(RUN)
    crc = int.from_bytes(data[-4:], "little")
    for kind, count, position, sent, payload in LIES[lie]:
        last = len(data)
        more, crc = pack(kind, count, position, sent, payload, crc)
        data += more
    path.write_bytes(data)
    with pytest.raises(RunError, match=f"damaged at byte {last}:"):
        look(path)


def test_a_file_of_endless_zeros_is_refused_at_once(path: Path) -> None:
    os.truncate(path, 1 << 42)
    with pytest.raises(RunError, match="more than are ever written"):
        look(path)


def test_nothing_is_written_before_the_first_batch(path: Path) -> None:
    write_small(path, close=False)
    before = path.read_bytes()
    session(path).close()
    assert path.read_bytes() == before


def test_begin_refuses_what_would_pass_the_cap_and_writes_nothing(path: Path) -> None:
    one = session(path, max_sent=10)
    one.begin(4)
    one.values(np.zeros(4))
    one.begin(6)
    before = path.read_bytes()
    with pytest.raises(BudgetError, match=r"pass max_sent = 10\. Nothing was sent"):
        one.resend(1)
    assert path.read_bytes() == before
    one.values(np.zeros(6))
    with pytest.raises(BudgetError, match="10 queries were sent"):
        one.begin(1)
    one.close()
    two = session(path, max_sent=11)
    two.begin(1)
    assert look(path).tally.ceiling == 11
    two.close()


def test_misuse_is_refused_before_anything_is_sent(path: Path) -> None:
    one = session(path)
    for rows in (0, -1, journals.MOST_BATCH + 1):
        with pytest.raises(ArgumentError, match="expected a batch of 1 to"):
            one.begin(rows)
    one.begin(2)
    with pytest.raises(RunError, match="a batch of 2 rows is in flight"):
        one.begin(1)
    with pytest.raises(RunError, match="cannot send 3 rows again"):
        one.resend(3)
    for wrong in ([1.0, 2.0, 3.0], [[1.0], [2.0], [3.0]], [[[1.0]]], [], 1.0):
        with pytest.raises(RunError, match="expected values for at most 2 rows"):
            one.values(wrong)
    one.close()
    one.close()
    with pytest.raises(RunError, match="is closed: run the same call again"):
        one.begin(1)
    assert look(path).tally.lost == 2


def test_more_values_than_a_record_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "rows_of_a_record", lambda width: 100)
    values = np.arange(1234.0)
    one = session(path)
    one.begin(1234)
    one.values(values)
    one.begin(250)
    one.values(np.ones(250), beside=3)
    one.close()
    np.testing.assert_array_equal(recorded(path), values)
    assert look(path).tally.asides == 250


def test_a_record_of_holes_is_refused_before_it_fills_the_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte of zeros whose checksums are right, in a file of a few kilobytes."""
    rows = record.MOST_NUMBERS
    one = session(path)
    monkeypatch.setattr(journals, "MOST_BATCH", rows)
    monkeypatch.setattr(Journal, "_grow", lambda self, size: None)
    one.begin(rows)
    end, tally = one.place.offset, one.tally
    one.abandon()
    size, crc, zeros = record.padded(8 + 8 * rows), 0, bytes(1 << 20)
    for start in range(0, size, 1 << 20):
        crc = zlib.crc32(zeros[: size - start], crc)
    head = record._HEAD.pack(record.MARK, Kind.VALUES, rows, 0, rows, 0, rows, 0, crc)
    with path.open("r+b") as file:
        file.truncate(end + UNIT + size)
        file.seek(end)
        file.write(head + record._CRC.pack(zlib.crc32(head, tally.crc)))
    assert path.stat().st_blocks * 512 < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(RunError, match=rf"damaged at byte {end:,}: a record of 1,073,741,[0-9]+ bytes in a file"):
            recorded(path)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", ["sessions", "lost batches", "values beside"])
def test_a_journal_of_small_records_takes_little_memory(path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F27: thousands of records that hold next to nothing, with good checksums, are read as they come or refused."""
    monkeypatch.setattr(scans, "MOST_ASIDES", 1_000)
    data, sent, beside = bytearray(file_header(RUN)), 0, record.values_payload(np.zeros(1), 0)
    crc = int.from_bytes(data[-4:], "little")

    def add(kind: Kind, count: int = 0, payload: bytes = b"") -> None:
        nonlocal crc
        more, crc = pack(kind, count, 0, sent, payload, crc)
        data.extend(more)

    add(Kind.OPEN)
    add(Kind.RESERVE, 20_000, record.window(20_000, 0))
    for _ in range(20_000):
        if what == "sessions":
            add(Kind.OPEN)
            continue
        sent += 1
        add(Kind.START, 1)
        add(*((Kind.LOST,) if what == "lost batches" else (Kind.ASIDE, 1, beside)))
    path.write_bytes(data)
    tracemalloc.start()
    try:
        if what == "values beside":
            with pytest.raises(RunError, match="more values beside the trajectory than are ever written"):
                look(path)
        else:
            assert look(path).records >= 20_000
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_a_window_is_one_sync_and_a_kill_in_it_loses_one_batch(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    monkeypatch.setattr(journals, "_sync", syncs.append)
    one = session(path)
    for _ in range(2_000):
        one.begin(10)
        one.values(np.zeros(10))
    one.begin(10)
    assert 1 <= len(syncs) < 100
    found = look(path)
    assert found.tally.ceiling > found.tally.sent, "no window was open"
    assert found.settled().sent == 20_010
    assert found.settled().lost == 10
    one.abandon()
    monkeypatch.setattr(lock, "boot_id", lambda: "another start of the machine")
    careful = look(path).settled()
    assert careful.sent == found.tally.ceiling > 20_010
    assert careful.used == 20_000


def test_a_slow_black_box_reserves_one_batch_and_syncs_its_values(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    synced: list[int] = []

    class Time:
        @staticmethod
        def monotonic() -> float:
            return clock[0]

    monkeypatch.setattr(journals, "time", Time)
    monkeypatch.setattr(journals, "_sync", lambda fd: synced.append(look(path).tally.position))
    one = session(path)
    for i in range(5):
        one.begin(10)
        assert look(path).tally.ceiling == one.tally.sent
        clock[0] += 30.0
        one.values(np.zeros(10))
        assert synced[-1] == 10 * (i + 1)
    assert one.tally.lost == 0
    one.close()


def test_journals_side_by_side_share_the_time(path: Path) -> None:
    pace = Pace()
    pace.cost = 0.01
    alone = pace.interval
    assert alone == pytest.approx(0.64)
    pace.members = 10
    assert pace.interval == pytest.approx(10 * alone)
    one = session(path, pace=pace)
    one.begin(1)
    assert pace.members == 11
    one.close()
    assert pace.members == 10


@contextmanager
def longest_file(size: int) -> Iterator[None]:
    """The operating system refuses longer files, as a full disk refuses more bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_met_before_the_batch_is_sent(path: Path) -> None:
    """Once a batch is begun there is room for its answers; the first that has none is refused, and nothing is lost."""
    with longest_file(60_000):
        one = session(path)
        done = 0
        refusal = ""
        while not refusal:
            try:
                one.begin(50)
                one.values(np.full(50, float(done)))
                done += 1
            except RunError as error:
                refusal = str(error)
        one.close()
    assert refusal.startswith("the room for the next answers in the journal would pass the largest file size")
    assert done > 90, "the last of the room is used too, one batch at a time"
    found = look(path)
    assert found.tally.closed
    assert (found.tally.used, found.tally.sent, found.tally.lost) == (50 * done, 50 * done, 0)
    two = session(path)
    two.begin(50)
    two.values(np.full(50, float(done)))
    two.close()
    np.testing.assert_array_equal(recorded(path), np.repeat(np.arange(done + 1.0), 50))


def test_a_journal_on_the_full_device_refuses_the_first_batch(tmp_path: Path) -> None:
    os.close(create(tmp_path / "journal.bin"))
    found = look(tmp_path / "journal.bin")
    fd = os.open("/dev/full", os.O_RDWR)
    one = Journal(fd, "the journal", found, session=owner(), max_sent=None)
    with pytest.raises(RunError, match="the disk is full"):
        one.begin(1)
    assert one.tally.sent == 0
    with pytest.raises(RunError, match="run the same call again"):
        one.begin(1)
    one.close()


def test_after_a_failed_sync_nothing_more_is_sent(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk holds after a failed sync is unknown, and a second sync may falsely succeed."""
    one = session(path)
    one.begin(1)
    one.values([1.0])

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(journals, "_sync", fail)
    with pytest.raises(RunError, match="Input/output error"):
        one.sync()
    monkeypatch.undo()
    with pytest.raises(RunError, match="could not be forced to the disk"):
        one.begin(1)
    one.close()
    assert look(path).settled().sent == 1


def test_ctrl_c_inside_a_write_leaves_a_journal_like_after_a_kill(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = session(path)
    one.begin(2)
    real = record.Tally.apply

    def interrupted(self: record.Tally, *args: Any) -> None:
        real(self, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(record.Tally, "apply", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.values([1.0, 2.0])
    monkeypatch.undo()
    with pytest.raises(RunError, match="interrupted while it was written"):
        one.begin(1)
    one.close()
    np.testing.assert_array_equal(recorded(path), [1.0, 2.0])


class PowerLoss(BaseException):
    """The machine goes down while a sync is under way."""


class Disk:
    """What is on the disk for sure, and what the kernel still holds: the machine can go down between any two calls."""

    SECTOR = 512

    def __init__(self, fd: int, monkeypatch: pytest.MonkeyPatch, syncs: int) -> None:
        self.fd = fd
        self.left = syncs + 1  # syncs that succeed
        self.safe = b""
        self.held: list[tuple[int, bytes]] = []
        pwrite, ftruncate = os.pwrite, os.ftruncate

        def write(fd: int, data: bytes, offset: int) -> int:
            if fd == self.fd:
                self.held.append((offset, bytes(data)))
            return pwrite(fd, data, offset)

        def truncate(fd: int, size: int) -> None:
            ftruncate(fd, size)
            if fd == self.fd:
                self.sync(fd)  # a shorter length reaches the disk before or with what follows

        monkeypatch.setattr(os, "pwrite", write)
        monkeypatch.setattr(os, "ftruncate", truncate)
        monkeypatch.setattr(journals, "_sync", self.sync)
        self.sync(fd)

    def sync(self, fd: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise PowerLoss
        self.safe = os.pread(self.fd, os.fstat(self.fd).st_size, 0)
        self.held = []

    def after_power_loss(self, chance: np.random.Generator) -> bytes:
        """Any sector that was not synced may have arrived or not, in any order; the length too."""
        image = bytearray(self.safe)
        keep = chance.uniform()
        for offset, data in self.held:
            at = 0
            while at < len(data):
                size = min(len(data) - at, self.SECTOR - (offset + at) % self.SECTOR)
                if chance.uniform() < keep:
                    image.extend(bytes(max(0, offset + at + size - len(image))))
                    image[offset + at : offset + at + size] = data[at : at + size]
                at += size
        return bytes(image)


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), batches=st.integers(0, 60), rows=st.integers(1, 80), crashes=st.integers(1, 3))
def test_power_loss_at_any_moment(
    tmp_path_factory: pytest.TempPathFactory, seed: int, batches: int, rows: int, crashes: int
) -> None:
    """Sectors written since the last sync arrive or not: the count is never low nor past the cap, values a prefix."""
    chance = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("power") / "journal.bin"
    os.close(create(path))
    asked = 0
    cap = rows * batches + int(chance.integers(0, rows + 1))
    for boot in range(crashes):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lock, "boot_id", lambda boot=boot: f"boot {boot}")
            one = session(path, boot=f"boot {boot}", max_sent=cap)
            start = one.tally.position
            disk = Disk(one._fd, patch, int(chance.integers(0, 8)))
            safe = start
            try:
                for _ in range(int(chance.integers(0, batches + 1))):
                    one.begin(rows)
                    asked += rows
                    if chance.uniform() < 0.1:
                        one.lose("for a test")
                        continue
                    one.values(one.tally.position + np.arange(rows, dtype=float))
                    if chance.uniform() < 0.05:
                        one.sync()
                        safe = one.tally.position
            except BudgetError:
                assert one.tally.sent + rows > cap
            except PowerLoss:
                pass
            image = disk.after_power_loss(chance)
            one.abandon()
        path.write_bytes(image)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lock, "boot_id", lambda boot=boot: f"boot {boot + 1}")
            settled = look(path).settled()
            assert asked <= settled.sent <= cap
            assert settled.position >= safe
            np.testing.assert_array_equal(recorded(path), np.arange(settled.position, dtype=float))


@pytest.mark.parametrize("width", [0, 1, 3, 1000])
def test_room_is_what_a_batch_takes(path: Path, width: int) -> None:
    for rows in (1, 4, 5, 201):
        one = session(path)
        one.begin(rows)
        end = one.place.offset - UNIT
        one.values(np.zeros((rows, width)) if width else np.zeros(rows))
        assert one.place.offset - end <= room(rows, width) <= one.place.offset - end + 2 * UNIT
        one.close()


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_rows_of_any_width_come_back_with_the_checksum_of_their_points(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, int]], points: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.bin"
    path.write_bytes(file_header(RUN))
    one, kept = session(path), []
    for i, (rows, width) in enumerate(batches):
        one.begin(rows)
        kept.append(np.arange(rows * max(1, width), dtype=float).reshape((rows, width) if width else (rows,)) + i)
        one.values(kept[-1], points=points)
    one.close()
    fd = os.open(path, os.O_RDONLY)
    try:
        replay = Replay(fd, "the journal", scan(fd, "the journal"))
        for values in kept:
            found = replay.take(len(values), points)
            assert found.shape == values.shape
            assert found.tobytes() == values.tobytes()
        replay = Replay(fd, "the journal", scan(fd, "the journal"))
        with pytest.raises(RunError, match="from query 0 on that belong to other points"):
            replay.take(1, points ^ 1)
    finally:
        os.close(fd)
