"""Measure the cost of durability: the same run with and without run_dir, alternating, on this disk.

python benchmarks/durable.py [--repeats 75] [--quick] [--directory DIR]

The LeNet at d = 784: the margin of a bundled digit minimised by zo_ada_expmd with batches of m = 200, and the whole
explanation of it by the recommended method, whose batches have 11 rows. Printed are ratios, durable over plain: the
median over neighbouring pairs, which a busy machine disturbs least, with its 95 % confidence interval (by order
statistics, without an assumption on the noise); then the ratios of the medians, of the best times, and of the processor
times. Writes results/durable.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import zomirror as zm
from zomirror import models
from zomirror.datasets import digits

CARD = models.card("lenet")
LENET = zm.onnx_classifier(models.path("lenet"))
DIGIT = digits()
X0 = ((DIGIT.images[8].astype(np.float32).reshape(1, 28, 28) / 255 - CARD.mean[0]) / CARD.std[0]).astype(np.float32)
LABEL = int(DIGIT.labels[8])


def margin(changes: Any) -> Any:
    """The margin of the digit's class after each change."""
    scores = LENET(X0 + changes.reshape(-1, 1, 28, 28) / CARD.std[0])
    return scores[:, LABEL] - np.delete(scores, LABEL, axis=1).max(axis=1)


def minimised(budget: int, **durable: Any) -> Any:
    """Minimise the margin by mirror descent."""
    x = np.full(784, 0.1, np.float32)
    method = zm.methods.zo_ada_expmd(200)
    return zm.minimize(margin, x, l1=0.01, bounds=(0, 1), budget=budget, method=method, rng=0, **durable).x


def explained(budget: int, **durable: Any) -> Any:
    """Find the pertinent negative by the recommended method."""
    given: dict[str, Any] = {"kind": "PN", "mean": CARD.mean, "std": CARD.std, "budget": budget, "rng": 0}
    return zm.explain(LENET, X0, **given, **durable).x


def one_sync(root: Path) -> float:
    """Seconds to write and sync 4 kB on this disk: a run needs about fifteen of them, then one or two a second."""
    taken = []
    with (root / "sync").open("wb") as file:
        for _ in range(30):
            file.write(bytes(4096))
            file.flush()
            before = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - before)
    return statistics.median(taken)


def measure(run: Callable[..., Any], budget: int, repeats: int, root: Path) -> dict[str, Any]:
    """Seconds of both, alternating, so that other load affects both alike."""
    seconds: dict[str, list[float]] = {"plain": [], "durable": []}
    processor: dict[str, list[float]] = {"plain": [], "durable": []}
    results = [run(budget)]
    for i in range(repeats):
        for name in ("plain", "durable") if i % 2 else ("durable", "plain"):
            path = root / f"run-{i}"
            before, cpu = time.perf_counter(), time.process_time()
            results.append(run(budget, run_dir=path) if name == "durable" else run(budget))
            seconds[name].append(time.perf_counter() - before)
            processor[name].append(time.process_time() - cpu)
        shutil.rmtree(path)
    if len({x.tobytes() for x in results}) != 1:
        raise SystemExit("the durable run has another result")
    pairs = sorted(b / a for a, b in zip(*seconds.values(), strict=True))
    low = int(binom.ppf(0.025, repeats, 0.5))
    middle = {name: statistics.median(taken) for name, taken in seconds.items()}
    busy = {name: statistics.median(taken) for name, taken in processor.items()}
    return {
        "budget": budget,
        "repeats": repeats,
        "plain_seconds": round(middle["plain"], 4),
        "durable_seconds": round(middle["durable"], 4),
        "ratio_of_pairs": round(statistics.median(pairs), 4),
        "interval_of_pairs": [round(pairs[low], 4), round(pairs[-1 - low], 4)],
        "ratio": round(middle["durable"] / middle["plain"], 4),
        "ratio_of_best": round(min(seconds["durable"]) / min(seconds["plain"]), 4),
        "ratio_of_processor_time": round(busy["durable"] / busy["plain"], 4),
    }


def main() -> None:
    """Measure both tasks."""
    parser = argparse.ArgumentParser(description="time of durable runs relative to plain runs")
    parser.add_argument("--repeats", type=int, default=75)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs, writes nothing")
    parser.add_argument("--directory", type=Path, default=None, help="where the runs are written; its disk is measured")
    given = parser.parse_args()
    repeats = 3 if given.quick else given.repeats
    tasks = (("minimize zo_ada_expmd, m = 200", minimised, 40_201), ("explain recommended", explained, 10_000))
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=given.directory) as root:
        results["milliseconds of one sync"] = round(1e3 * one_sync(Path(root)), 3)
        for name, run, budget in tasks:
            results[name] = measure(run, budget // 5 if given.quick else budget, repeats, Path(root))
            sys.stdout.write(f"{name}: {json.dumps(results[name])}\n")
            sys.stdout.flush()
    if not given.quick:
        (Path(__file__).parent / "results").mkdir(exist_ok=True)
        (Path(__file__).parent / "results" / "durable.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
