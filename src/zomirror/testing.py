"""Checks that a contributor runs on a new mirror map, directions, estimator or step rule.

    from zomirror.testing import check_mirror_map
    check_mirror_map(MyMap(), phi=my_phi)

Each check raises AssertionError with the promise that is broken, if any. Checks are seeded: a class that passes once
passes always.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError
from zomirror.methods.directions import Directions
from zomirror.methods.estimator import Estimator
from zomirror.methods.mirror import Euclidean, MirrorMap
from zomirror.methods.query import Query
from zomirror.methods.step import StepRule
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.random import Key, key_of
from zomirror.problem import Box, ElasticNet, Problem

STANDARD_ERRORS = 4.5
"""The largest accepted deviation of a mean: no correct one of the hundreds compared here exceeds it."""
DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


def check_mirror_map(mirror: MirrorMap, phi: Callable[[Array], float], *, d: int = 6, seed: int = 0) -> None:
    """Check that step() gives the minimiser of <g, y> + h(y) + eta B(y, x) in the box, in x's dtype.

    Penalties and boxes that the map's `check` refuses are skipped; it must accept at least one.

    Parameters
    ----------
    mirror : MirrorMap
        The mirror map.
    phi : callable
        Its distance-generating function, which defines the Bregman divergence B.
    d : int
        The dimension of the test points.
    seed : int
        The seed of the test points.
    """
    rng, tried = np.random.default_rng(seed), 0
    for dtype in DTYPES:
        for h in (ElasticNet(), ElasticNet(l1=0.3), ElasticNet(l2=0.7), ElasticNet(l1=0.1, l2=0.2)):
            for box in _boxes(d):
                box = box.astype(dtype)
                try:
                    mirror.check(h, box)
                except ArgumentError:
                    continue
                tried += 1
                for eta in (0.3, 1.0, 20.0):
                    x = _read_only(box.project(_some_zero(rng, rng.normal(size=d))).astype(dtype))
                    g = _read_only(rng.normal(size=d).astype(dtype))
                    _check_step(mirror, phi, x, g, eta, h, box, rng)
    _promise(tried > 0, "check() must accept at least one penalty and box")
    _check_limits(mirror, d, rng)
    _check_movement(mirror, d, rng)


def _check_step(
    mirror: MirrorMap,
    phi: Callable[[Array], float],
    x: Array,
    g: Array,
    eta: float,
    h: ElasticNet,
    box: Box,
    rng: np.random.Generator,
) -> None:
    where = f"(eta = {eta}, {h}, lower = {box.lower}, upper = {box.upper}, {x.dtype})"
    y = mirror.step(x, g, eta, h, box)
    _promise(y.dtype == x.dtype and y.shape == x.shape, f"step() must give an array like x, not {y.dtype} {y.shape}")
    _promise(not (np.shares_memory(y, x) or np.shares_memory(y, g)), "step() must give a new array")
    _promise(_same(y, mirror.step(x, g, eta, h, box)), "step() must give the same bits when called again")
    _promise(box.outside(y).size == 0, f"step() must stay in the box {where}")
    start = x.astype(np.float64)
    slope = _gradient(phi, start)

    def objective(point: Array) -> float:
        divergence = phi(point) - phi(start) - float(slope @ (point - start))
        return float(g.astype(np.float64) @ point) + h(point) + eta * divergence

    reached = objective(y.astype(np.float64))
    slack = (1e-5 if x.dtype == np.float32 else 1e-8) * (1 + abs(reached))
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for move in (*rng.normal(size=(6, y.size)), *np.eye(y.size), *-np.eye(y.size), -y / size):
            other = box.project(y + size * move)
            if objective(other) < reached - slack:
                raise AssertionError(f"step() must minimise <g, y> + h(y) + eta B(y, x), but {other} beats {y} {where}")


def _check_limits(mirror: MirrorMap, d: int, rng: np.random.Generator) -> None:
    for dtype in DTYPES:
        x, g = (_read_only(rng.normal(size=d).astype(dtype)) for _ in range(2))
        y = mirror.step(x, g, 1.0, ElasticNet(l1=1e4), Box())
        _promise(not y.any(), "step() must give exact zeros under a large l1")
        y = mirror.step(x, g, 1e12, ElasticNet(l1=1.0), Box())
        _promise(np.allclose(y, x, rtol=1e-5, atol=1e-6), "step() must leave x where it is when eta is huge")


def _check_movement(mirror: MirrorMap, d: int, rng: np.random.Generator) -> None:
    for dtype in DTYPES:
        x, y = (_read_only(rng.normal(size=d).astype(dtype)) for _ in range(2))
        there, back = mirror.movement(x, y), mirror.movement(y, x)
        _promise(type(there) is float, f"movement() must be a plain float, not {type(there).__name__}")
        _promise(mirror.movement(x, x) == 0, "movement() must be 0 from x to x")
        _promise(there > 0 and math.isfinite(there), "movement() must be positive and finite between two points")
        _promise(math.isclose(there, back, rel_tol=1e-6), "movement() must be the same there and back")


def check_directions(directions: Directions, *, d: int = 5, rows: int = 20_000, seed: int = 0) -> None:
    """Check that E[u u^T] = I / delta, and that row j of iteration t depends on (key, t, j) alone.

    Parameters
    ----------
    directions : Directions
        The directions.
    d : int
        The dimension.
    rows : int
        The directions whose mean is compared with its expectation.
    seed : int
        The seed of the key.
    """
    key = key_of(seed)
    for dtype in DTYPES:
        for width in (1, d, 8, 257):
            whole = _rows(directions, 9, width, dtype, key)
            _promise(bool(np.isfinite(whole).all()), "fill() must write every entry of out")
            pieces = [(0, 1), (1, 4), (4, 9)]
            parts = [_rows(directions, high - low, width, dtype, key, start=low) for low, high in pieces]
            _promise(
                _same(np.concatenate(parts), whole), f"rows must not depend on their blocks (d = {width}, {dtype})"
            )
            scaled = _rows(directions, 9, width, dtype, key, scale=0.25)
            _promise(np.allclose(scaled, 0.25 * whole, rtol=1e-6), "fill() must multiply by scale")
    first = _rows(directions, 64, d, DTYPES[1], key)
    for name, other in (
        ("t", _rows(directions, 64, d, DTYPES[1], key, t=1)),
        ("rows", _rows(directions, 64, d, DTYPES[1], key, start=64)),
        ("the first word of the key", _rows(directions, 64, d, DTYPES[1], (key[0] ^ 1, key[1]))),
        ("the second word of the key", _rows(directions, 64, d, DTYPES[1], (key[0], key[1] ^ 1))),
    ):
        _promise(not _same(first, other), f"other {name} must give other directions")
    u = _rows(directions, rows, d, DTYPES[1], key)
    products = (u[:, :, None] * u[:, None, :]).reshape(rows, d * d) * directions.delta(d)
    _check_mean(products, np.eye(d).ravel(), "E[u u^T] must be I / delta")


def check_estimator(
    estimator: Estimator, *, d: int = 6, batches: int = 400, stochastic: bool = True, seed: int = 0
) -> None:
    """Check that ask() and tell() are pure, and that on a linear function the estimate is unbiased on free coordinates.

    Parameters
    ----------
    estimator : Estimator
        The gradient estimator.
    d : int
        The dimension.
    batches : int
        The estimates whose mean is compared with its expectation.
    stochastic : bool
        Whether the estimator supports stochastic functions, which are then checked too.
    seed : int
        The seed of the test points.
    """
    rng = np.random.default_rng(seed)
    slope = rng.normal(size=d)
    lower, upper = np.full(d, -5.0), np.full(d, 5.0)
    lower[1] = upper[1] = 0.5
    for dtype in DTYPES:
        problem = Problem(d, dtype, ElasticNet(0.1, 0.1), Box(lower, upper).astype(dtype))
        x = _read_only(problem.box.project(rng.normal(size=d).astype(dtype)))
        memory = estimator.init(problem)
        for t in range(3):  # the promises hold for every memory, not only for the first
            memory = _check_batch(estimator, memory, problem, x, t, slope)
        gradients = np.array(
            [
                _told(estimator, memory, problem, x, t, key_of(seed + 1), lambda query: _linear(query, slope))[1]
                for t in range(3, 3 + batches)
            ]
        )
        free = [i for i in range(d) if i != 1]
        # Rounding errors of the function are divided by the radius.
        slack = 2e-2 if dtype == np.float32 else 1e-6
        _check_mean(gradients[:, free], slope[free], "the estimate must be unbiased on linear functions", slack)
    if stochastic:
        _check_draws(estimator, d, slope)


def _check_batch(estimator: Estimator, memory: Any, problem: Problem, x: Array, t: int, slope: Values) -> Any:
    key = key_of(7)
    _promise(_is_storable(memory), f"memory must be numbers, arrays or frozen dataclasses of them, not {memory!r}")
    query, again = (estimator.ask(memory, problem, x, t, key) for _ in range(2))
    points = query.points()
    _promise(points.shape == (len(query), problem.d), "ask() must give points of shape (n, d)")
    _promise(points.dtype == problem.dtype, f"ask() must give points of x's dtype, not {points.dtype}")
    _promise(_same(points, again.points()), "ask() must give the same points when asked again")
    singly = np.concatenate([query.points(i, i + 1) for i in range(len(query))])
    _promise(_same(points, singly), "points must not depend on the blocks in which they are made")
    values = _read_only(_linear(query, slope))
    before = copy.deepcopy(memory)
    (f, gradient), after = estimator.tell(memory, query, values)
    (_, repeated), _ = estimator.tell(copy.deepcopy(before), again, values)
    if gradient is None or repeated is None:
        raise AssertionError("the estimate of a linear function must have a gradient")
    _promise(_equal(memory, before), "tell() must leave its memory alone and give a new one")
    _promise(_same(gradient, repeated), "tell() must give the same bits when told again")
    _promise(gradient.dtype == x.dtype and gradient.shape == x.shape, "the gradient must be an array like x")
    at_x = float(x.astype(np.float64) @ slope)
    _promise(math.isclose(f, at_x, rel_tol=1e-5, abs_tol=1e-5), f"the estimate's f must be f(x) = {at_x}, not {f}")
    return after


def _check_draws(estimator: Estimator, d: int, slope: Values) -> None:
    """Check that the noise of a draw cancels in the differences of rows that share it."""
    problem = Problem(d, DTYPES[1], ElasticNet(), Box(), stochastic=True)
    x = _read_only(np.linspace(-1, 1, d))

    def noisy(query: Query) -> Values:
        noise: Values = 100 * np.sin(1.0 + query.samples())
        return _linear(query, slope) + noise

    memory = estimator.init(problem)
    quiet = _told(estimator, memory, problem, x, 2, key_of(3), lambda query: _linear(query, slope))[1]
    loud = _told(estimator, memory, problem, x, 2, key_of(3), noisy)[1]
    _promise(np.allclose(quiet, loud, rtol=1e-6, atol=1e-6), "noise must cancel between rows that share a draw")
    draws = [set(estimator.ask(memory, problem, x, t, key_of(3)).samples()) for t in range(2)]
    _promise(not draws[0] & draws[1], "iterations must not share draws")


def check_step_rule(rule: StepRule, *, mirror: MirrorMap | None = None, d: int = 6, seed: int = 0) -> None:
    """Check that the step size is a positive finite float after any finite moves, and that advance() is pure.

    Parameters
    ----------
    rule : StepRule
        The step rule.
    mirror : MirrorMap, optional
        The mirror map that it is used with; Euclidean by default.
    d : int
        The dimension.
    seed : int
        The seed of the moves.
    """
    mirror, rng, memory = mirror or Euclidean(), np.random.default_rng(seed), rule.init()
    for size in (0.0, 1e-30, 1e-3, 1.0, 1e3, 0.0, *rng.exponential(size=50)):
        x, g = (_read_only(rng.normal(size=d)) for _ in range(2))
        x_next = _read_only(x + size * rng.normal(size=d))
        _promise(_is_storable(memory), f"memory must be numbers, arrays or frozen dataclasses of them, not {memory!r}")
        before = copy.deepcopy(memory)
        eta = rule.eta(memory, g)
        _promise(type(eta) is float, f"eta must be a plain float, not {type(eta).__name__}: float32 runs stay float32")
        _promise(0 < eta < math.inf, f"eta must be positive and finite, not {eta}")
        _promise(rule.eta(memory, g) == eta, "eta() must give the same when asked again")
        after, again = (rule.advance(m, mirror, x, x_next, eta) for m in (memory, copy.deepcopy(before)))
        _promise(_equal(memory, before), "advance() must leave its memory alone and give a new one")
        _promise(_equal(after, again), "advance() must give the same when called again")
        memory = after


def _promise(kept: object, sentence: str) -> None:
    if not kept:
        raise AssertionError(sentence)


def _check_mean(samples: NDArray[Any], expected: NDArray[Any], sentence: str, slack: float = 1e-12) -> None:
    mean = samples.mean(axis=0, dtype=np.float64)
    error = samples.std(axis=0, ddof=1, dtype=np.float64) / math.sqrt(len(samples))
    excess = np.abs(mean - expected) - STANDARD_ERRORS * error - slack
    worst = int(excess.argmax())
    _promise(
        excess[worst] <= 0,
        f"{sentence}: entry {worst} has mean {mean[worst]:.6g} +- {error[worst]:.2g}, expected {expected[worst]:.6g}",
    )


def _boxes(d: int) -> Iterator[Box]:
    yield Box()
    yield Box(-0.5, 0.8)
    yield Box(0.0, np.inf)
    yield Box(-np.inf, -0.1)
    fixed = np.linspace(-1, 1, d)
    yield Box(fixed, np.where(np.arange(d) % 2, fixed, fixed + 0.5))


def _some_zero(rng: np.random.Generator, x: Values) -> Values:
    return np.where(rng.random(x.size) < 0.3, 0.0, x)


def _gradient(phi: Callable[[Array], float], x: Array) -> Array:
    width = 1e-6
    return np.array([(phi(x + width * e) - phi(x - width * e)) / (2 * width) for e in np.eye(x.size)])


def _rows(
    directions: Directions, count: int, d: int, dtype: np.dtype[Any], key: Key, *, t: int = 0, start: int = 0,
    scale: float = 1.0,
) -> Array:  # fmt: skip
    out: Array = np.full((count, d), np.nan, dtype)
    directions.fill(out, key, t, start, scale)
    return out


def _linear(query: Query, slope: Values) -> Values:
    values: Values = query.points().astype(np.float64) @ slope
    return values


def _told(
    estimator: Estimator, memory: Any, problem: Problem, x: Array, t: int, key: Key, fun: Callable[[Query], Values]
) -> tuple[float, Array]:
    query = estimator.ask(memory, problem, x, t, key)
    (f, gradient), _ = estimator.tell(memory, query, fun(query))
    if gradient is None:
        raise AssertionError("the estimate of a linear function must have a gradient")
    return f, gradient


def _read_only(x: Any) -> Any:
    x.flags.writeable = False
    return x


def _same(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _is_storable(memory: Any) -> bool:
    if memory is None or isinstance(memory, bool | int | float | str):
        return True
    if isinstance(memory, np.ndarray):
        return memory.dtype.kind in "biuf"
    if isinstance(memory, tuple):
        return all(map(_is_storable, memory))
    if is_dataclass(memory) and not isinstance(memory, type):
        return all(_is_storable(getattr(memory, field.name)) for field in fields(memory))
    return False


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return _same(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if is_dataclass(a) and not isinstance(a, type):
        return type(a) is type(b) and all(_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b)
