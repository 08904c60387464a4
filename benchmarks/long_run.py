"""Measure long durable runs: memory, checkpoint, inspection and resumption after 3,000,000 queries at d = 50.

python benchmarks/long_run.py [--queries 3000000] [--quick] [--directory DIR]

Two runs in processes of their own, on a cheap function: the recommended method, and zo_ada_expmd with batches of two
rows, which has the most iterations and the longest journal for its queries. Each is killed with SIGKILL when nine
tenths of its queries are used. Measured are

    the memory of the process after 100,000 queries and when it is killed
    `zm.runs.inspect` of the killed run, and its checkpoint in bytes
    resuming: from the call of minimize to its first new query, with the checkpoint and without it

Times of the processor are also given as parts of what the run had taken: other load does not change them. Writes
results/long_run.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit.machine import machine, store

import zomirror as zm

D = 50
EARLY = 100_000
"""Queries after which the memory must not grow."""
METHODS: dict[str, zm.methods.Method | None] = {
    "recommended": None,
    "zo_ada_expmd, 2 rows a batch": zm.methods.zo_ada_expmd(1),
}
LIMITS = {"inspect_seconds": 1.0, "resume_seconds": 3.0, "checkpoint_bytes": 1_000_000}
CENTRE = np.where(np.arange(D) % 10 == 0, 1.0, 0.0)


def memory() -> float:
    """The resident memory of this process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGESIZE") / 1e6, 1)


def child(path: Path, name: str, queries: int, *, killed: bool) -> None:
    """One process of the run; prints what it measured when it dies or asks its first new query."""
    began, told = time.monotonic(), {"early_megabytes": 0.0}
    early, busy = min(EARLY, queries // 4), time.process_time()

    def taken() -> dict[str, float]:
        return {"seconds": time.monotonic() - began, "processor": time.process_time() - busy}

    def fun(points: Any) -> Any:
        if not killed:
            print(json.dumps(taken() | {"megabytes": memory()}), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return np.square(points - CENTRE).sum(axis=1)

    def watch(now: Any) -> None:
        if not told["early_megabytes"] and now.nfev >= early:
            told["early_megabytes"] = memory()
        if killed and now.nfev >= 0.9 * queries:
            print(json.dumps(told | taken() | {"megabytes": memory()}), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    x0 = np.full(D, 0.5)
    given: dict[str, Any] = {"l1": 0.05, "bounds": (0, 1), "budget": queries, "rng": 0, "method": METHODS[name]}
    zm.minimize(fun, x0, **given, max_sent=2 * queries, callback=watch, run_dir=path)


def started(path: Path, name: str, queries: int, what: str) -> dict[str, float]:
    """Run `child` in a process of its own, to its SIGKILL."""
    command = [sys.executable, __file__, "--child", str(path), name, str(queries), what]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != -signal.SIGKILL:
        raise SystemExit(f"expected the run to end by SIGKILL, got exit code {done.returncode}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(root: Path, name: str, queries: int) -> dict[str, Any]:
    """One run: killed, inspected and resumed."""
    path = root / "run"
    run = started(path, name, queries, "killed")
    before = time.monotonic()
    info = zm.runs.inspect(path)
    inspected = time.monotonic() - before
    if info.used < 0.9 * queries or info.damage:
        raise SystemExit(f"expected a run that was killed late, got {info}")
    size = (path / "checkpoint.npz").stat().st_size
    resumed = started(path, name, queries, "resumed")
    (path / "checkpoint.npz").unlink()
    replayed = started(path, name, queries, "resumed")
    found = {
        "method": name,
        "queries": info.used,
        "run_seconds": round(run["seconds"], 1),
        "run_processor_seconds": round(run["processor"], 1),
        "megabytes_early": run["early_megabytes"],
        "megabytes_late": run["megabytes"],
        "memory_growth": round(run["megabytes"] / run["early_megabytes"], 3),
        "journal_bytes": (path / "journal.bin").stat().st_size,
        "checkpoint_bytes": size,
        "inspect_seconds": round(inspected, 3),
        "resume_seconds": round(resumed["seconds"], 3),
        "resume_processor_seconds": round(resumed["processor"], 3),
        "resume_part_of_run": round(resumed["processor"] / run["processor"], 4),
        "replay_seconds": round(replayed["seconds"], 1),
        "replay_part_of_run": round(replayed["processor"] / run["processor"], 3),
        "replay_megabytes": replayed["megabytes"],
    }
    shutil.rmtree(path)
    return found


def main() -> None:
    """Measure both methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=3_000_000)
    parser.add_argument("--quick", action="store_true", help="100,000 queries, writes nothing")
    parser.add_argument("--directory", type=Path, default=None, help="where the runs are written")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        path, name, queries, what = given.child
        child(Path(path), name, int(queries), killed=what == "killed")
        return
    state, rows = machine(), []
    with tempfile.TemporaryDirectory(dir=given.directory) as root:
        for name in METHODS:
            row = measure(Path(root), name, 100_000 if given.quick else given.queries)
            rows.append(row)
            print(json.dumps(row), flush=True)
            for key, limit in LIMITS.items():
                print(f"{name}: {key} {row[key]:,} ({row[key] / limit:.2f} of the aim, {limit:,})", flush=True)
    if not given.quick:
        store("long_run", {"machine": state, "rows": rows})


if __name__ == "__main__":
    main()
