"""Sparse and dense functions without a known structure: how far one call of minimize gets, within how many queries.

GraCe's DISTANCE and MAGNITUDE (Qiu and Tong, ICML 2024), more and fewer coordinates that matter, noise, x0 on a bound,
composite quadratics, ZORO's sparse quadrics, and dense functions beside other optimisers. Ten instances each, with
seeds that were not used for tuning; zomirror has the budget and the bounds, and nothing else is set. Compared is f
without its noise at the returned point, relative to the start. The other optimisers run in an environment of their own
(see kit/peer_env.py), with 20 seconds of processor time each; what counts is the least f that they asked.

    python benchmarks/sparse.py             writes results/sparse.json and docs/images/sparse.png
    python benchmarks/sparse.py --own       zomirror alone, with the stored figures of the peers
    python benchmarks/sparse.py --quick     two instances, no peers: prints only
    --sections cases noise    only these; the others stay as stored
    --football football.gml                 GraCe's ATTACK too, on the graph of M. Girvan and M. Newman (2002), which
                                            is not included; without it the stored figures stay
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit import peer_env, sparse_run
from benchmarks.kit.machine import RESULTS, ROOT, machine, store
from benchmarks.kit.sparse_run import DENSE, PEERS, Instance, attack, dense, distance, magnitude, quadric, slopes
from benchmarks.kit.synthetic_run import PROBLEMS

import zomirror as zm
from zomirror.methods.survey import SEARCH

Row = dict[str, Any]
INSTANCES, SECONDS = 10, 20.0
INSIDE, ON_BOUND = (-3.0, 3.0), (0.0, 3.0)
SIGMOID = {1_000: 0.1323, 10_000: 0.1217}
"""The least F of the sigmoid that any run without noise has reached; its minimum is not known."""
PICTURE = ROOT / "docs" / "images" / "sparse.png"


@dataclass(frozen=True)
class Case:
    """One function with a budget; `limit` is the aim for the largest of the instances."""

    name: str
    make: Callable[[int], Instance]
    budget: int
    limit: float
    noise: float = 0.0
    bounds: Any = INSIDE
    few: bool = False
    """Three instances are enough."""


CASES = [
    Case("DISTANCE", partial(distance, 10_000), 300, 1e-4),
    Case("DISTANCE", partial(distance, 10_000), 1_000, 1e-6),
    Case("DISTANCE, x0 on a bound", partial(distance, 10_000), 300, 1e-4, bounds=ON_BOUND),
    Case("DISTANCE, x0 on a bound", partial(distance, 10_000), 1_000, 1e-6, bounds=ON_BOUND),
    Case("MAGNITUDE", partial(magnitude, 10_000), 400, 1e-3),
    Case("MAGNITUDE", partial(magnitude, 10_000), 1_600, 1e-5),
    Case("DISTANCE, noise 1e-6", partial(distance, 10_000), 600, 1e-3, 1e-6),
    Case("DISTANCE, noise 1e-4", partial(distance, 10_000), 600, 1e-3, 1e-4),
    Case("DISTANCE, noise 1e-3", partial(distance, 10_000), 1_000, 0.02, 1e-3),
    Case("DISTANCE, noise 1e-2", partial(distance, 10_000), 1_000, 0.1, 1e-2),
    Case("DISTANCE, noise 1e-4, x0 on a bound", partial(distance, 10_000), 600, 1e-3, 1e-4, ON_BOUND),
    Case("DISTANCE, noise 1e-3, x0 on a bound", partial(distance, 10_000), 1_000, 0.02, 1e-3, ON_BOUND),
    Case("DISTANCE, noise 1e-2, x0 on a bound", partial(distance, 10_000), 1_000, 0.1, 1e-2, ON_BOUND),
    Case("DISTANCE, 50 active", partial(distance, 10_000, active=50), 800, 0.01),
    Case("DISTANCE, 200 active", partial(distance, 10_000, active=200), 3_000, 0.01),
    Case("DISTANCE, d = 1,000,000", partial(distance, 1_000_000), 300, 0.01),
    Case("DISTANCE, d = 1,000,000, noise 1e-4", partial(distance, 1_000_000), 1_000, 0.01, 1e-4, few=True),
    Case("quadric, 20 of 1,000, x0 dense", partial(quadric, 1_000, active=20), 4_000, 1e-6, bounds=None),
    Case("quadric, 200 of 20,000, x0 dense", partial(quadric, 20_000, active=200), 20_000, 1e-6, bounds=None),
]
NOISES = [("additive", 1e-3), ("additive", 1e-2), ("multiplicative", 0.01), ("multiplicative", 0.1)]
GROWTH = (100, 10_000, 1_000_000)
COMPOSITE = [(d, noise) for d in (100, 1_000, 10_000) for noise in (0.0, 1e-3)]


def noisy(f: Callable[[Any], Any], noise: float, seed: int) -> Callable[[Any], Any]:
    rng = np.random.default_rng(seed)
    return lambda X: f(X) + noise * rng.standard_normal(len(X))


def solved(case: Case, instances: int) -> Row:
    """The final f of each instance, relative to its start."""
    ends, batches = [], []
    for seed in range(instances):
        f, x0 = case.make(seed)
        rows: list[int] = []

        told = noisy(f, case.noise, seed)

        def black_box(X: Any, told: Any = told, rows: list[int] = rows) -> Any:
            rows.append(len(X))
            return told(X)

        result = zm.minimize(black_box, x0, bounds=case.bounds, budget=case.budget, rng=seed)
        ends.append(float(f(np.stack([result.x]))[0] / f(np.stack([x0]))[0]))
        batches.append(statistics.median(rows))
    return {
        "case": case.name,
        "queries": case.budget,
        "limit": case.limit,
        "median": statistics.median(ends),
        "largest": max(ends),
        "ends": ends,
        "median_batch": statistics.median(batches),
    }


def until(d: int, instances: int) -> Row:
    """The queries until DISTANCE is at 0.01 of its start."""
    counts = []
    for seed in range(instances):
        f, x0 = distance(d, seed)
        start, seen = float(f(np.stack([x0]))[0]), [0, 0]

        def black_box(X: Any, f: Any = f, start: float = start, seen: list[int] = seen) -> Any:
            values = f(X)
            below = np.flatnonzero(values <= 0.01 * start)
            seen[1] = seen[1] or (seen[0] + int(below[0]) + 1 if below.size else 0)
            seen[0] += len(X)
            return values

        zm.minimize(black_box, x0, bounds=INSIDE, budget=600, rng=seed, target=0.01 * start)
        counts.append(seen[1] or 601)
    return {"d": d, "median": statistics.median(counts), "largest": max(counts), "queries": counts}


def looked(d: int, kind: str, instances: int) -> Row:
    """The queries of the searches in the first 60 batches, where every slope is large, or (power) few are larger."""
    counts = []
    for seed in range(instances):
        f, x0 = slopes(d, seed, kind)
        optimizer, rows = zm.Optimizer(x0, bounds=INSIDE, rng=seed), 0
        for _ in range(60):
            query = optimizer.query
            rows += len(query) if optimizer.state.memory.current.state.memory.stage == SEARCH else 0
            optimizer.tell(f(optimizer.ask()))
        counts.append(rows)
    return {"slopes": kind, "d": d, "median": statistics.median(counts), "largest": max(counts)}


def composed(d: int, noise: float, instances: int) -> Row:
    """F above the minimum of the composite quadratic."""
    problem, budget = PROBLEMS["quadratic"](d), 1_500 if noise else 500
    above = []
    for seed in range(instances):
        result = zm.minimize(noisy(problem.f, noise, seed), np.zeros(d), l1=problem.l1, budget=budget, rng=seed)
        above.append(problem.total(np.asarray(result.x)) - (problem.least or 0.0))
    return {"d": d, "noise": noise, "queries": budget, "limit": 1e-3 if noise else 1e-6, "largest": max(above)}


def noised(name: str, d: int, kind: str, size: float) -> Row:
    """The part of the way from the start to the noiseless minimum that is left after 20,000 queries, of three seeds."""
    problem, left = PROBLEMS[name](d), []
    least = SIGMOID[d] if problem.least is None else problem.least
    for seed in range(3):
        rng = np.random.default_rng(seed)

        def f(points: Any, rng: Any = rng) -> Any:
            values, z = problem.f(points), rng.standard_normal(len(points))
            return values + size * z if kind == "additive" else values * (1 + size * z)

        result = zm.minimize(f, np.zeros(d), l1=problem.l1, budget=20_000, rng=seed)
        start = problem.total(np.zeros(d))
        left.append((problem.total(np.asarray(result.x)) - least) / (start - least))
    return {"function": name, "d": d, "noise": kind, "size": size, "left": left, "largest": max(left)}


def compared(name: str, d: int, instances: int, known: dict[str, Any] | None, *, own: bool) -> Row:
    """The least f on a dense function, and that of the peers on the first instance."""
    budget, ends, started = 100 * d, [], time.process_time()
    for seed in range(instances):
        f, x0 = dense(name, d, seed)
        result = zm.minimize(f, x0, budget=budget, rng=seed)
        ends.append(float(f(np.stack([result.x]))[0]))
    row: Row = {
        "function": name,
        "d": d,
        "queries": budget,
        "median": statistics.median(ends),
        "ends": ends,
        "seconds": (time.process_time() - started) / instances,
        "peers": {} if known is None else known,
    }
    for peer in PEERS:
        if own or peer in row["peers"] or (peer == "COBYQA" and d > 100):
            continue
        given = ("--function", name, "--d", str(d), "--seed", "0", "--budget", str(budget), "--seconds", str(SECONDS))
        try:
            found = peer_env.run(Path(sparse_run.__file__), peer, *given, environment="strategies", timeout=900)
        except subprocess.SubprocessError as error:
            found = {"missing": type(error).__name__}
        row["peers"][peer] = found
    return row


def draw(document: dict[str, Any], path: Path) -> None:
    """Left, f of each instance; right, the dense functions beside the peers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    told = document["cases"]
    for k, row in enumerate(told):
        ends = np.maximum(row.get("ends", [row["median"], row["largest"]]), 1e-18)
        left.scatter(ends, np.full(len(ends), k), s=14, color="#0072B2", alpha=0.7, linewidths=0)
        left.plot([row["limit"]] * 2, [k - 0.35, k + 0.35], color="#D55E00", linewidth=2)
    left.set_yticks(range(len(told)), [f"{row['case']}: {row['queries']:,} queries" for row in told], fontsize=7)
    left.set(xscale="log", xlabel="f at the end, relative to the start (the bar is the aim)")
    left.invert_yaxis()
    rows = document.get("dense", [])
    for k, row in enumerate(rows):
        ends = np.maximum(row.get("ends", [row["median"]]), 1e-18)
        right.scatter(ends, [k] * len(ends), s=14, color="#0072B2", linewidths=0)
    for peer, marker in zip(PEERS, "sv^Px", strict=True):
        met = [(row["peers"][peer]["least"], k) for k, row in enumerate(rows) if "least" in row["peers"].get(peer, {})]
        if met:
            least, places = zip(*met, strict=True)
            right.plot(np.maximum(least, 1e-18), places, marker, label=peer, markersize=5, alpha=0.7)
    right.legend(fontsize=7, loc="center left")
    right.set_yticks(range(len(rows)), [f"{row['function']}, d = {row['d']:,}" for row in rows], fontsize=7)
    right.set(xscale="log", xlabel="f after 100 d queries (filled circles: zomirror)")
    right.invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def cases(given: argparse.Namespace, before: dict[str, Any]) -> Iterator[Row]:
    """How far one call gets; without the graph of ATTACK, its stored row stays."""
    chosen = CASES + ([Case("ATTACK", partial(attack, given.football), 20_000, 0.26)] if given.football else [])
    for case in chosen:
        yield (row := solved(case, min(given.instances, 3) if case.few else given.instances))
        print(
            f"{row['case']:38} {row['queries']:>6,} queries: median {row['median']:.1e}, largest {row['largest']:.1e}"
            f" (aim {row['limit']:g}), batches of {row['median_batch']:g}",
            flush=True,
        )
    if not given.football:
        yield from (row for row in before.get("cases", []) if row["case"] == "ATTACK")


def growth(given: argparse.Namespace, _: dict[str, Any]) -> Iterator[Row]:
    """How the queries grow with d."""
    for d in GROWTH:
        yield (row := until(d, given.instances))
        print(f"DISTANCE to 0.01, d = {d:,}: median {row['median']:g} queries, largest {row['largest']:,}", flush=True)


def look(given: argparse.Namespace, _: dict[str, Any]) -> Iterator[Row]:
    """What the search costs where it has nothing to find."""
    for d in (784, 10_000):
        for kind in ("equal", "normal", "power"):
            yield (row := looked(d, kind, given.instances))
            print(f"searches with {kind} slopes, d = {d:,}: at most {row['largest']} queries", flush=True)


def composite(given: argparse.Namespace, _: dict[str, Any]) -> Iterator[Row]:
    """Quadratics with l1."""
    for d, noise in COMPOSITE:
        yield (row := composed(d, noise, given.instances))
        print(f"composite, d = {d:,}, noise {noise:g}: {row['largest']:.1e} above (aim {row['limit']:g})", flush=True)


def noise(given: argparse.Namespace, _: dict[str, Any]) -> Iterator[Row]:
    """Strong noise, additive and multiplicative."""
    for name, d in [(name, d) for name in PROBLEMS for d in ((1_000,) if given.quick else (1_000, 10_000))]:
        for kind, size in NOISES:
            yield (row := noised(name, d, kind, size))
            print(f"{name}, d = {d:,}, {kind} noise {size:g}: {row['largest']:.2g} of the way left", flush=True)


def dense_functions(given: argparse.Namespace, before: dict[str, Any]) -> Iterator[Row]:
    """Functions of every coordinate, beside the peers."""
    known = {(row["function"], row["d"]): row["peers"] for row in before.get("dense", [])}
    for d in (100,) if given.quick else (100, 1_000):
        for name in DENSE:
            few = given.instances if d == 100 else min(given.instances, 3)
            yield (row := compared(name, d, few, known.get((name, d)), own=given.own or given.quick))
            peers = ", ".join(f"{p} {v.get('least', np.nan):.3g}" for p, v in row["peers"].items())
            print(f"{name}, d = {d:,}, {row['queries']:,} queries: {row['median']:.3g}; {peers}", flush=True)


SECTIONS: dict[str, Callable[[argparse.Namespace, dict[str, Any]], Iterator[Row]]] = {
    "cases": cases,
    "growth": growth,
    "look": look,
    "composite": composite,
    "noise": noise,
    "dense": dense_functions,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--own", action="store_true", help="zomirror alone, with the stored figures of the peers")
    parser.add_argument("--quick", action="store_true", help="two instances, writes nothing")
    parser.add_argument("--football", type=Path, help="the graph of ATTACK, a GML file")
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), default=list(SECTIONS), help="only these")
    parser.add_argument("--draw", action="store_true", help="run nothing: draw the stored figures")
    given = parser.parse_args()
    given.instances = 2 if given.quick else INSTANCES
    path = RESULTS / "sparse.json"
    document: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    for name in [] if given.draw else given.sections:
        rows = list(SECTIONS[name](given, document))
        document |= {name: rows, "machine": machine()}
        if not given.quick:
            store("sparse", document)  # after each section, so that little is lost
    if not given.quick:
        draw(document, PICTURE)


if __name__ == "__main__":
    main()
