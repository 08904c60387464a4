"""Count the queries that the recommended method needs to match ZO-AdaExpMD on explanations, per image.

ZO-AdaExpMD runs as in the paper (m = 200, T = 200: 40,200 queries and one for the end; l1 = l2 = 0.1; PN from the
centre of [0, 1 - x0], PP from x0). Counted are the queries until the recommended method, with default settings, comes
within 2 % of ZO-AdaExpMD's final objective. Both run to the same budget and are compared at its end. Images are the
first of each class of the MNIST test set from position 6,000 on; none was used for tuning.

The CIFAR-10 photographs with ResNet20 come from the reproduction of the paper, whose grid has both methods (hinge,
l1 = l2 = 0.5). There F is known after every 201 queries at first, and later after every 1,005.

    python benchmarks/queries.py --images 20     writes results/queries.json and docs/images/queries.png
    python benchmarks/queries.py --study         runs nothing: adds the results of the reproduction
    python benchmarks/queries.py --quick         two images, prints only
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import zomirror as zm
from zomirror import datasets, models
from zomirror.contrast.loss import Hinge, MarginLoss, Softplus, change_margin, keep_margin
from zomirror.paper.outcome import steps
from zomirror.paper.settings import ADAPTIVE, ITERATIONS, QUERIES, RECOMMENDED
from zomirror.paper.store import read_study

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "queries.json"
STUDY = ROOT / "benchmarks" / "results" / "paper" / "cifar-printed.json"
PICTURE = ROOT / "docs" / "images" / "queries.png"
BUDGET = 40_201
CASES = [("MNIST", kind, loss) for kind in ("PN", "PP") for loss in ("hinge", "softplus")]
CASES += [("CIFAR-10", kind, "hinge") for kind in ("PN", "PP")]
LOSSES: dict[str, Callable[[], MarginLoss]] = {"hinge": Hinge, "softplus": Softplus}
Array = NDArray[Any]


@dataclass(frozen=True)
class Row:
    """One image, kind and loss."""

    image: int
    kind: str
    loss: str
    baseline: float
    """The final F of ZO-AdaExpMD."""
    queries: int | None
    """The queries until F was within 2 % of that; None if it never was."""
    final: float
    """The final F of the recommended method, after as many queries."""
    overhead: float | None
    """Processor time outside the model per query, relative to ZO-AdaExpMD's; None if not measured."""
    data: str = "MNIST"

    @property
    def case(self) -> tuple[str, str, str]:
        """The case, one of CASES."""
        return self.data, self.kind, self.loss

    @property
    def ratio(self) -> float:
        """The final F relative to ZO-AdaExpMD's; 1 if both are 0 (nothing has to change)."""
        return self.final / self.baseline if max(self.final, self.baseline) > 1e-6 else 1.0

    @property
    def fraction(self) -> float:
        """The queries as a fraction of 40,200."""
        return np.inf if self.queries is None else self.queries / (BUDGET - 1)


class Timed:
    """A function that sums its own time."""

    def __init__(self, fun: Callable[[Array], Array]) -> None:
        self.fun, self.seconds = fun, 0.0

    def __call__(self, X: Array) -> Array:
        """Values of the points, timed."""
        started = time.process_time()
        values = self.fun(X)
        self.seconds += time.process_time() - started
        return values


def problem(
    model: Any, x0: Array, kind: str, loss: MarginLoss
) -> tuple[Callable[[Array], Array], Array, tuple[Array, Array]]:
    """f, the start and the bounds of the paper."""
    shape = (-1, 1, 28, 28)
    label = int(np.argmax(model(x0.reshape(shape))))
    nothing = np.zeros_like(x0)
    if kind == "PN":
        return lambda X: loss(change_margin(model((X + x0).reshape(shape)), label)), (1 - x0) / 2, (nothing, 1 - x0)
    return lambda X: loss(keep_margin(model(X.reshape(shape)), label)), x0, (nothing, x0)


def compare(model: Any, x0: Array, image: int, kind: str, loss: str) -> Row:
    """One row of the table."""
    f, start, bounds = problem(model, x0, kind, LOSSES[loss]())
    per_query, results = [], []
    for method in (zm.methods.zo_ada_expmd(200), None):
        timed, started = Timed(f), time.process_time()
        result = zm.minimize(timed, start, l1=0.1, l2=0.1, bounds=bounds, budget=BUDGET, method=method, rng=image)
        per_query.append((time.process_time() - started - timed.seconds) / result.nfev)
        results.append(result)
    base, fast = results
    within = np.flatnonzero(fast.history.fun <= 1.02 * base.fun)
    queries = int(fast.history.nfev[within[0]]) if within.size else None
    return Row(image, kind, loss, base.fun, queries, fast.fun, per_query[1] / per_query[0])


def studied(path: Path) -> Iterator[Row]:
    """The rows of the images on which the reproduction has run both methods."""
    plain = [run for run in read_study(path) if run.iterations == ITERATIONS and not run.repeat and run.upscale == 1]
    found = {(run.kind, run.image, run.algorithm): run for run in plain}
    after = QUERIES * np.array(steps(ITERATIONS))
    for (kind, image, algorithm), base in sorted(found.items()):
        fast = found.get((kind, image, RECOMMENDED.name))
        if algorithm == ADAPTIVE.name and fast is not None:
            within = np.flatnonzero(np.array(fast.fun) <= 1.02 * base.fun[-1])
            queries = int(after[within[0]]) if within.size else None
            yield Row(image, kind, "hinge", base.fun[-1], queries, fast.fun[-1], None, "CIFAR-10")


def images(count: int) -> Iterator[tuple[int, Array]]:
    """Nearly the same number of images of each class."""
    test = datasets.mnist("test")
    chosen = [np.flatnonzero(test.labels[6000:] == c) + 6000 for c in range(10)]
    for k in range(count):
        i = int(chosen[k % 10][k // 10])
        yield i, (test.images[i].astype(np.float32) / np.float32(255)).ravel()


def summary(rows: list[Row]) -> list[dict[str, Any]]:
    """Medians and extremes of each case."""
    table = []
    for data, kind, loss in CASES:
        case = [row for row in rows if row.case == (data, kind, loss)]
        if case:
            overheads = [row.overhead for row in case if row.overhead is not None]
            table.append(
                {
                    "case": f"{data} {kind} {loss}",
                    "images": len(case),
                    "median_fraction": statistics.median(row.fraction for row in case),
                    "largest_fraction": max(row.fraction for row in case),
                    "reached": sum(row.queries is not None for row in case),
                    "median_final_ratio": statistics.median(row.ratio for row in case),
                    "median_overhead_ratio": statistics.median(overheads) if overheads else None,
                }
            )
    return table


def show(table: list[dict[str, Any]]) -> None:
    print(f"{'case':<18} {'images':>6} {'reached':>7} {'median':>7} {'largest':>7} {'final F':>8} {'overhead':>8}")
    for row in table:
        overhead = row["median_overhead_ratio"]
        print(
            f"{row['case']:<18} {row['images']:>6} {row['reached']:>7} {row['median_fraction']:>7.3f} "
            f"{row['largest_fraction']:>7.3f} {row['median_final_ratio']:>8.3f} "
            + ("" if overhead is None else f"{overhead:>8.2f}"),
            flush=True,
        )


def draw(rows: list[Row], path: Path) -> None:
    """One dot per image: queries against the final objective, relative to ZO-AdaExpMD's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    colours = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73", "#CC79A7")
    cases = [case for case in CASES if any(row.case == case for row in rows)]
    for k, case in enumerate(cases):
        reached = [row.fraction for row in rows if row.case == case and row.queries is not None]
        missed = sum(row.case == case and row.queries is None for row in rows)
        spread = np.random.default_rng(0).uniform(-0.18, 0.18, len(reached))
        axes.scatter(reached, k + spread, s=18, color=colours[k], alpha=0.8, linewidths=0)
        if missed:
            axes.annotate(
                f"{missed} not reached", (1.0, k), xytext=(-4, 8), textcoords="offset points", ha="right", fontsize=8
            )
    axes.axvline(0.1, color="0.5", linestyle="--", linewidth=1)
    axes.set(xscale="log", xlim=(0.004, 1.0), xlabel="queries, as a fraction of ZO-AdaExpMD's 40,200")
    axes.set_yticks(range(len(cases)), [f"{data} {kind}, {loss}" for data, kind, loss in cases])
    axes.invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def digits(count: int) -> list[Row]:
    """All rows of `count` digits."""
    model, rows = zm.as_classifier(models.path("lenet")), []
    for i, x0 in images(count):
        rows += [compare(model, x0, i, kind, loss) for data, kind, loss in CASES if data == "MNIST"]
        print(f"image {i}: " + ", ".join(f"{row.kind} {row.loss} {row.fraction:.3f}" for row in rows[-4:]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=20, help="how many test images (default 20)")
    parser.add_argument(
        "--study", action="store_true", help="run nothing: stored digits and the reproduction's photographs"
    )
    parser.add_argument("--quick", action="store_true", help="two images, writes nothing")
    options = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if options.study else None
    rows = digits(2 if options.quick else options.images) if stored is None else [Row(**row) for row in stored["rows"]]
    rows = [row for row in rows if row.data == "MNIST"] + list(studied(STUDY) if STUDY.is_file() else ())
    table = summary(rows)
    show(table)
    if not options.quick:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        here = {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
        machine = here if stored is None else stored["machine"]
        plain = [{name: (None if value == np.inf else value) for name, value in row.items()} for row in table]
        document = {"summary": plain, "rows": [asdict(row) for row in rows], "machine": machine}
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")
        draw(rows, PICTURE)


if __name__ == "__main__":
    main()
