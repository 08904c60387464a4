"""Solve a sparse problem in 10,000 dimensions with three methods, and explain ten digits.

    make demo            or: python examples/demo.py [--out DIRECTORY]

Only the package is needed: the network and the digits are bundled.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import zomirror as zm
from zomirror import datasets, models, report
from zomirror.drawing.plot import plot_grid

D, L1, BUDGET = 10_000, 0.02, 10_000
DIGITS = range(0, 20, 2)


def sparse_problem(console: Console, out: Path) -> Path:
    """f(x) = |x - x*|^2 / 2 with ten non-zero entries in x*: F of each method after the same number of queries."""
    rng = np.random.default_rng(0)
    x_star = np.zeros(D)
    x_star[rng.choice(D, 10, replace=False)] = rng.choice([-1.0, 1.0], 10)

    def f(X: np.ndarray) -> np.ndarray:
        on = np.flatnonzero(x_star)
        squares = np.einsum("ij,ij->i", X, X) - 2 * (X[:, on] @ x_star[on]) + x_star @ x_star
        return 0.5 * squares

    methods = {
        "ZO-PSGD": zm.methods.zo_psgd(eta=3_000.0, batch_size=50),
        "ZO-AdaExpMD": zm.methods.zo_ada_expmd(batch_size=50),
        "recommended": None,
    }
    least = float(0.5 * 10 * L1**2 + L1 * 10 * (1 - L1))
    table = Table(title=f"Ten non-zero entries of {D:,}, {BUDGET:,} queries; the minimum is {least:.4f}")
    for name in ("method", "objective", "non-zero", "queries", "seconds"):
        table.add_column(name, justify="left" if name == "method" else "right")
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for (name, method), colour in zip(methods.items(), ("#999999", "#0072B2", "#D55E00"), strict=True):
        started = time.perf_counter()
        result = zm.minimize(f, np.zeros(D), l1=L1, bounds=(-2, 2), budget=BUDGET, method=method, rng=0)
        seconds = time.perf_counter() - started
        nonzero = int(np.count_nonzero(result.x))
        table.add_row(name, f"{result.fun:.4f}", f"{nonzero:,}", f"{result.nfev:,}", f"{seconds:.1f}")
        axes.plot(result.history.nfev, result.history.best, label=name, color=colour)
    axes.axhline(least, color="0.6", linestyle=":", label="minimum")
    axes.set(xlabel="queries", ylabel="least objective F so far", yscale="log", title=f"d = {D:,}")
    axes.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    axes.set_yticks([], minor=True)
    axes.legend(frameon=False)
    console.print(table)
    picture = out / "sparse.png"
    figure.savefig(picture, dpi=150)
    return picture


def explained_digits(console: Console, out: Path) -> tuple[Path, Path]:
    """Ten digits: the part that alone keeps the class (PP), and what must be absent (PN)."""
    digits = datasets.digits()
    inputs = [(digits.images[i].astype(np.float32) / np.float32(255))[None] for i in DIGITS]
    table = Table(title="Ten digits, explained from the network's outputs")
    for name in ("digit", "kind", "becomes", "valid", "pixels", "l1", "l2", "queries"):
        table.add_column(name, justify="left" if name == "kind" else "right")
    took = []
    found: list[zm.Explanation] = []
    for kind in ("PP", "PN"):
        started = time.perf_counter()
        explanations = zm.explain_many(models.path("lenet"), inputs, kind=kind, rng=0, progress=None)
        took.append(f"{time.perf_counter() - started:.1f} s for the {kind}s")
        for e in explanations:
            numbers = (f"{e.l1_norm:.2f}", f"{e.l2_norm:.2f}", f"{e.nfev:,}")
            becomes = e.name_of(e.contrast_label) if kind == "PN" else "stays"
            table.add_row(e.name_of(e.label), kind, becomes, "yes" if e.valid else "no", str(e.nnz), *numbers)
        found += explanations
    table.caption = f"all ten together: {', '.join(took)}"
    console.print(table)
    picture, page = out / "digits.png", out / "digits.html"
    plot_grid(found, title="What keeps the class (PP), what must be absent (PN)").savefig(picture, dpi=130)
    report.write(page, found, title="Ten digits, explained")
    return picture, page


def main() -> None:
    parser = argparse.ArgumentParser(description="A sparse problem in 10,000 dimensions, and ten digits explained.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where to write (default: out)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    console = Console()
    pictures = [sparse_problem(console, options.out), *explained_digits(console, options.out)]
    console.print("\nWritten:")
    for path in pictures:
        console.print(f"  {path}", highlight=False)


if __name__ == "__main__":
    main()
