"""Run each peer through one function: minimise(name, fun, x0, lower, upper, budget, seed).

Runs in the environment of peer_env, so it may import numpy and the peers, and nothing of zomirror. As a program it
measures the time of a peer outside the function, on f(x) = |x - x*|^2 / 2 + l1 |x|_1 with ten entries in x*:

    python peer_run.py SBPLX --d 10000 --budget 2000 --seed 0
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Fun = Callable[[Any], float]
"""A function from one point to one number."""


class Spent(Exception):  # noqa: N818
    """The budget is used up."""


class Counted:
    """fun, counted and timed; records its best value and raises Spent instead of exceeding the budget."""

    def __init__(self, fun: Fun, budget: int) -> None:
        self.fun, self.budget = fun, budget
        self.calls = 0
        self.seconds = 0.0
        self.best = np.inf
        self.trace: list[tuple[int, float]] = []
        """(query, value) whenever the best value fell."""

    def __call__(self, x: Any) -> float:
        """fun(x)."""
        if self.calls == self.budget:
            raise Spent
        before = time.process_time()
        value = float(self.fun(x))
        self.seconds += time.process_time() - before
        self.calls += 1
        if value < self.best:
            self.best = value
            self.trace.append((self.calls, value))
        return value


def sbplx(fun: Counted, x0: Any, lower: Any, upper: Any, seed: int) -> None:
    """NLopt's SBPLX, compiled: Nelder and Mead's simplex on a few coordinates at a time."""
    import nlopt  # type: ignore[import-not-found, unused-ignore]

    nlopt.srand(seed)
    optimiser = nlopt.opt(nlopt.LN_SBPLX, len(x0))
    optimiser.set_lower_bounds(lower)
    optimiser.set_upper_bounds(upper)
    optimiser.set_maxeval(fun.budget)
    optimiser.set_min_objective(lambda x, _: fun(x))
    optimiser.optimize(x0)


def pycma(fun: Counted, x0: Any, lower: Any, upper: Any, seed: int) -> None:
    """pycma with a diagonal covariance: the full one has d^2 entries."""
    import cma  # type: ignore[import-not-found, unused-ignore]

    options = {"bounds": [lower, upper], "CMA_diagonal": True, "verbose": -9, "seed": seed + 1, "maxfevals": fun.budget}
    evolution = cma.CMAEvolutionStrategy(x0, 0.3, options)
    while fun.calls < fun.budget:
        points = evolution.ask()
        evolution.tell(points, [fun(x) for x in points])


def one_plus_one(fun: Counted, x0: Any, lower: Any, upper: Any, seed: int) -> None:
    """nevergrad's OnePlusOne."""
    import nevergrad  # type: ignore[import-not-found, unused-ignore]

    parameter = nevergrad.p.Array(init=x0, lower=lower, upper=upper)
    parameter.random_state.seed(seed)
    nevergrad.optimizers.OnePlusOne(parametrization=parameter, budget=fun.budget).minimize(fun)


PEERS: dict[str, Callable[[Counted, Any, Any, Any, int], None]] = {
    "SBPLX": sbplx,
    "pycma": pycma,
    "OnePlusOne": one_plus_one,
}


def minimise(name: str, fun: Fun, x0: Any, lower: Any, upper: Any, budget: int, seed: int = 0) -> Counted:
    """Spend the budget with a peer (bounds are arrays); the returned account has what was found."""
    counted = Counted(fun, budget)
    # Spent: the last generation may exceed the budget.
    with warnings.catch_warnings(), contextlib.suppress(Spent):
        warnings.simplefilter("ignore")
        PEERS[name](counted, np.array(x0, float), np.array(lower, float), np.array(upper, float), seed)
    return counted


def sparse(d: int, seed: int, l1: float = 0.02) -> Fun:
    """|x - x*|^2 / 2 + l1 |x|_1, ten entries of x* being 1 or -1."""
    rng = np.random.default_rng([d, seed])
    solution = np.zeros(d)
    solution[rng.choice(d, 10, replace=False)] = rng.choice([-1.0, 1.0], 10)

    def fun(x: Any) -> float:
        step = x - solution
        return 0.5 * float(step @ step) + l1 * float(np.abs(x).sum())

    return fun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--d", type=int, default=10_000)
    parser.add_argument("--budget", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    side = np.ones(given.d)
    fun = sparse(given.d, given.seed)
    minimise(given.peer, fun, 0 * side, -2 * side, 2 * side, 50, given.seed)  # imports and first calls
    before = time.process_time()
    done = minimise(given.peer, fun, 0 * side, -2 * side, 2 * side, given.budget, given.seed)
    own = time.process_time() - before - done.seconds
    print(json.dumps({"calls": done.calls, "microseconds": 1e6 * own / done.calls, "best": done.best}))


if __name__ == "__main__":
    main()
