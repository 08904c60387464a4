"""Measure the optimiser's overhead: (wall time - time inside the function) / time inside the function.

zo_ada_expmd on the softplus of a pertinent negative's margin, on one thread, in float32 and float64, with m = 200 and
m = 20: a LeNet of the paper's size at d = 784, the bundled ResNet20 at d = 3,072 and the bundled LeNet. The overhead is
largest for fast networks, so the rows per second of each are printed too. The aims are for the paper's LeNet; the
bundled one has a tenth of its weights. `--model` adds another ONNX file. Then follow the recommended method, whose
batches have 11 rows and more, compared with m = 10; the mirror step, compared with scipy.special.wrightomega, the usual
way to compute it; and the processor time of an iteration with and without the compiled loops. Runs alternate, and the
median over them is reported.

    python benchmarks/overhead.py             writes results/overhead.json
    python benchmarks/overhead.py --quick     fewer and shorter runs, prints only
    python benchmarks/overhead.py --model other.onnx --name "another LeNet"      adds another network
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit import paper_lenet
from benchmarks.kit.machine import machine, store
from numpy.typing import NDArray
from scipy.special import wrightomega

import zomirror as zm
from zomirror import models
from zomirror.classifiers import Classifier
from zomirror.classifiers.onnx import Onnx
from zomirror.contrast.loss import Softplus, change_margin
from zomirror.numerics import kernels

Array = NDArray[Any]
PAPER = "paper's LeNet"
RESNET, LENET = "bundled resnet20", "bundled lenet"
LIMITS = {PAPER: {200: 0.05, 20: 0.10}, RESNET: {200: 0.01, 20: 0.02}}
"""The aim for the overhead, by network and batch size."""


@dataclass(frozen=True)
class Row:
    """One method on one network in one type."""

    model: str
    method: str
    d: int
    batch_size: int
    dtype: str
    rows: float
    """The mean number of rows in a batch."""
    rows_per_second: float
    """Rows per second of the function."""
    batch_milliseconds: float
    """Time inside the function per iteration."""
    optimiser_microseconds: float
    """Time outside it per iteration."""
    query_microseconds: float
    """Time outside it per query."""
    overhead: float
    """The overhead in wall time."""
    processor_overhead: float
    """The overhead in processor time."""
    iteration_overhead: float
    """The overhead in wall time of the fastest tenth of the iterations, which other load disturbs least."""
    limit: float | None


class Timed:
    """The loss of a pertinent negative of a random input, timed."""

    def __init__(self, model: Any, dtype: Any) -> None:
        self.model, self.loss = model, Softplus()
        shape = model.input_shape
        if shape is None or None in shape:
            raise SystemExit(f"expected a model whose input has a fixed shape, got {shape}")
        self.shape = tuple(int(side) for side in shape if side is not None)
        self.x0 = np.random.default_rng(0).random(self.shape).astype(dtype) / 2
        self.label = int(model(self.x0[None].astype(np.float32))[0].argmax())
        self.reset()

    def reset(self) -> None:
        """Forget all calls."""
        self.seconds, self.processor, self.rows, self.calls = 0.0, 0.0, 0, 0
        self.marks: list[tuple[float, float]] = []
        """When each call began and ended."""

    @property
    def d(self) -> int:
        """The dimension."""
        return self.x0.size

    def __call__(self, changes: Array) -> Array:
        """log(1 + e^margin) of x0 + change, one per row; unlike the hinge it is nowhere flat."""
        before, cpu = time.perf_counter(), time.process_time()
        scores = self.model(changes.reshape(-1, *self.shape) + self.x0)
        values = self.loss(change_margin(scores, self.label))
        self.processor += time.process_time() - cpu
        after = time.perf_counter()
        self.marks.append((before, after))
        self.seconds += after - before
        self.rows += len(changes)
        self.calls += 1
        return values


def run(fun: Timed, method: zm.methods.MirrorDescent | None, budget: int) -> tuple[float, ...]:
    """One minimisation: seconds outside and inside a call, rows per second, overhead in wall and processor time.

    Then follow the tenth percentile of the gaps between calls relative to that of the calls, seconds outside per query,
    and rows per batch.
    """
    x0 = np.full(fun.d, 0.1, fun.x0.dtype)
    fun.reset()
    before, cpu = time.perf_counter(), time.process_time()
    zm.minimize(fun, x0, l1=0.01, l2=0.01, bounds=(0, 0.5), budget=budget, method=method, rng=0)
    cpu = time.process_time() - cpu - fun.processor
    outside, inside = time.perf_counter() - before - fun.seconds, fun.seconds
    marks = np.array(fun.marks[:-1])  # the last call measures the returned point
    gaps, calls = marks[1:, 0] - marks[:-1, 1], marks[:, 1] - marks[:, 0]
    least = float(np.percentile(gaps, 10) / np.percentile(calls, 10))
    wall, processor = outside / inside, cpu / fun.processor
    speed, query = fun.rows / inside, outside / fun.rows
    return outside / fun.calls, inside / fun.calls, speed, wall, processor, least, query, fun.rows / fun.calls


def measure(name: str, model: Classifier, repeats: int, iterations: int) -> Iterator[Row]:
    """The rows of one network; runs of different settings alternate."""
    presets: dict[str, Callable[[], zm.methods.MirrorDescent | None]] = {
        "zo_ada_expmd m = 200": lambda: zm.methods.zo_ada_expmd(200),
        "zo_ada_expmd m = 20": lambda: zm.methods.zo_ada_expmd(20),
        "zo_ada_expmd m = 10": lambda: zm.methods.zo_ada_expmd(10),
        "recommended": lambda: None,
    }
    batches = {"zo_ada_expmd m = 200": 200, "zo_ada_expmd m = 20": 20, "zo_ada_expmd m = 10": 10, "recommended": 10}
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for _ in range(repeats + 1):  # the first is a warm-up
        for dtype in ("float32", "float64"):
            fun = Timed(model, dtype)
            for method, make in presets.items():
                # Small batches take less time, so there are more of them.
                count = iterations * (1 if batches[method] == 200 else 10)
                found.setdefault((dtype, method), []).append(run(fun, make(), count * (batches[method] + 1) + 1))
    for (dtype, method), taken in found.items():
        parts = [statistics.median(part) for part in zip(*taken[1:], strict=True)]
        outside, inside, speed, wall, cpu, least, query, rows = parts
        limit = None if method == "recommended" else LIMITS.get(name, {}).get(batches[method])
        yield Row(
            name,
            method,
            fun.d,
            batches[method],
            dtype,
            rows,
            speed,
            1e3 * inside,
            1e6 * outside,
            1e6 * query,
            wall,
            cpu,
            least,
            limit,
        )


def mirror_step(d: int, repeats: int) -> dict[str, Any]:
    """Seconds of the step and of scipy's wrightomega on the same coordinates, alternating."""
    rng = np.random.default_rng(0)
    box, penalty, eta = zm.methods.Box(0.0, 1.0), zm.methods.ElasticNet(0.1, 0.1), 2.0
    table: dict[str, Any] = {"d": d}
    for dtype in (np.float32, np.float64):
        x: Array = rng.random(d).astype(dtype)
        g: Array = rng.normal(size=d).astype(dtype)
        z = np.log1p(d * np.abs(x)) - g / dtype(eta)
        b = dtype(penalty.l2 / eta)
        ours: list[float] = []
        theirs: list[float] = []
        argument = (np.abs(z) - dtype(penalty.l1 / eta) + b / d + np.log(b / d)).astype(dtype)
        for _ in range(repeats):
            before = time.perf_counter()
            zm.methods.Entropy().step(x, g, eta, penalty, box)
            between = time.perf_counter()
            wrightomega(argument)
            ours.append(between - before)
            theirs.append(time.perf_counter() - between)
        table[np.dtype(dtype).name] = {
            "step_milliseconds": 1e3 * statistics.median(ours),
            "wrightomega_milliseconds": 1e3 * statistics.median(theirs),
            "ratio": statistics.median(a / b for a, b in zip(ours, theirs, strict=True)),
        }
    return table


def compiled_loops(repeats: int, iterations: int) -> list[dict[str, Any]]:
    """Microseconds of an iteration of zo_ada_expmd with a function that takes none, in numpy and compiled."""
    table: list[dict[str, Any]] = []
    if (loops := kernels.found()) is None:
        return table
    for m, d in ((20, 784), (200, 784), (20, 3_072), (200, 3_072), (200, 10_000)):
        for dtype in (np.float32, np.float64):
            taken: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(repeats + 1):
                for compiled in taken:
                    kernels.compiled = loops if compiled else None
                    taken[compiled].append(_iteration(m, d, dtype, iterations))
            plain, fast = (statistics.median(taken[side][1:]) for side in (False, True))
            table.append(
                {
                    "batch_size": m,
                    "d": d,
                    "dtype": np.dtype(dtype).name,
                    "numpy_microseconds": plain,
                    "compiled_microseconds": fast,
                    "ratio": fast / plain,
                }
            )
    kernels.compiled = loops
    return table


def _iteration(m: int, d: int, dtype: Any, iterations: int) -> float:
    values = np.random.default_rng(0).random(m + 1)
    before = time.process_time()
    zm.minimize(
        lambda points: values[: len(points)],
        np.full(d, 0.1, dtype),
        l1=0.01,
        l2=0.01,
        bounds=(0, 0.5),
        budget=iterations * (m + 1) + 1,
        method=zm.methods.zo_ada_expmd(m),
        rng=0,
    )
    return 1e6 * (time.process_time() - before) / iterations


def networks(given: argparse.Namespace) -> Iterator[tuple[str, Classifier]]:
    """A LeNet of the paper's size, the bundled networks, and those of --model."""
    yield PAPER, Onnx(paper_lenet.content(), name=PAPER)
    yield RESNET, zm.onnx_classifier(models.path("resnet20"))
    yield LENET, zm.onnx_classifier(models.path("lenet"))
    names = given.name or [path.stem for path in given.model]
    for path, name in zip(given.model, names, strict=True):
        yield name, zm.onnx_classifier(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs, writes nothing")
    parser.add_argument("--model", type=Path, action="append", default=[], help="one more ONNX file")
    parser.add_argument("--name", action="append", help="the name of that file in the table")
    given = parser.parse_args()
    found, state = [], machine()
    for name, model in networks(given):
        slow = Timed(model, "float32").d > 1_000
        repeats, iterations = (2, 3 if slow else 20) if given.quick else (3, 20) if slow else (5, 40)
        rows = list(measure(name, model, repeats, iterations))
        found += rows
        for row in rows:
            aim = "" if row.limit is None else f"  (at most {row.limit:g})"
            print(
                f"{row.model:22} {row.method:21} {row.dtype}  {row.rows_per_second:7,.0f} rows/s  "
                f"{row.optimiser_microseconds:6,.0f} us per batch of {row.batch_milliseconds:7.2f} ms: overhead "
                f"{row.overhead:.4f}, of processor time {row.processor_overhead:.4f}, "
                f"of undisturbed iterations {row.iteration_overhead:.4f}{aim}",
                flush=True,
            )
        for dtype in ("float32", "float64"):
            cost = {row.method: row.query_microseconds for row in rows if row.dtype == dtype}
            ours = cost.pop("recommended")
            parts = ", ".join(f"{ours / theirs:.2f} of {method}" for method, theirs in cost.items())
            print(f"{name:22} recommended, {dtype}: {ours:.1f} us per query, {parts}", flush=True)
    step = mirror_step(100_000 if given.quick else 1_000_000, 3 if given.quick else 15)
    for dtype in ("float32", "float64"):
        print(f"mirror step, {step['d']:,} coordinates, {dtype}: {step[dtype]['ratio']:.3f} of wrightomega's time")
    loops = compiled_loops(*((2, 20) if given.quick else (5, 100)))
    for pair in loops:
        print(
            f"m = {pair['batch_size']:3}, d = {pair['d']:6,}, {pair['dtype']}: an iteration takes "
            f"{pair['compiled_microseconds']:6,.0f} us, in numpy alone {pair['numpy_microseconds']:6,.0f}: "
            f"{pair['ratio']:.2f}"
        )
    if not given.quick:
        store(
            "overhead",
            {"machine": state, "rows": [asdict(row) for row in found], "mirror_step": step, "compiled_loops": loops},
        )


if __name__ == "__main__":
    main()
