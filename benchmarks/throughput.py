"""Measure the throughput of the paper's experiments: two processes against one, joint batches against single.

MNIST pertinent negatives and positives with the bundled LeNet, 40,201 queries each, by the runner of
`zomirror reproduce`: every run is durable and its outcome is on the disk. Both times are those of a whole call,
including the start of the processes (half a second). The outcomes must be the same.

Then runs of zo_ada_expmd and of the recommended method in one process, one at a time and eight at a time (`lockstep`),
whose batches the model evaluates as one: with the LeNet as it is, and with 2 ms added to each call.

    python benchmarks/throughput.py             ninety-six runs; writes results/throughput.json
    python benchmarks/throughput.py --quick     twelve shorter ones, prints only
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.kit.machine import machine, store

from zomirror.paper import images as pictures
from zomirror.paper import runner
from zomirror.paper.grid import Task
from zomirror.paper.images import network
from zomirror.paper.runner import run
from zomirror.paper.store import Store

AIM = 1.7
EIGHT = 8
"""Runs at a time in joint batches."""


def tasks(count: int, iterations: int) -> list[Task]:
    """`count` runs of zo_ada_expmd."""
    model = network("mnist")
    cases = [(image, kind) for image in range(count // 2) for kind in ("PN", "PP")]
    return [
        Task("mnist", "printed", kind, "adaexpmd", image, model.path, model.digest, iterations=iterations)
        for image, kind in cases
    ]


def seconds(todo: list[Task], workers: int, folder: Path) -> float:
    """Seconds of the whole call."""
    before = time.perf_counter()
    done = run(todo, folder, workers=workers)
    if done.computed != len(todo):
        raise SystemExit(f"expected {len(todo)} runs, got {done.computed}")
    return time.perf_counter() - before


def side_by_side(count: int, iterations: int) -> list[dict[str, Any]]:
    """Seconds with one run at a time and with eight, and the rows per call of the model."""
    table = []
    real = pictures.opened(network("mnist").path)
    for algorithm in ("adaexpmd", "recommended"):
        for wait in (0.0, 0.002):
            taken: dict[int, tuple[float, float]] = {}
            for lockstep in (1, EIGHT):
                calls: list[int] = []

                def model(batch: Any, calls: list[int] = calls, wait: float = wait) -> Any:
                    calls.append(len(batch))
                    time.sleep(wait)
                    return real(batch)

                # With the added wait, fewer iterations take long enough.
                todo = [replace(task, algorithm=algorithm) for task in tasks(count, iterations // (5 if wait else 1))]
                asked = patch.object(runner, "opened", return_value=model)
                with tempfile.TemporaryDirectory() as folder, asked:
                    before = time.perf_counter()
                    run(todo, Path(folder), lockstep=lockstep)
                    taken[lockstep] = time.perf_counter() - before, sum(calls) / len(calls)
            (alone, few), (together, many) = taken[1], taken[EIGHT]
            row = {"algorithm": algorithm, "wait_milliseconds": 1e3 * wait, "rows": few, "rows_together": many}
            table.append(row | {"ratio": alone / together})
            print(
                f"{algorithm}, {1e3 * wait:g} ms added per call: {few:.0f} rows per call alone, {many:.0f} jointly: "
                f"{alone / together:.2f} times the throughput",
                flush=True,
            )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs, writes nothing")
    quick = parser.parse_args().quick
    count, iterations = (12, 40) if quick else (96, 200)
    todo, state = tasks(count, iterations), machine()
    with tempfile.TemporaryDirectory() as root:
        warm, one, two = (Path(root) / name for name in ("warm", "one", "two"))
        run(todo[:1], warm)
        alone = seconds(todo, 1, one)
        both = seconds(todo, 2, two)
        for task in todo:
            a, b = Store(one).find(task), Store(two).find(task)
            if a is None or b is None or a.fun != b.fun:
                raise SystemExit(f"the outcomes of {task.key} differ")
    ratio = alone / both
    print(f"{count} runs: {alone:.1f} s in one process, {both:.1f} s in two: {ratio:.2f} times the throughput")
    print(f"(aim: at least {AIM} on two cores; this machine has {len(os.sched_getaffinity(0))})")
    lockstep = side_by_side(*((8, 10) if quick else (16, 100)))
    if not quick:
        found = {"runs": count, "queries_each": 201 * iterations + 1, "one_seconds": alone, "two_seconds": both}
        store("throughput", {"machine": state, **found, "ratio": ratio, "lockstep": lockstep})


if __name__ == "__main__":
    main()
