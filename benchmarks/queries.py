"""How many queries the recommended method needs to match ZO-AdaExpMD, per image, on pertinent positives and negatives.

ZO-AdaExpMD runs as in the paper (m = 200, T = 200: 40,200 queries and one for the end; l1 = l2 = 0.1; PN from the
centre of [0, 1 - x0], PP from x0). Counted are the queries until the recommended method, with no setting at all,
comes within 2 % of the objective that it ended with. Both are run to the same budget and compared at its end. Images
are the first of each class of the MNIST test set from position 6,000 on, none of which was used to tune anything.

    python benchmarks/queries.py --images 20     writes results/queries.json and docs/images/queries.png
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
from zomirror.losses import Hinge, Loss, Softplus, change_margin, keep_margin

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "queries.json"
PICTURE = ROOT / "docs" / "images" / "queries.png"
BUDGET = 40_201
CASES = [(kind, loss) for kind in ("PN", "PP") for loss in ("hinge", "softplus")]
LOSSES: dict[str, Callable[[], Loss]] = {"hinge": Hinge, "softplus": Softplus}
Array = NDArray[Any]


@dataclass(frozen=True)
class Row:
    """One image, kind and loss."""

    image: int
    kind: str
    loss: str
    baseline: float
    """F where ZO-AdaExpMD ended."""
    queries: int | None
    """Until F was within 2 % of that; None when it never was."""
    final: float
    """F where the recommended method ended, with as many queries."""
    overhead: float
    """CPU time outside the model, per query, against ZO-AdaExpMD's."""

    @property
    def ratio(self) -> float:
        """The final F against ZO-AdaExpMD's; 1 where both found that nothing is needed (F = 0)."""
        return self.final / self.baseline if max(self.final, self.baseline) > 1e-6 else 1.0

    @property
    def fraction(self) -> float:
        """Of the 40,200 queries."""
        return np.inf if self.queries is None else self.queries / (BUDGET - 1)


class Timed:
    """A function that knows how long it took."""

    def __init__(self, fun: Callable[[Array], Array]) -> None:
        self.fun, self.seconds = fun, 0.0

    def __call__(self, X: Array) -> Array:
        """Ask, and add the time."""
        started = time.process_time()
        values = self.fun(X)
        self.seconds += time.process_time() - started
        return values


def problem(
    model: Any, x0: Array, kind: str, loss: Loss
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
    for method in (zm.zo_ada_expmd(200), None):
        timed, started = Timed(f), time.process_time()
        result = zm.minimize(timed, start, l1=0.1, l2=0.1, bounds=bounds, budget=BUDGET, method=method, rng=image)
        per_query.append((time.process_time() - started - timed.seconds) / result.nfev)
        results.append(result)
    base, fast = results
    within = np.flatnonzero(fast.history.fun <= 1.02 * base.fun)
    queries = int(fast.history.nfev[within[0]]) if within.size else None
    return Row(image, kind, loss, base.fun, queries, fast.fun, per_query[1] / per_query[0])


def images(count: int) -> Iterator[tuple[int, Array]]:
    """The same number of each class, as near as may be."""
    test = datasets.mnist("test")
    chosen = [np.flatnonzero(test.labels[6000:] == c) + 6000 for c in range(10)]
    for k in range(count):
        i = int(chosen[k % 10][k // 10])
        yield i, (test.images[i].astype(np.float32) / np.float32(255)).ravel()


def summary(rows: list[Row]) -> list[dict[str, Any]]:
    """Medians and extremes of each case."""
    table = []
    for kind, loss in CASES:
        case = [row for row in rows if (row.kind, row.loss) == (kind, loss)]
        if case:
            table.append(
                {
                    "case": f"{kind} {loss}",
                    "images": len(case),
                    "median_fraction": statistics.median(row.fraction for row in case),
                    "largest_fraction": max(row.fraction for row in case),
                    "reached": sum(row.queries is not None for row in case),
                    "median_final_ratio": statistics.median(row.ratio for row in case),
                    "median_overhead_ratio": statistics.median(row.overhead for row in case),
                }
            )
    return table


def show(table: list[dict[str, Any]]) -> None:
    print(f"{'case':<12} {'images':>6} {'reached':>7} {'median':>7} {'largest':>7} {'final F':>8} {'overhead':>8}")
    for row in table:
        print(
            f"{row['case']:<12} {row['images']:>6} {row['reached']:>7} {row['median_fraction']:>7.3f} "
            f"{row['largest_fraction']:>7.3f} {row['median_final_ratio']:>8.3f} {row['median_overhead_ratio']:>8.2f}",
            flush=True,
        )


def draw(rows: list[Row], path: Path) -> None:
    """Every image as a dot: queries against the part of the objective it ends with."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    colours = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00")
    for k, (kind, loss) in enumerate(CASES):
        reached = [row.fraction for row in rows if (row.kind, row.loss) == (kind, loss) and row.queries is not None]
        missed = sum((row.kind, row.loss) == (kind, loss) and row.queries is None for row in rows)
        spread = np.random.default_rng(0).uniform(-0.18, 0.18, len(reached))
        axes.scatter(reached, k + spread, s=18, color=colours[k], alpha=0.8, linewidths=0)
        if missed:
            axes.annotate(
                f"{missed} not reached", (1.0, k), xytext=(-4, 8), textcoords="offset points", ha="right", fontsize=8
            )
    axes.axvline(0.1, color="0.5", linestyle="--", linewidth=1)
    axes.set(xscale="log", xlim=(0.005, 1.0), xlabel="queries, as a fraction of ZO-AdaExpMD's 40,200")
    axes.set_yticks(range(len(CASES)), [f"{kind}, {loss}" for kind, loss in CASES])
    axes.invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=20, help="how many test images (default 20)")
    parser.add_argument("--quick", action="store_true", help="two images, nothing is written")
    options = parser.parse_args()
    model = zm.as_classifier(models.path("lenet"))
    rows = []
    for i, x0 in images(2 if options.quick else options.images):
        for kind, loss in CASES:
            rows.append(compare(model, x0, i, kind, loss))
        print(f"image {i}: " + ", ".join(f"{row.kind} {row.loss} {row.fraction:.3f}" for row in rows[-4:]), flush=True)
    table = summary(rows)
    show(table)
    if not options.quick:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        machine = {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
        plain = [{name: (None if value == np.inf else value) for name, value in row.items()} for row in table]
        document = {"summary": plain, "rows": [asdict(row) for row in rows], "machine": machine}
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")
        draw(rows, PICTURE)


if __name__ == "__main__":
    main()
