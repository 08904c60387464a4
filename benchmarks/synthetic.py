"""Compare F after 20,000 queries on two problems at d = 100, 1,000 and 10,000, with and without noise.

The sparse quadratic and the nonconvex sigmoid loss of a sparse linear model (200 rows), both started at 0 without
bounds, F = f + l1 |x|_1, noise of 0 or 1e-3 on every value. zomirror is one call with nothing but the budget, and
ZO-AdaExpMD has m = 50; both are medians of eleven seeds. The others are in kit/synthetic_run.py: released packages in
an environment of their own (see kit/peer_env.py), and three methods written there, two of which have the best of
three step sizes in hindsight. Compared is F without the noise at the returned point. A peer has 30 seconds of
processor time per run, and its result at that time counts. COBYQA's model has d^2 numbers, so it is left out at d =
10,000.

    python benchmarks/synthetic.py             writes results/synthetic.json
    python benchmarks/synthetic.py --own       zomirror alone, with the stored figures of the peers
    python benchmarks/synthetic.py --quick     d = 100, fewer queries, no environment to install: prints only
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit import peer_env, synthetic_run
from benchmarks.kit.machine import RESULTS, machine, store
from benchmarks.kit.synthetic_run import METHODS, PROBLEMS, Synthetic, minimise

import zomirror as zm

Row = dict[str, Any]
BUDGET, SEEDS, SECONDS = 20_000, 11, 30.0
WRITTEN_HERE = ("finite-difference FISTA", "coordinate descent, prox", "ZO-PSGD")
CASES = [(name, d, noise) for d in (100, 1_000, 10_000) for name in PROBLEMS for noise in (0.0, 1e-3)]


def ours(problem: Synthetic, noise: float, budget: int, method: Any) -> Row:
    """The median final F of the runs, and the processor time outside the function."""
    finals, own, nonzero = [], [], []
    for seed in range(SEEDS):
        rng, inside = np.random.default_rng(seed), [0.0]

        def f(points: Any, rng: Any = rng, inside: list[float] = inside) -> Any:
            before = time.process_time()
            values = problem.f(points) + noise * rng.standard_normal(len(points))
            inside[0] += time.process_time() - before
            return values

        before = time.process_time()
        result = zm.minimize(f, np.zeros(problem.d), l1=problem.l1, budget=budget, rng=seed, method=method)
        own.append(1e6 * (time.process_time() - before - inside[0]) / result.nfev)
        finals.append(problem.total(np.asarray(result.x, np.float64)))
        nonzero.append(int(np.count_nonzero(result.x)))
    return {
        "final": statistics.median(finals),
        "finals": finals,
        "queries": budget,
        "nonzero": int(statistics.median(nonzero)),
        "microseconds_per_query": statistics.median(own),
    }


def peer(method: str, name: str, d: int, noise: float) -> Row:
    """One run in the environment of the peers."""
    given = ("--problem", name, "--d", str(d), "--noise", str(noise), "--seconds", str(SECONDS))
    if method == "scipy COBYQA" and d > 1_000:
        return {"missing": "its model does not fit into memory"}
    try:
        found: Row = peer_env.run(Path(synthetic_run.__file__), method, *given, timeout=20 * SECONDS)
    except subprocess.SubprocessError as error:
        return {"missing": f"{type(error).__name__}"}
    return found


def stored() -> dict[str, dict[str, Row]]:
    """Stored results, by case."""
    path = RESULTS / "synthetic.json"
    if not path.is_file():
        return {}
    return {case["case"]: case["ends"] for case in json.loads(path.read_text())["cases"]}


def show(case: str, least: float | None, ends: dict[str, Row]) -> None:
    known = "" if least is None else f"   (the minimum is {least:.5f})"
    print(f"{case}{known}")
    for name, row in sorted(ends.items(), key=lambda item: item[1].get("final") or np.inf):
        note = "" if row.get("stopped") != "time" else f"   after {row['queries']:,} queries: time limit reached"
        end = f"{row['final']:.5f}{note}" if row.get("final") else row.get("missing", "nothing finite")
        print(f"    {name:26} {end}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--own", action="store_true", help="zomirror alone, with the stored figures of the peers")
    parser.add_argument("--quick", action="store_true", help="d = 100 and fewer queries, writes nothing")
    given = parser.parse_args()
    state, before, cases = machine(), stored(), []
    for name, d, noise in [case for case in CASES if not given.quick or case[1] == 100]:
        problem, budget = PROBLEMS[name](d), 3_000 if given.quick else BUDGET
        case = f"{name}, d = {d:,}" + (f", noise {noise:g}" if noise else "")
        ends: dict[str, Row] = {
            "zomirror": ours(problem, noise, budget, None),
            "ZO-AdaExpMD (m = 50)": ours(problem, noise, budget, zm.methods.zo_ada_expmd(50)),
        }
        for method in WRITTEN_HERE if given.quick else METHODS:
            if given.quick:
                ends[method] = minimise(method, problem, noise, budget, SECONDS)
            elif method in (known := before.get(case, {})):
                ends[method] = known[method]
            elif not given.own:
                ends[method] = peer(method, name, d, noise)
        show(case, problem.least, ends)
        cases.append({"case": case, "least": problem.least, "ends": ends})
        if not given.quick:
            rest = [{"case": other, "least": None, "ends": rows} for other, rows in before.items()]
            done = {item["case"] for item in cases}
            store("synthetic", {"machine": state, "cases": cases + [r for r in rest if r["case"] not in done]})


if __name__ == "__main__":
    main()
