"""Mirror descent as pure functions on a frozen state; with exact gradients it is ISTA."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.conftest import PRESETS
from zomirror.methods.directions import Key, key_of
from zomirror.methods.query import Query, Segment
from zomirror.numerics.arrays import Array, Values

RNG = np.random.default_rng(0)
A = RNG.normal(size=(20, 12))
B = RNG.normal(size=20)
L = float(np.linalg.norm(A, 2) ** 2)


def least_squares(points: Array) -> Values:
    values: Values = 0.5 * np.square(points @ A.T - B).sum(axis=1)
    return values


@dataclass(frozen=True)
class Exact:
    """The true gradient of least squares, for one query."""

    def init(self, problem: zm.methods.Problem) -> None:
        """Nothing to remember."""

    def ask(self, memory: None, problem: zm.methods.Problem, x: Array, t: int, key: Key) -> Query:
        return Query((Segment(x, 1),))

    def tell(self, memory: None, query: Query, values: Values) -> tuple[zm.methods.Estimate, None]:
        x = query.segments[0].base
        return zm.methods.Estimate(float(values[0]), A.T @ (A @ x - B)), None


def problem(d: int = 12, l1: float = 0.0, l2: float = 0.0, box: zm.methods.Box | None = None) -> zm.methods.Problem:
    return zm.methods.Problem(d, np.dtype(np.float64), zm.methods.ElasticNet(l1, l2), box or zm.methods.Box())


@pytest.mark.parametrize(("l1", "l2"), [(0.5, 0.0), (0.0, 0.0), (0.3, 2.0)])
@pytest.mark.parametrize("box", [zm.methods.Box(), zm.methods.Box(0.0, 0.3)], ids=["free", "box"])
def test_euclidean_descent_with_exact_gradients_is_ista(l1: float, l2: float, box: zm.methods.Box) -> None:
    """x <- clip(soft(x - grad/L, l1/L) / (1 + l2/L)), step by step."""
    method = zm.methods.MirrorDescent(zm.methods.Euclidean(), Exact(), zm.methods.Constant(L))
    state = method.init(np.zeros(12), problem(l1=l1, l2=l2, box=box), (0, 0))
    ista = np.zeros(12)
    values = []
    for _ in range(200):
        query = method.ask(state)
        told = least_squares(query.points())
        values.append(float(told[0]) + state.problem.penalty(state.x))
        state = method.tell(state, query, told)
        z = ista - A.T @ (A @ ista - B) / L
        ista = np.clip(np.sign(z) * np.maximum(np.abs(z) - l1 / L, 0) / (1 + l2 / L), box.lower, box.upper)
        np.testing.assert_allclose(state.x, ista, rtol=1e-9, atol=1e-13)
        assert ((state.x == 0) == (ista == 0)).all()
    assert (np.diff(values) <= 1e-12).all(), "ISTA with step 1/L never goes up"


def test_entropy_descent_with_exact_gradients_finds_the_lasso_solution() -> None:
    """Another map, the same minimiser: the subgradient condition holds at the end."""
    method = zm.methods.MirrorDescent(zm.methods.Entropy(), Exact(), zm.methods.Constant(60.0))
    result = zm.minimize(least_squares, np.zeros(12), l1=0.5, budget=4001, method=method, rng=0)
    slope = A.T @ (A @ result.x - B)
    on = result.x != 0
    assert np.abs(slope[on] + 0.5 * np.sign(result.x[on])).max() < 1e-8
    assert np.abs(slope[~on]).max(initial=0) <= 0.5


@pytest.mark.parametrize("method", PRESETS, ids=lambda m: f"{m.mirror}{m.step}")
def test_one_step_is_the_sum_of_its_parts(method: zm.methods.MirrorDescent) -> None:
    p = problem(l1=0.1, l2=0.2, box=zm.methods.Box(-1.0, 1.0))
    x, key = np.full(12, 0.25), key_of(1)
    state = method.init(x, p, key)
    query = method.ask(state)
    values = least_squares(query.points())
    after = method.tell(state, query, values)
    memory = method.estimator.init(p)
    (f, g), _ = method.estimator.tell(memory, method.estimator.ask(memory, p, x, 0, key), values)
    assert g is not None
    eta = method.step.eta(method.step.init(), g)
    assert after.x.tobytes() == method.mirror.step(x, g, eta, p.penalty, p.box).tobytes()
    assert after.t == 1
    assert after.last is not None
    assert after.last.x is x
    assert (after.last.f, after.last.eta) == (f, eta)
    assert after.last.f == values[0]
    assert after.last.stationarity == pytest.approx(eta * np.linalg.norm(x - after.x), rel=1e-14)
    assert after.pace == method.step.advance(method.step.init(), method.mirror, x, after.x, eta)


@pytest.mark.parametrize("method", PRESETS, ids=lambda m: f"{m.mirror}{m.step}")
def test_asking_and_telling_are_pure(method: zm.methods.MirrorDescent) -> None:
    state = method.init(np.full(12, 0.25), problem(l1=0.1), key_of(1))
    first, again = method.ask(state), method.ask(state)
    assert first.points().tobytes() == again.points().tobytes()
    values = least_squares(first.points())
    values.flags.writeable = False
    one, two = method.tell(state, first, values), method.tell(state, again, values)
    assert one.x.tobytes() == two.x.tobytes()
    assert (state.t, state.last) == (0, None)
    assert method.ask(one).points().tobytes() != first.points().tobytes()


def test_a_state_is_frozen_to_its_arrays() -> None:
    method = zm.methods.zo_ada_expmd(5)
    state = method.init(np.zeros(12), problem(), key_of(0))
    state = method.tell(state, method.ask(state), np.arange(6.0))
    with pytest.raises(FrozenInstanceError):
        state.t = 5  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        state.x[0] = 1


def test_a_state_decides_all_that_follows() -> None:
    """Continue from a state with fresh objects: the same bits as the run that was never interrupted."""

    def advance(state: zm.methods.State, steps: int) -> zm.methods.State:
        method = zm.methods.zo_ada_expmd(7)
        for _ in range(steps):
            query = method.ask(state)
            state = method.tell(state, query, least_squares(query.points()))
        return state

    start = zm.methods.zo_ada_expmd(7).init(np.zeros(12), problem(l1=0.1, box=zm.methods.Box(-1.0, 1.0)), key_of(3))
    whole, half = advance(start, 10), advance(start, 4)
    copied = zm.methods.State(half.problem, half.key, half.t, half.x.copy(), None, half.pace, None)
    resumed = advance(copied, 6)
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert resumed.pace == whole.pace


def test_a_problem_that_the_map_cannot_handle_is_refused_at_init() -> None:
    method = zm.methods.MirrorDescent(zm.methods.PNorm(), zm.methods.TwoPoint(5), zm.methods.Constant(1.0))
    with pytest.raises(zm.errors.ArgumentError, match="use Entropy"):
        method.init(np.zeros(12), problem(l2=1.0), (0, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mirror", [zm.methods.Entropy(), zm.methods.Euclidean(), zm.methods.PNorm()], ids=str)
def test_divergence_is_not_a_warning(mirror: Any, dtype: Any) -> None:
    """Warnings are errors here; whoever drives the run looks at x."""
    method = zm.methods.MirrorDescent(mirror, zm.methods.TwoPoint(5), zm.methods.Adaptive(first=1e-6))
    p = zm.methods.Problem(4, np.dtype(dtype), zm.methods.ElasticNet(l1=0.1), zm.methods.Box())
    state = method.init(np.ones(4, dtype), p, key_of(0))
    for size in (1e30, 1e300, -1e306, 1e306):
        state = method.tell(state, method.ask(state), size * np.arange(6.0))
    assert state.t == 4


def test_a_float32_run_stays_close_to_the_float64_run() -> None:
    """The points are float32 throughout, what is added up over many numbers is not: see docs/benchmarks.md."""
    target = np.linspace(-0.5, 0.5, 100)

    def run(dtype: type[Any]) -> zm.Result:
        def fun(points: Any) -> Any:
            assert points.dtype == dtype
            return np.square(points.astype(np.float64) - target).sum(axis=1)

        x0 = np.zeros(100, dtype)
        # A radius that float32 holds exactly, so that both runs see the same differences but for the rounding of x.
        method = zm.methods.zo_ada_expmd(50, radius=0.0625)
        return zm.minimize(fun, x0, l1=0.01, bounds=(-1, 1), budget=20 * 51 + 1, method=method, rng=0)

    narrow, wide = run(np.float32), run(np.float64)
    assert narrow.x.dtype == np.float32
    np.testing.assert_allclose(narrow.history.fun, wide.history.fun, rtol=1e-5)
    np.testing.assert_allclose(narrow.history.eta[:-1], wide.history.eta[:-1], rtol=1e-5)
    np.testing.assert_allclose(narrow.x, wide.x, atol=1e-5)
