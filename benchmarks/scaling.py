"""Measure how queries grow with the dimension: entropy mirror descent against projected gradient descent.

f(x) = |x - x*|^2 / 2 with ten non-zero entries +-1 in x*, l1 = 0.02, x_1 = 0, m = 50 directions per batch. Counted are
the queries until 90 % of the gap F(x_1) - min F is closed (median of three seeds). "best eta" is the one of a geometric
grid that needs the fewest queries on the first seed; "not in n" means that none of them succeeded within n queries.

PSGD has two columns. The paper's radius nu = 1/sqrt(m d) adds nu |u|^2 / 2 ~ sqrt(d/m) / 2 to every difference, noise
that does not fade near the solution, so its best eta and its queries grow like d^2. With a radius so small that this
vanishes (possible if f has no noise) they grow like d.

    python benchmarks/scaling.py            d = 100 .. 100,000; writes results/scaling.json and the picture
    python benchmarks/scaling.py --quick    d = 100 and 1,000; prints the table only
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import zomirror as zm

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "scaling.json"
PICTURE = ROOT / "docs" / "images" / "scaling.png"
L1, BATCH, SPARSITY, CLOSED, SEEDS = 0.02, 50, 10, 0.9, (0, 1, 2)
QUICK, FULL = (100, 1_000), (100, 1_000, 10_000, 100_000)
CAP = {100: 20_000, 1_000: 50_000, 10_000: 100_000, 100_000: 20_000}
"""The cap on queries. Every batch costs O(m d), so the largest d has the smallest cap."""
SMALL_RADIUS = 1e-6


@dataclass(frozen=True)
class Sparse:
    """f(x) = |x - x*|^2 / 2, its minimum and its target."""

    solution: NDArray[np.float64]

    @classmethod
    def draw(cls, d: int, seed: int) -> Sparse:
        """A random problem in d dimensions."""
        rng = np.random.default_rng([d, seed])
        solution = np.zeros(d)
        solution[rng.choice(d, SPARSITY, replace=False)] = rng.choice([-1.0, 1.0], SPARSITY)
        return cls(solution)

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """(|x|^2 - 2 <x, x*> + |x*|^2) / 2, without a second array as large as X."""
        on = np.flatnonzero(self.solution)
        cross: NDArray[np.float64] = X[:, on] @ self.solution[on]
        squares: NDArray[np.float64] = np.einsum("ij,ij->i", X, X)
        return 0.5 * (squares - 2 * cross + self.solution @ self.solution)

    @property
    def target(self) -> float:
        """F when 90 % of the gap between x = 0 and the minimum (by soft thresholding) is closed."""
        best = np.sign(self.solution) * np.maximum(np.abs(self.solution) - L1, 0)
        start = float(self(np.zeros((1, best.size)))[0])
        least = float(self(best[None])[0]) + L1 * float(np.abs(best).sum())
        return start - CLOSED * (start - least)


@dataclass(frozen=True)
class Entry:
    """One cell of the table: queries per seed (None: not within the cap), their median, and the step used."""

    d: int
    method: str
    eta: float | None
    cap: int
    queries: list[int | None]

    @property
    def median(self) -> float | None:
        """The median over the seeds; None if the median run did not succeed."""
        counts = statistics.median(math.inf if q is None else q for q in self.queries)
        return counts if math.isfinite(counts) else None


def queries_needed(method: zm.methods.MirrorDescent, d: int, seed: int, cap: int) -> int | None:
    """The queries to close 90 % of the gap; None if `cap` do not suffice."""
    f = Sparse.draw(d, seed)
    start = float(f(np.zeros((1, d)))[0])

    def give_up(latest: zm.result.Intermediate) -> None:
        if latest.fun > 100 * start:
            raise StopIteration

    result = zm.minimize(f, np.zeros(d), l1=L1, budget=cap, method=method, rng=seed, target=f.target, callback=give_up)
    return result.nfev if result.status is zm.Status.TARGET else None


def adaptive(d: int, seeds: tuple[int, ...] = SEEDS, cap: int = 20_000) -> Entry:
    """ZO-AdaExpMD, which has no step size to tune."""
    return Entry(d, "AdaExpMD", None, cap, [queries_needed(zm.methods.zo_ada_expmd(BATCH), d, s, cap) for s in seeds])


def tuned(
    name: str,
    make: Callable[..., zm.methods.MirrorDescent],
    d: int,
    etas: list[float],
    cap: int,
    seeds: tuple[int, ...] = SEEDS,
) -> Entry:
    """The method at the eta that needs the fewest queries on the first seed."""
    best, least = None, cap
    for eta in etas:
        # No eta runs longer than the best one so far.
        found = queries_needed(make(eta, BATCH), d, seeds[0], least)
        if found is not None and (best is None or found < least):
            best, least = eta, found
    if best is None:
        return Entry(d, name, None, cap, [None])
    return Entry(d, name, best, cap, [queries_needed(make(best, BATCH), d, s, cap) for s in seeds])


def rows(d: int) -> list[Entry]:
    """The four cells of one dimension."""
    cap = CAP[d]
    # PSGD is stable for eta of the order of the estimator's variance, 1 + d/m; with the paper's radius, of up to its
    # square. If a run takes minutes, the grid is coarser.
    stable = 1 + d / BATCH
    coarse = 1 if d < 10_000 else 2 if d < 100_000 else 4
    small = [stable * 2.0 ** (k / 2) for k in range(-4, 4)]
    printed = [stable * 2.0 ** (k / 2) for k in range(-1, math.ceil(2 * math.log2(stable)) + coarse, coarse)]
    return [
        adaptive(d),
        tuned("ExpMD", zm.methods.zo_expmd, d, [2.0 ** (k / 2) for k in range(2, -6, -1)], cap),
        tuned("PSGD", zm.methods.zo_psgd, d, printed, cap),
        tuned("PSGD, small nu", partial(zm.methods.zo_psgd, radius=SMALL_RADIUS), d, small, cap),
    ]


def shown(entry: Entry) -> str:
    """`15,708 (eta 30)`, or `not in <cap>`."""
    count = f"not in {entry.cap:,}" if entry.median is None else f"{entry.median:,.0f}"
    return count if entry.eta is None or entry.median is None else f"{count} (eta {entry.eta:.3g})"


def show(d: int, entries: list[Entry]) -> None:
    print(f"{d:>9,}  " + "  ".join(f"{shown(entry):>22}" for entry in entries), flush=True)


def store(entries: list[Entry], path: Path) -> None:
    """Store the numbers of the table for later runs."""
    setting = {"l1": L1, "batch_size": BATCH, "sparsity": SPARSITY, "closed": CLOSED, "seeds": SEEDS}
    table = [asdict(entry) | {"median": entry.median} for entry in entries]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"setting": setting, "table": table}, indent=1) + "\n")


def draw(entries: list[Entry], path: Path) -> None:
    """Queries against d, both axes logarithmic; an arrow marks a method that did not succeed within its cap."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    # Okabe and Ito's colours, which the colour-blind can tell apart; markers and lines differ as well.
    styles = {
        "AdaExpMD": ("#0072B2", "o", "-", "AdaExpMD (nothing to tune)"),
        "ExpMD": ("#E69F00", "s", "--", "ExpMD (best eta)"),
        "PSGD": ("#D55E00", "^", "-.", "PSGD (best eta, the paper's radius)"),
        "PSGD, small nu": ("#CC79A7", "v", ":", "PSGD (best eta, radius 1e-6)"),
    }
    for name, (colour, marker, line, label) in styles.items():
        mine = [entry for entry in entries if entry.method == name]
        reached = [(entry.d, entry.median) for entry in mine if entry.median is not None]
        axes.plot(*zip(*reached, strict=True), color=colour, marker=marker, linestyle=line, label=label)
        for entry in mine:
            if entry.median is None:
                axes.plot(entry.d, entry.cap, color=colour, marker=marker, fillstyle="none")
                axes.annotate(
                    f"not in {entry.cap:,}",
                    (entry.d, entry.cap),
                    xytext=(0, 30 if name == "PSGD" else -34),
                    textcoords="offset points",
                    ha="right",
                    color=colour,
                    arrowprops={"arrowstyle": "<-", "color": colour},
                )
    axes.set(xscale="log", yscale="log", xlabel="dimension d", ylabel="queries to close 90 % of the gap")
    axes.set_title("Ten non-zero entries of d: queries grow with ln d, or with d")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="d = 100 and 1,000 only, writes nothing")
    quick = parser.parse_args().quick
    names = ("AdaExpMD", "ExpMD (best eta)", "PSGD (best eta)", "PSGD (best eta, nu = 1e-6)")
    print(f"{'d':>9}  " + "  ".join(f"{name:>22}" for name in names))
    entries: list[Entry] = []
    for d in QUICK if quick else FULL:
        found = rows(d)
        show(d, found)
        entries += found
    medians = {entry.d: entry.median for entry in entries if entry.method == "AdaExpMD"}
    last = max(d for d in medians if d <= 10_000)
    print(f"AdaExpMD needs {(medians[last] or math.inf) / (medians[100] or 1):.2f} times the queries "
          f"at {last / 100:g} times the dimension")  # fmt: skip
    if not quick:
        store(entries, RESULTS)
        draw(entries, PICTURE)
        print(f"written: {RESULTS.relative_to(ROOT)}, {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
