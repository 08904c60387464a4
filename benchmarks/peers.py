"""Measure the processor time of an optimiser itself per query, at d = 10,000.

zo_ada_expmd (m = 200) in float32 and float64, a direct numpy implementation of the same method, and three peers:
NLopt's SBPLX (compiled, moves a few coordinates at a time), pycma with a diagonal covariance and nevergrad's
OnePlusOne. All minimise |x - x*|^2 / 2 + l1 |x|_1 with ten non-zero entries in x*; the time inside the function is
not counted. The peers run in an environment of their own (see kit/peer_env.py). How much a query achieves is not
measured here.

    python benchmarks/peers.py             writes results/peers.json
    python benchmarks/peers.py --quick     fewer queries, prints only
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit import peer_env
from benchmarks.kit.machine import machine, store
from numpy.typing import NDArray
from scipy.special import wrightomega

import zomirror as zm

Array = NDArray[Any]
D, BATCH, L1, L2 = 10_000, 200, 0.02, 0.01
PEERS = ("SBPLX", "pycma", "OnePlusOne")


class Sparse:
    """|x - x*|^2 / 2 for every row, timed: (|x|^2 - 2 <x, x*> + |x*|^2) / 2."""

    def __init__(self, dtype: Any) -> None:
        rng = np.random.default_rng([D, 0])
        self.on = rng.choice(D, 10, replace=False)
        self.entries = rng.choice([-1.0, 1.0], 10).astype(dtype)
        self.seconds, self.rows = 0.0, 0

    def __call__(self, points: Array) -> Array:
        """One number per row."""
        before = time.process_time()
        squares: Array = np.einsum("ij,ij->i", points, points)
        values: Array = 0.5 * (squares - 2 * points[:, self.on] @ self.entries + 10)
        self.seconds += time.process_time() - before
        self.rows += len(points)
        return values


def ours(fun: Sparse, x0: Array, iterations: int) -> None:
    """The library."""
    method = zm.methods.zo_ada_expmd(BATCH)
    budget = iterations * (BATCH + 1) + 1
    zm.minimize(fun, x0, l1=L1, l2=L2, bounds=(-2, 2), budget=budget, method=method, rng=0)


def plain(fun: Sparse, x0: Array, iterations: int) -> None:
    """The same method written directly from its equations: whole arrays, not optimised."""
    rng = np.random.default_rng(0)
    x, alpha, d = x0, 1.0, x0.size
    nu = np.sqrt(2 * math.e * (2 * np.log(d) - 1) / BATCH) / d
    for _ in range(iterations):
        U = 2.0 * rng.integers(0, 2, size=(BATCH, d)) - 1
        values = fun(np.vstack([x, x + nu * U]))
        g = U.T @ (values[1:] - values[0]) / (BATCH * nu)
        z = np.sign(x) * np.log1p(d * np.abs(x)) - g / alpha
        s, b = np.maximum(np.abs(z) - L1 / alpha, 0), L2 / alpha
        v = wrightomega(s + b / d + np.log(b / d)).real / b - 1 / d
        x_next = np.clip(np.sign(z) * np.where(s > 0, v, 0), -2, 2)
        step = np.abs(x_next - x).sum() / (max(np.abs(x).sum(), np.abs(x_next).sum()) + 1)
        x, alpha = x_next, alpha * np.hypot(1, 2 * step)


def own(run: Callable[[Sparse, Array, int], None], dtype: Any, iterations: int, repeats: int) -> float:
    """Microseconds per query outside the function, the median of several runs."""
    taken = []
    run(Sparse(dtype), np.zeros(D, dtype), 2)
    for _ in range(repeats):
        fun = Sparse(dtype)
        before = time.process_time()
        run(fun, np.zeros(D, dtype), iterations)
        taken.append(1e6 * (time.process_time() - before - fun.seconds) / fun.rows)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer queries, writes nothing")
    quick = parser.parse_args().quick
    iterations, repeats = (10, 3) if quick else (50, 5)
    queries = iterations * (BATCH + 1) + 1
    state, cost = machine(), {}
    cost["zo_ada_expmd, float32"] = own(ours, np.float32, iterations, repeats)
    cost["zo_ada_expmd, float64"] = own(ours, np.float64, iterations, repeats)
    cost["plain numpy, float64"] = own(plain, np.float64, iterations, repeats)
    script = Path(peer_env.__file__).with_name("peer_run.py")
    for peer in PEERS:
        # Slow optimisers need fewer queries for a stable mean.
        budget = queries if peer == "SBPLX" else queries // 5
        runs = [
            peer_env.run(script, peer, "--d", str(D), "--budget", str(budget), "--seed", str(seed))
            for seed in range(1 if quick else 3)
        ]
        cost[peer] = statistics.median(run["microseconds"] for run in runs)
    for name, microseconds in cost.items():
        print(f"{name:22} {microseconds:8.1f} us per query")
    ratios = {
        f"{dtype} of {peer}": cost[f"zo_ada_expmd, {dtype}"] / cost[peer]
        for dtype in ("float32", "float64")
        for peer in ("plain numpy, float64", *PEERS)
    }
    for name, ratio in ratios.items():
        print(f"zo_ada_expmd in {name}: {ratio:.3f}")
    if not quick:
        store("peers", {"machine": state, "d": D, "queries": queries, "microseconds_per_query": cost, "ratios": ratios})


if __name__ == "__main__":
    main()
