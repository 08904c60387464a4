"""Run two synthetic problems with every peer of zomirror, as one program.

Runs in the environment of peer_env, so it may import numpy and the peers, and nothing of zomirror. A peer gets
F = f + l1 |x|_1 one point at a time, and its result is the best point it queried; the three methods written here know
the penalty and use its prox. Prints {"final": F without the noise, "queries": ..., "stopped": ...} or {"missing": ...}.

    python synthetic_run.py SBPLX --problem sigmoid --d 1000 --noise 1e-3
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Synthetic:
    """f without noise, for rows of points; the start is 0, without bounds."""

    name: str
    d: int
    l1: float
    f: Callable[[Array], Array]
    least: float | None
    """The minimum of F, if it is known."""

    def total(self, x: Array) -> float:
        """F without noise."""
        return float(self.f(x[None])[0]) + self.l1 * float(np.abs(x).sum())


def quadratic(d: int) -> Synthetic:
    """|x - x*|^2 / 2, ten entries of x* between 0.5 and 2 in size; l1 = 0.02."""
    rng, l1 = np.random.default_rng(100), 0.02
    solution = np.zeros(d)
    on = rng.choice(d, 10, replace=False)
    solution[on] = rng.choice([-1, 1], 10) * rng.uniform(0.5, 2, 10)
    least = float(np.sum(l1**2 / 2 + l1 * (np.abs(solution[on]) - l1)))

    def f(points: Array) -> Array:
        return np.asarray(0.5 * np.square(points - solution).sum(axis=1))

    return Synthetic("quadratic", d, l1, f, least)


def sigmoid(d: int) -> Synthetic:
    """The mean of 1 / (1 + exp(b <a, x>)) over 200 rows of a sparse linear model; nonconvex; l1 = 0.005."""
    rng = np.random.default_rng(200)
    model = np.zeros(d)
    model[rng.choice(d, 10, replace=False)] = 2.0 * rng.choice([-1, 1], 10)
    rows = rng.standard_normal((200, d))
    labels = np.sign(rows @ model + 0.1 * rng.standard_normal(200))
    rows = np.asfortranarray(rows * labels[:, None])

    def f(points: Array) -> Array:
        # While few entries are non-zero, few columns suffice; that is most of the time of a coordinate method.
        on = np.flatnonzero(points.any(axis=0))
        inner = points[:, on] @ rows[:, on].T if 8 * on.size < d else points @ rows.T
        return np.asarray((1 / (1 + np.exp(np.clip(inner, -500, 500)))).mean(axis=1))

    return Synthetic("sigmoid", d, 0.005, f, None)


PROBLEMS = {"quadratic": quadratic, "sigmoid": sigmoid}


class Spent(Exception):  # noqa: N818
    """The budget or the time is used up."""


class Asked:
    """f with its noise, counted; records the best point."""

    def __init__(self, problem: Synthetic, noise: float, budget: int, seconds: float) -> None:
        self.problem, self.noise, self.budget = problem, noise, budget
        self.deadline = time.process_time() + seconds
        self.rng = np.random.default_rng(5)
        self.queries, self.stopped = 0, "ended by itself"
        self.best, self.x = np.inf, np.zeros(problem.d)

    def values(self, points: Array) -> Array:
        """f of each row."""
        if self.queries + len(points) > self.budget or time.process_time() > self.deadline:
            self.stopped = "budget" if time.process_time() <= self.deadline else "time"
            raise Spent
        self.queries += len(points)
        return self.problem.f(points) + self.noise * self.rng.standard_normal(len(points))

    def __call__(self, x: Any) -> float:
        """F of one point, recorded if it is the best."""
        x = np.asarray(x, float).ravel()
        total = float(self.values(x[None])[0]) + self.problem.l1 * float(np.abs(x).sum())
        if total < self.best:
            self.best, self.x = total, x.copy()
        return total


def soft(z: Any, t: float) -> Any:
    """The prox of t |.|_1."""
    return np.sign(z) * np.maximum(np.abs(z) - t, 0)


def sbplx(asked: Asked) -> None:
    """NLopt's SBPLX."""
    import nlopt  # type: ignore[import-not-found, unused-ignore]

    optimiser = nlopt.opt(nlopt.LN_SBPLX, asked.problem.d)
    optimiser.set_maxeval(asked.budget)
    optimiser.set_min_objective(lambda x, _: asked(x))
    optimiser.set_initial_step(0.5)
    optimiser.optimize(np.zeros(asked.problem.d))


def pycma(asked: Asked) -> None:
    """pycma with a diagonal covariance."""
    import cma  # type: ignore[import-not-found, unused-ignore]

    options = {"CMA_diagonal": True, "verbose": -9, "seed": 1, "maxfevals": asked.budget}
    evolution = cma.CMAEvolutionStrategy(np.zeros(asked.problem.d), 0.3, options)
    while True:
        points = evolution.ask()
        evolution.tell(points, [asked(x) for x in points])


def nevergrad(name: str) -> Callable[[Asked], None]:
    """An optimiser of nevergrad."""

    def run(asked: Asked) -> None:
        import nevergrad as ng  # type: ignore[import-not-found, unused-ignore]

        parameter = ng.p.Array(init=np.zeros(asked.problem.d))
        parameter.random_state.seed(0)
        ng.optimizers.registry[name](parametrization=parameter, budget=asked.budget).minimize(asked)

    return run


def scipys(method: Any) -> Callable[[Asked], None]:
    """A method of scipy.optimize.minimize."""

    def run(asked: Asked) -> None:
        from scipy.optimize import minimize

        minimize(asked, np.zeros(asked.problem.d), method=method, options={"maxfev": asked.budget})

    return run


def snes(asked: Asked) -> None:
    """evosax's separable natural evolution strategy."""
    import jax  # type: ignore[import-not-found, unused-ignore]
    from evosax.algorithms import SNES  # type: ignore[import-not-found, unused-ignore]

    strategy = SNES(population_size=50, solution=jax.numpy.zeros(asked.problem.d))
    settings, key = strategy.default_params, jax.random.key(0)
    state = strategy.init(key, jax.numpy.zeros(asked.problem.d), settings)
    while True:
        key, one, two = jax.random.split(key, 3)
        points, state = strategy.ask(one, state, settings)
        state, _ = strategy.tell(two, points, jax.numpy.asarray([asked(x) for x in points]), state, settings)


def coordinate(smoothness: float) -> Callable[[Asked], None]:
    """Random coordinate descent with prox: central differences, step 1 / smoothness."""

    def run(asked: Asked) -> None:
        rng, x, l1 = np.random.default_rng(0), np.zeros(asked.problem.d), asked.problem.l1
        nu = 0.3 if asked.noise else 1e-4
        while True:
            i = int(rng.integers(x.size))
            pair = np.repeat(x[None], 2, axis=0)
            pair[:, i] += nu, -nu
            ahead, behind = asked.values(pair)
            x[i] = soft(x[i] - (ahead - behind) / (2 * nu * smoothness), l1 / smoothness)
            asked.x = x

    return run


def fista(asked: Asked) -> None:
    """FISTA with finite differences along every coordinate and a backtracked step."""
    d, l1 = asked.problem.d, asked.problem.l1
    nu = 0.3 if asked.noise else 1e-5
    x, y, t, smoothness, block = np.zeros(d), np.zeros(d), 1.0, 1.0, 256
    while True:
        f = float(asked.values(y[None])[0])
        slope = np.empty(d)
        for start in range(0, d, block):
            stop = min(start + block, d)
            step = nu * np.eye(d)[start:stop] if d <= 1000 else _unit(d, start, stop, nu)
            if asked.noise:
                slope[start:stop] = (asked.values(y + step) - asked.values(y - step)) / (2 * nu)
            else:
                slope[start:stop] = (asked.values(y + step) - f) / nu
        while True:
            after = soft(y - slope / smoothness, l1 / smoothness)
            move = after - y
            bound = f + float(slope @ move) + smoothness / 2 * float(move @ move) + 4 * asked.noise
            if float(asked.values(after[None])[0]) <= bound + 1e-12:
                break
            smoothness *= 2
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y, t = after + (t - 1) / t_next * (after - x), t_next
        asked.x = x = after
        smoothness *= 0.8


def _unit(d: int, start: int, stop: int, nu: float) -> Array:
    step = np.zeros((stop - start, d))
    step[np.arange(stop - start), np.arange(start, stop)] = nu
    return step


def psgd(eta: float) -> Callable[[Asked], None]:
    """ZO-PSGD: fifty Gaussian directions, and the prox of the penalty."""

    def run(asked: Asked) -> None:
        rng, x, d, m = np.random.default_rng(0), np.zeros(asked.problem.d), asked.problem.d, 50
        nu = 0.3 / np.sqrt(d) if asked.noise else 1e-4
        while True:
            u = rng.standard_normal((m, d))
            values = asked.values(np.vstack([x, x + nu * u]))
            g = u.T @ (values[1:] - values[0]) / (m * nu)
            asked.x = x = soft(x - g / eta, asked.problem.l1 / eta)

    return run


ALONE: dict[str, Callable[[Asked], None]] = {
    "pycma diagonal": pycma,
    "nlopt SBPLX": sbplx,
    "nevergrad OnePlusOne": nevergrad("OnePlusOne"),
    "nevergrad NGOpt": nevergrad("NGOpt"),
    "scipy Powell": scipys("Powell"),
    "scipy COBYQA": scipys("COBYQA"),
    "evosax SNES": snes,
    "finite-difference FISTA": fista,
}
IN_HINDSIGHT: dict[str, list[Callable[[Asked], None]]] = {
    "coordinate descent, prox": [coordinate(L) for L in (1.0, 0.3, 0.1)],
    "ZO-PSGD": [psgd(eta) for eta in (1.0, 10.0, 100.0)],
}
"""Step sizes, each run with the whole budget; the best counts."""
METHODS = [*ALONE, *IN_HINDSIGHT]


def minimise(method: str, problem: Synthetic, noise: float, budget: int, seconds: float) -> dict[str, Any]:
    """The result of one method."""
    found = []
    for run in IN_HINDSIGHT.get(method) or [ALONE[method]]:
        asked = Asked(problem, noise, budget, seconds)
        with warnings.catch_warnings(), contextlib.suppress(Spent), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                run(asked)
            except ImportError as error:
                return {"missing": str(error)}
            except MemoryError as error:
                asked.stopped = f"memory: {error}"
            except RuntimeError:  # NLopt raises this for an exception of the function
                pass
        final = problem.total(asked.x)
        found.append((final if np.isfinite(final) else np.inf, asked.queries, asked.stopped))
    final, queries, stopped = min(found)
    return {"final": final if np.isfinite(final) else None, "queries": queries, "stopped": stopped}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--problem", choices=PROBLEMS, default="quadratic")
    parser.add_argument("--d", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=100.0)
    given = parser.parse_args()
    problem = PROBLEMS[given.problem](given.d)
    print(json.dumps(minimise(given.method, problem, given.noise, given.budget, given.seconds)))


if __name__ == "__main__":
    main()
