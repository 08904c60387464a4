"""The functions of benchmarks/sparse.py, and peers on the dense ones. Needs numpy and scipy; runs in any environment.

python sparse_run.py PEER --function NAME --d D --seed N --budget N     prints the least f that was asked, as JSON
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Instance(NamedTuple):
    """f of rows, and the start."""

    f: Callable[[Any], Any]
    x0: Any


def distance(d: int, seed: int, active: int = 10) -> Instance:
    """sum c_i (x_i - v_i)^2, c uniform in (0, 1), `active` entries of v uniform in (0, 1) and the others 0; from 0."""
    rng = np.random.default_rng([1, d, active, seed])
    c, v = rng.uniform(0, 1, d), np.zeros(d)
    v[rng.choice(d, active, replace=False)] = rng.uniform(0, 1, active)
    return Instance(lambda X: np.array([np.square(x - v) @ c for x in X]), np.zeros(d))


def magnitude(d: int, seed: int) -> Instance:
    """5 - sum tanh(five largest squares) + 0.1 sum tanh(the other squares); from five entries of +-0.2."""
    rng = np.random.default_rng([2, d, seed])
    x0 = np.zeros(d)
    x0[rng.choice(d, 5, replace=False)] = 0.2 * rng.choice([-1, 1], 5)

    def f(points: Any) -> Any:
        squares = np.partition(np.square(points), -5, axis=1)
        return 5 - np.tanh(squares[:, -5:]).sum(axis=1) + 0.1 * np.tanh(squares[:, :-5]).sum(axis=1)

    return Instance(f, x0)


def attack(graph: Path, seed: int) -> Instance:  # noqa: ARG001 (all instances are one)
    """GraCe's ATTACK: how well two vertices of a graph are connected within four hops, and 100 times the mean square.

    |x_ij| is the part by which edge ij is removed, or added where there is none. The seed is not used.
    """
    ends = np.array(re.findall(r"source\s+(\d+)\s+target\s+(\d+)", graph.read_text()), int)
    n = int(ends.max()) + 1
    edges = np.zeros((n, n))
    edges[ends[:, 0], ends[:, 1]] = edges[ends[:, 1], ends[:, 0]] = 1.0

    def value(x: Any) -> float:
        change = np.abs(x).reshape(n, n)
        weights = np.maximum(edges * (1 - change) + (1 - edges) * change, 0)
        roots = np.maximum(np.sqrt(weights.sum(axis=1)), 1e-8)
        hops = weights / np.outer(roots, roots)
        reached = total = hops[0]
        for _ in range(3):
            reached = hops @ reached
            total = total + reached
        return float(total[1] + 100 * np.square(change).mean())

    return Instance(lambda points: np.array([value(x) for x in points]), np.zeros(n * n))


def quadric(d: int, seed: int, active: int) -> Instance:
    """The sum of `active` squares; from a dense standard normal start, as in ZORO's examples."""
    rng = np.random.default_rng([3, d, active, seed])
    on = rng.choice(d, active, replace=False)
    return Instance(lambda X: np.square(X[:, on]).sum(axis=1), rng.standard_normal(d))


def slopes(d: int, seed: int, kind: str) -> Instance:
    """A linear function plus |x|^2 whose slopes are all equal, standard normal, or the powers 1/i."""
    rng = np.random.default_rng([4, d, seed])
    g = {"equal": np.ones(d), "normal": rng.standard_normal(d), "power": 1 / np.arange(1, d + 1)}[kind]
    return Instance(lambda X: X @ g + np.square(X).sum(axis=1), np.zeros(d))


def dense(name: str, d: int, seed: int) -> Instance:
    """Functions of every coordinate; their least value is 0."""
    rng = np.random.default_rng([5, d, seed])
    A, x0 = rng.standard_normal((d, d)), rng.standard_normal(d)
    if name == "dense quadratic":
        H, centre = A @ A.T / d + 0.1 * np.eye(d), rng.standard_normal(d)
        return Instance(lambda X: 0.5 * (((X - centre) @ H) * (X - centre)).sum(axis=1), x0)
    weights = 10 ** (6 * np.arange(d) / (d - 1))
    if name == "ellipsoid":
        return Instance(lambda X: np.square(X) @ weights, x0)
    if name == "rotated ellipsoid":
        Q, _ = np.linalg.qr(A)
        return Instance(lambda X: np.square(X @ Q.T) @ weights, x0)
    if name == "Rosenbrock":
        return Instance(
            lambda X: (100 * np.square(X[:, 1:] - np.square(X[:, :-1])) + np.square(1 - X[:, :-1])).sum(axis=1),
            np.zeros(d),
        )
    return Instance(lambda X: 10 * d + (np.square(X) - 10 * np.cos(2 * np.pi * X)).sum(axis=1), x0)


DENSE = ("dense quadratic", "ellipsoid", "rotated ellipsoid", "Rosenbrock", "Rastrigin")


class Stop(Exception):  # noqa: N818 (not an error)
    """The budget or the time is used up."""


class Counted:
    """f of one point: counts, keeps the least value, and stops at the budget or the time limit."""

    def __init__(self, instance: Instance, budget: int, seconds: float) -> None:
        self.f, self.budget, self.end = instance.f, budget, time.process_time() + seconds
        self.count, self.least = 0, np.inf

    def __call__(self, x: Any, *_: Any) -> float:
        """f(x)."""
        if self.count >= self.budget or time.process_time() > self.end:
            raise Stop
        self.count += 1
        value = float(self.f(np.asarray(x, np.float64)[None])[0])
        self.least = min(self.least, value)
        return value


def lbfgsb(f: Counted, x0: Any, _: int) -> None:
    """SciPy's L-BFGS-B with finite differences."""
    from scipy.optimize import minimize

    minimize(f, x0, method="L-BFGS-B", options={"maxfun": 10**9, "maxiter": 10**9, "ftol": 1e-15, "gtol": 1e-12})


def cobyqa(f: Counted, x0: Any, _: int) -> None:
    """SciPy's COBYQA."""
    from scipy.optimize import minimize

    minimize(f, x0, method="COBYQA", options={"maxfev": 10**9, "maxiter": 10**9})


def pycma(f: Counted, x0: Any, seed: int) -> None:
    """pycma as released; with a diagonal covariance from 1,000 coordinates on."""
    import cma  # type: ignore[import-not-found, unused-ignore]

    options = {"seed": seed + 1, "verbose": -9, "maxfevals": 10**9, "CMA_diagonal": x0.size >= 1_000}
    cma.fmin(f, x0, 0.3, options)


def pypop(name: str) -> Callable[[Counted, Any, int], None]:
    """An evolution strategy of pypop7."""

    def search(f: Counted, x0: Any, seed: int) -> None:
        from importlib import import_module

        module = import_module(f"pypop7.optimizers.es.{name.lower()}")
        problem = {
            "fitness_function": f,
            "ndim_problem": x0.size,
            "lower_boundary": np.full(x0.size, -5.0),
            "upper_boundary": np.full(x0.size, 5.0),
        }
        options = {"max_function_evaluations": 10**9, "mean": x0, "sigma": 0.3, "seed_rng": seed, "verbose": 0}
        getattr(module, name)(problem, options).optimize()

    return search


PEERS: dict[str, Callable[[Counted, Any, int], None]] = {
    "L-BFGS-B": lbfgsb,
    "COBYQA": cobyqa,
    "pycma": pycma,
    "LM-CMA": pypop("LMCMA"),
    "SEP-CMA-ES": pypop("SEPCMAES"),
}


def peer(name: str, instance: Instance, budget: int, seed: int, seconds: float) -> dict[str, Any]:
    """The least f that the peer has asked; it is called again from a new start if it ends early."""
    f, x0, rng = Counted(instance, budget, seconds), instance.x0, np.random.default_rng(seed)
    try:
        while f.count < budget:
            PEERS[name](f, x0, seed)
            x0 = rng.standard_normal(x0.size)
    except Stop:
        pass
    return {"least": f.least, "queries": f.count}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=list(PEERS))
    parser.add_argument("--function", choices=DENSE)
    parser.add_argument("--d", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--seconds", type=float)
    given = parser.parse_args()
    found = peer(given.peer, dense(given.function, given.d, given.seed), given.budget, given.seed, given.seconds)
    print(json.dumps(found))
