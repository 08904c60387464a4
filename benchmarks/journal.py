"""Measure the cost of the journal: time in the run relative to time in the black box, on this disk.

python benchmarks/journal.py [directory]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from zomirror.runs import journal as journals
from zomirror.runs.directory import RunDirectory

ROWS = 201


def loop(batches: int, seconds: float, run: RunDirectory) -> tuple[float, float]:
    """Total seconds, and seconds in the journal alone, for batches of a black box that takes `seconds` each."""
    values = np.zeros(ROWS)
    inside = 0.0
    started = time.perf_counter()
    for _ in range(batches):
        before = time.perf_counter()
        run.begin(ROWS)
        begun = time.perf_counter()
        while time.perf_counter() < begun + seconds:
            pass
        answered = time.perf_counter()
        run.values(values)
        inside += begun - before + time.perf_counter() - answered
    return time.perf_counter() - started, inside


def measure(root: Path, batches: int, seconds: float) -> dict[str, float]:
    syncs = 0
    sync = journals._sync

    def counted(fd: int) -> None:
        nonlocal syncs
        syncs += 1
        sync(fd)

    journals._sync = counted
    path = root / f"run-{seconds:g}"
    started = time.perf_counter()
    with RunDirectory.open(path, {"seconds": seconds}, arrays={"x0": np.zeros(784)}, max_sent=10**9) as run:
        opened = time.perf_counter() - started
        whole, inside = loop(batches, seconds, run)
        started = time.perf_counter()
        run.finish({"fun": 0.0}, {"x": np.zeros(784)})
        finished = time.perf_counter() - started
    started = time.perf_counter()
    with RunDirectory.open(path) as run:
        run.take(batches * ROWS)
    replayed = time.perf_counter() - started
    journals._sync = sync
    return {
        "batch_ms": 1e3 * seconds,
        "batches": batches,
        "syncs": syncs,
        "cost_per_batch_ms": 1e3 * inside / batches,
        "overhead_percent": 100 * inside / (whole - inside),
        "open_ms": 1e3 * opened,
        "finish_ms": 1e3 * finished,
        "open_and_replay_ms": 1e3 * replayed,
    }


def sync_cost(root: Path) -> float:
    """Median milliseconds of one write and sync."""
    took = []
    with (root / "probe").open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(bytes(1664))
            started = time.perf_counter()
            journals._sync(file.fileno())
            took.append(time.perf_counter() - started)
    return 1e3 * float(np.median(took))


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        root = Path(name)
        print(f"one sync takes {sync_cost(root):.2f} ms on this disk; batches of {ROWS} rows")
        print("   black box  batches  syncs   cost/batch  overhead     open   finish")
        found = [measure(root, n, t) for n, t in ((20_000, 1e-4), (3_000, 1e-3), (500, 1e-2), (60, 1e-1))]
        for row in found:
            print(
                f"{row['batch_ms']:9.1f} ms {row['batches']:8d} {row['syncs']:6d} {row['cost_per_batch_ms']:9.4f} ms "
                f"{row['overhead_percent']:7.2f} % {row['open_ms']:5.0f} ms {row['finish_ms']:5.0f} ms"
            )
        print(json.dumps(found))


if __name__ == "__main__":
    main()
