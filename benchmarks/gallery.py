"""All methods of zm.methods side by side, per query, on problems that their papers and ours use.

GraCe's functions (d = 1,000; ATTACK on a graph that is not included), explanations of a digit as in the paper, two
weighted Lassos of LassoBench, and a sparse quadric from a dense start, as in ZORO's examples (x* = 0: not the ground
of a method that looks for sparse x). A method with a constant step has the best of three step sizes in hindsight, and
one that takes a sparsity is told the true one; `recommended` is told nothing. Given is the least F of an iterate after
a fifth of the budget and at its end, relative to the start. One instance each, with a seed of its own.

    python benchmarks/gallery.py             writes results/gallery.json and docs/images/gallery.png
    python benchmarks/gallery.py --quick     a tenth of the budget, prints only
    --football football.gml                  ATTACK too; without it the stored figures stay
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit.lasso_bench import SETS, lasso_bench
from benchmarks.kit.machine import RESULTS, ROOT, machine, store
from benchmarks.kit.sparse_run import attack, distance, magnitude, quadric
from benchmarks.queries import LOSSES, problem

import zomirror as zm
from zomirror import datasets, models

SEED, ETAS = 50, (1.0, 10.0, 100.0)
PICTURE = ROOT / "docs" / "images" / "gallery.png"
NAMES = ["recommended", *sorted(name for name in zm.methods.__all__ if name.startswith("zo"))]


@dataclass(frozen=True)
class Problem:
    """f of rows, the start, what minimize() is told, and the true sparsity for those who ask."""

    name: str
    f: Callable[[Any], Any]
    x0: Any
    budget: int
    sparsity: int
    settings: dict[str, Any] = field(default_factory=dict)


def problems(football: Path | None) -> list[Problem]:
    """All of them."""
    box = {"bounds": (-3, 3)}
    found = [
        Problem("DISTANCE", *distance(1_000, SEED), 2_000, 10, box),
        Problem("MAGNITUDE", *magnitude(1_000, SEED), 2_000, 5, box),
        Problem("quadric, 20 of 1,000", *quadric(1_000, SEED, 20), 2_000, 20, {"bounds": (-10, 10)}),
    ]
    if football is not None:
        found.append(Problem("ATTACK", *attack(football, 0), 5_000, 30, box))
    model, test = zm.as_classifier(models.path("lenet")), datasets.mnist("test")
    x0 = (test.images[5_100].astype(np.float32) / np.float32(255)).ravel()
    for kind in ("PN", "PP"):
        f, start, bounds = problem(model, x0, kind, LOSSES["hinge"]())
        found.append(Problem(f"digit, {kind}", f, start, 2_000, 20, {"l1": 0.1, "l2": 0.1, "bounds": bounds}))
    for name in ("synt_medium", "synt_high"):
        d, _, support = SETS[name]
        found.append(Problem(name, lasso_bench(name), np.zeros(d), 500, support, {"bounds": (-1, 1)}))
    return found


def runs(name: str, one: Problem, budget: int) -> list[dict[str, Any]]:
    """One run, or one for each step size."""
    if name == "recommended":
        return [run(None, one, budget, None)]
    preset = getattr(zm.methods, name)
    takes = inspect.signature(preset).parameters
    how: dict[str, Any] = {"sparsity": one.sparsity} if "sparsity" in takes else {}
    if "batch_size" in takes and name not in ("zo_group_expmd",):
        how["batch_size"] = 50
    if "eta" not in takes:
        return [run(preset(**how), one, budget, None)]
    return [run(preset(eta=eta, **how), one, budget, eta) for eta in ETAS]


def run(method: Any, one: Problem, budget: int, eta: float | None) -> dict[str, Any]:
    """The least F of an iterate so far, relative to the start."""
    with np.errstate(all="ignore"):
        history = zm.minimize(one.f, one.x0, budget=budget, method=method, rng=SEED, **one.settings).history
    first = history.fun[0]

    def least(count: int) -> float:
        return float(history.best[np.searchsorted(history.nfev, count, side="right") - 1] / first)

    return {"eta": eta, "early": least(max(budget // 5, int(history.nfev[0]))), "end": least(budget)}


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """One panel for each problem: F at the end, one bar a method."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["problem"] for row in rows))
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    panels = figure.subplots(2, -(-len(names) // 2), squeeze=False).ravel()
    for k, (axes, problem_name) in enumerate(zip(panels, names, strict=False)):
        for j, name in enumerate(NAMES):
            row = next((row for row in rows if (row["problem"], row["method"]) == (problem_name, name)), None)
            if row is not None and row["end"] is not None and np.isfinite(row["end"]):
                axes.plot(max(row["end"], 1e-16), j, "o", color="#D55E00" if j == 0 else "#0072B2", markersize=5)
        axes.set_xscale("log")
        axes.set_title(problem_name, fontsize=9)
        axes.set_yticks(range(len(NAMES)), NAMES if k % (len(panels) // 2) == 0 else [], fontsize=7)
        axes.tick_params(axis="x", labelsize=7)
        axes.grid(axis="y", alpha=0.3)
        axes.invert_yaxis()
    for axes in panels[len(names) :]:
        axes.remove()
    figure.supxlabel("least F of an iterate at the end of the budget, relative to the start", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the budget, writes nothing")
    parser.add_argument("--football", type=Path, help="the graph of ATTACK, a GML file")
    given = parser.parse_args()
    stored = json.loads((RESULTS / "gallery.json").read_text())["rows"] if (RESULTS / "gallery.json").is_file() else []
    rows: list[dict[str, Any]] = []
    if given.football is None:
        rows += [row for row in stored if row["problem"] == "ATTACK"]
    for one in problems(given.football):
        budget = one.budget // 10 if given.quick else one.budget
        for name in NAMES:
            started = time.process_time()
            try:
                all_runs = runs(name, one, budget)
            except zm.errors.ArgumentError as refused:
                rows.append({"problem": one.name, "method": name, "refused": str(refused), "end": float("nan")})
                continue
            best = min(all_runs, key=lambda found: found["end"])
            seconds = (time.process_time() - started) / len(all_runs)
            row = {"problem": one.name, "queries": budget, "method": name} | best | {"seconds": seconds}
            rows.append(row)
            print(f"{one.name:22} {name:16} {row['early']:.3g} {row['end']:.3g} (eta {row['eta']})", flush=True)
        if not given.quick:  # after each problem, so that little is lost
            clean = [{key: None if value != value else value for key, value in row.items()} for row in rows]
            store("gallery", {"machine": machine(), "rows": clean})
            draw(rows, PICTURE)


if __name__ == "__main__":
    main()
