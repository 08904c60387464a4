"""Measure memory and time of an iteration from d = 1,000 to 10,000,000: zo_ada_expmd with m = 200.

Each run is a process of its own on one thread, whose peak memory is read from the kernel. The baseline is the peak of a
process that has imported everything and made x0. The time is processor time outside the function, per query and
coordinate, in the median iteration without the first ones, which pay for fresh memory pages. It is compared with the
time to copy x into each row of a block, a lower bound for making a batch of points.

    python benchmarks/memory.py             writes results/memory.json
    python benchmarks/memory.py --quick     up to d = 100,000, prints only
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit.machine import machine, store

import zomirror as zm
from zomirror.methods.query import MAX_BLOCK_BYTES

BATCH = 200
ITERATIONS = {1_000: 400, 10_000: 100, 100_000: 20, 1_000_000: 8, 10_000_000: 5}
LIMITS = {1_000_000: 300, 10_000_000: 2_000}
"""The aim, in megabytes over the baseline (at d = 1e7 in total)."""


def peak() -> int:
    """The peak memory of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise SystemExit("expected VmHWM in /proc/self/status, got none: run this on Linux")


class Squares:
    """|x|^2 / 2 without copying the points, timed."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, points: Any) -> Any:
        """One number per row."""
        before = time.process_time()
        values = 0.5 * np.einsum("ij,ij->i", points, points)
        self.seconds += time.process_time() - before
        return values


def child(d: int, dtype: str, iterations: int) -> dict[str, Any]:
    """One run in this process."""
    x0 = np.full(d, 0.5, dtype)
    fun, baseline, marks = Squares(), peak(), []

    def mark(_: Any) -> None:
        marks.append(time.process_time() - fun.seconds)

    budget = iterations * (BATCH + 1) + 1
    zm.minimize(
        fun, x0, l1=0.1, bounds=(-1, 1), budget=budget, method=zm.methods.zo_ada_expmd(BATCH), rng=0, callback=mark
    )
    most = peak()
    seconds = statistics.median(np.diff(marks[1:]))
    return {
        "d": d,
        "dtype": dtype,
        "batch_size": BATCH,
        "baseline_megabytes": round(baseline / 1e6, 1),
        "over_baseline_megabytes": round((most - baseline) / 1e6, 1),
        "nanoseconds_per_query_and_coordinate": 1e9 * seconds / ((BATCH + 1) * d),
        "copying_nanoseconds": 1e9 * copying(x0) / d,
    }


def copying(x: Any) -> float:
    """Processor seconds to copy x into a row of a block of the usual size."""
    rows = np.empty((min(BATCH + 1, max(1, MAX_BLOCK_BYTES // x.nbytes)), x.size), x.dtype)
    taken = []
    for _ in range(9):
        before = time.process_time()
        rows[:] = x
        taken.append(time.process_time() - before)
    return statistics.median(taken) / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to d = 100,000, writes nothing")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(int(given.child[0]), given.child[1], int(given.child[2]))))
        return
    state, rows = machine(), []
    for dtype in ("float32", "float64"):
        for d, iterations in ITERATIONS.items():
            if given.quick and d > 100_000:
                continue
            few = str(max(4, iterations // 5) if given.quick else iterations)
            command = [sys.executable, __file__, "--child", str(d), dtype, few]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            row = json.loads(done.stdout)
            rows.append(row)
            cost, over = row["nanoseconds_per_query_and_coordinate"], row["over_baseline_megabytes"]
            limit = LIMITS.get(d)
            aim = "" if limit is None else f"  (at most {limit:,} MB)"
            print(
                f"{dtype}  d = {d:>10,}: {cost:.3f} ns per query and coordinate ({row['copying_nanoseconds']:.3f} to "
                "copy x), "
                f"{over:,.0f} MB over {row['baseline_megabytes']:,.0f}{aim}",
                flush=True,
            )
        costs = [row["nanoseconds_per_query_and_coordinate"] for row in rows if row["dtype"] == dtype]
        print(f"{dtype}: the most expensive d costs {max(costs) / min(costs):.2f} times the cheapest")
    if not given.quick:
        store("memory", {"machine": state, "rows": rows})


if __name__ == "__main__":
    main()
