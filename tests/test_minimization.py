"""The front door: reproducible, within its budget, honest about what it measured."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds

import zomirror as zm
from tests.conftest import PRESETS, Counted, sphere_function

METHOD = zm.methods.zo_ada_expmd(10)  # eleven queries an iteration


def run(fun: Any = sphere_function, x0: Any = None, **options: Any) -> zm.Result:
    settled: dict[str, Any] = {"l1": 0.1, "l2": 0.1, "bounds": (0, 1), "method": METHOD, "rng": 0, "budget": 150}
    return zm.minimize(fun, np.full(6, 0.25) if x0 is None else x0, **(settled | options))


def objective(x: Any, l1: float = 0.1, l2: float = 0.1) -> float:
    return float(sphere_function(x)) + l1 * float(np.abs(x).sum()) + l2 / 2 * float(np.square(x).sum())


# --- reproducibility ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", PRESETS, ids=lambda m: f"{m.mirror}{m.step}")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_seed_same_bits(method: zm.methods.MirrorDescent, dtype: Any) -> None:
    a, b = (run(x0=np.full(6, 0.25, dtype), method=method) for _ in range(2))
    other = run(x0=np.full(6, 0.25, dtype), method=method, rng=1)
    assert a.x.dtype == dtype
    assert a.x.tobytes() == b.x.tobytes() != other.x.tobytes()
    assert a.history.fun.tobytes() == b.history.fun.tobytes()


@pytest.mark.parametrize("rng", [None, 5, np.int64(5), 2**70, "generator"])
def test_the_seed_of_the_result_repeats_the_run(rng: Any) -> None:
    first = run(rng=np.random.default_rng(3) if rng == "generator" else rng)
    assert isinstance(first.seed, int)
    assert run(rng=first.seed).x.tobytes() == first.x.tobytes()


def test_no_seed_is_a_new_seed_every_time() -> None:
    assert run(rng=None).seed != run(rng=None).seed


def test_a_generator_is_used_up() -> None:
    rng = np.random.default_rng(3)
    assert run(rng=rng).x.tobytes() != run(rng=rng).x.tobytes()


def test_the_global_random_state_is_left_alone() -> None:
    before = str(np.random.get_state())  # noqa: NPY002
    run(rng=None)
    assert str(np.random.get_state()) == before  # noqa: NPY002


@pytest.mark.parametrize("method", PRESETS, ids=lambda m: f"{m.mirror}{m.step}")
def test_x0_is_never_modified(method: zm.methods.MirrorDescent) -> None:
    x0 = np.linspace(0, 1, 6)
    run(x0=x0, method=method)
    assert (x0 == np.linspace(0, 1, 6)).all()
    assert x0.flags.writeable


@pytest.mark.parametrize("method", PRESETS, ids=lambda m: f"{m.mirror}{m.step}")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_iterates_stay_in_the_box_and_their_points_within_the_radius(
    method: zm.methods.MirrorDescent, dtype: Any
) -> None:
    lower, upper = np.linspace(-0.3, 0.2, 6), np.array([-0.3, 0.1, 0.4, 0.5, 0.2, np.inf])
    iterates, farthest = [], 0.0

    def fun(points: Any) -> Any:
        nonlocal farthest
        farthest = max(farthest, float((points - upper.astype(dtype)).max()))
        return sphere_function(points)

    run(fun, np.clip(np.zeros(6), lower, upper).astype(dtype), bounds=Bounds(lower, upper), method=method,
        callback=lambda latest: iterates.append(latest.x))  # fmt: skip
    assert len(iterates) >= 13
    for x in iterates:
        assert x.dtype == dtype
        assert ((x >= lower.astype(dtype)) & (x <= upper.astype(dtype))).all()
        assert x[0] == dtype(-0.3), "a fixed coordinate is a constant"
    assert farthest > 0, "points leave the box by the radius, as in the paper"


def test_clip_keeps_every_point_in_the_box() -> None:
    def fun(points: Any) -> Any:
        assert ((points >= 0) & (points <= 1)).all()
        return sphere_function(points)

    method = zm.methods.MirrorDescent(
        zm.methods.Entropy(), zm.methods.TwoPoint(10, radius=0.3, clip=True), zm.methods.Adaptive()
    )
    assert run(fun, method=method).success


# --- the budget --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("budget", [12, 13, 22, 23, 24, 33, 34, 35])
def test_the_functions_own_count_never_exceeds_the_budget(budget: int, vectorized: bool) -> None:
    """An iteration costs 11 and one query is kept for the end: 12, 23 and 34 are exact."""
    fun = Counted(sphere_function)
    result = run(fun, budget=budget, vectorized=vectorized)
    iterations = (budget - 1) // 11
    assert result.nit == iterations
    assert fun.rows == result.nfev == result.sent == 11 * iterations + 1 <= budget
    assert result.status is zm.Status.BUDGET
    assert result.history.nfev.tolist() == [11 * (t + 1) for t in range(iterations)] + [11 * iterations + 1]


@settings(max_examples=40)
@given(m=st.integers(1, 9), extra=st.integers(0, 60), stochastic=st.booleans(), block=st.integers(1, 500))
def test_any_budget_is_kept(m: int, extra: int, stochastic: bool, block: int) -> None:
    cost = 2 * m if stochastic else m + 1
    method = zm.methods.MirrorDescent(
        zm.methods.Entropy(), zm.methods.TwoPoint(m, max_block_bytes=block), zm.methods.Adaptive()
    )
    fun = Counted(lambda points, *draws: sphere_function(points))
    result = run(fun, method=method, budget=cost + 1 + extra, stochastic=stochastic)
    assert fun.rows == result.nfev <= cost + 1 + extra < fun.rows + cost + 1
    assert result.fun == pytest.approx(objective(result.x), rel=1e-12)


@pytest.mark.parametrize("budget", [1, 2, 10, 11])
def test_a_budget_too_small_is_refused_before_any_query(budget: int) -> None:
    fun = Counted(sphere_function)
    with pytest.raises(
        zm.errors.ArgumentError, match=rf"expected budget >= 12 .*, got {budget}: raise the budget or use"
    ):
        run(fun, budget=budget)
    assert fun.rows == 0
    assert run(fun, budget=12).nit == 1


# --- what is measured and returned -------------------------------------------------------------------------------


@pytest.mark.parametrize("returns", ["last", "best", "random"])
@pytest.mark.parametrize("stop", [{}, {"maxiter": 3}, {"max_time": 1e-9}, {"target": 1.0}])
def test_fun_is_measured_at_x(returns: str, stop: dict[str, Any]) -> None:
    result = run(returns=returns, **stop)
    assert result.fun == pytest.approx(objective(result.x), rel=1e-12)
    assert result.f == pytest.approx(float(sphere_function(result.x)), rel=1e-12)
    assert result.fun in result.history.fun


def test_last_is_the_last_and_best_the_best() -> None:
    options: dict[str, Any] = {"method": zm.methods.zo_expmd(0.5, 3), "budget": 100}
    last, best = (run(returns=returns, **options) for returns in ("last", "best"))
    assert last.history.fun.tobytes() == best.history.fun.tobytes(), "the run itself is the same"
    assert last.fun == last.history.fun[-1]
    assert best.fun == best.history.fun.min() < last.fun
    penalised = run(returns="best", l1=1.5, **options)
    assert penalised.fun == penalised.history.fun.min()
    assert penalised.f > penalised.history.f.min(), "the best F, not the best f"


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_by_default_the_best_point_that_was_asked_comes_back(l1: float) -> None:
    """Where f is exact; with l1, every point but those of finite differences."""
    weights = np.linspace(0.1, 3.0, 40)
    for budget in (60, 200, 900):
        asked: list[Any] = []

        def f(points: Any, asked: list[Any] = asked) -> Any:
            asked.append(points.copy())
            return np.abs(np.sin(5 * points) + points - 0.4) @ weights + np.square(points).sum(axis=1)

        result = zm.minimize(f, np.full(40, 0.5), l1=l1, bounds=(-1, 1), budget=budget, rng=2)
        points = np.concatenate(asked)
        inside = points[(np.abs(points) <= 1).all(axis=1)]
        totals = f(inside) + l1 * np.abs(inside).sum(axis=1)
        best = totals.min() if not l1 else result.history.fun.min()
        assert result.fun <= best
        assert any((row == result.x).all() for row in inside)
        last = zm.minimize(f, np.full(40, 0.5), l1=l1, bounds=(-1, 1), budget=budget, rng=2, returns="last")
        assert last.fun == last.history.fun[-1] >= result.fun


def test_random_is_uniform_over_the_measured_iterates() -> None:
    """Four iterations and the last query: five iterates, each with one chance in five."""
    from scipy import stats

    counts = np.zeros(5)
    for seed in range(250):
        result = run(method=zm.methods.zo_expmd(9.0, 1), budget=9, rng=seed, returns="random", l1=0, bounds=None)
        [place] = np.flatnonzero(result.history.fun == result.fun)
        counts[place] += 1
    assert stats.chisquare(counts).pvalue > 1e-3


def test_history_is_consistent() -> None:
    seen: list[zm.result.Intermediate] = []
    result = run(callback=seen.append)
    h = result.history
    assert len(h) == result.nit + 1 == len(seen) + 1
    np.testing.assert_allclose(h.fun[:-1], [objective(latest.x) for latest in seen], rtol=1e-12)
    np.testing.assert_allclose(h.f[:-1], [sphere_function(latest.x) for latest in seen], rtol=1e-12)
    assert h.nnz.tolist() == [*(np.count_nonzero(latest.x) for latest in seen), np.count_nonzero(result.x)]
    assert h.nfev[:-1].tolist() == [latest.nfev for latest in seen]
    assert h.eta[:-1].tolist() == [latest.eta for latest in seen]
    assert h.stationarity[:-1].tolist() == [latest.stationarity for latest in seen]
    assert [latest.nit for latest in seen] == list(range(1, result.nit + 1))
    assert np.isnan([h.eta[-1], h.stationarity[-1]]).all()
    # |G| = eta |x_t - x_{t+1}|_2, and eta follows the adaptive rule.
    iterates = [latest.x for latest in seen] + [result.x]
    alpha = 1.0
    for t, (x, x_next) in enumerate(pairwise(iterates)):
        assert h.eta[t] == pytest.approx(alpha, rel=1e-12)
        assert h.stationarity[t] == pytest.approx(alpha * np.linalg.norm(x - x_next), rel=1e-12)
        move = 2 * np.abs(x - x_next).sum() / (max(np.abs(x).sum(), np.abs(x_next).sum()) + 1)
        alpha = np.sqrt(alpha**2 + move**2 * alpha**2)
    assert result.stationarity == h.stationarity[-2]


def test_the_first_entry_is_x0() -> None:
    result = run()
    assert result.history.fun[0] == pytest.approx(objective(np.full(6, 0.25)), rel=1e-12)
    assert (result.history.nfev[0], result.history.nnz[0]) == (11, 6)


# --- reasons to stop ---------------------------------------------------------------------------------------------


def test_maxiter() -> None:
    result = run(maxiter=3)
    assert (result.nit, result.nfev, result.status) == (3, 34, zm.Status.MAXITER)
    assert result.success


def test_target() -> None:
    start = objective(np.full(6, 0.25))
    result = run(target=0.9 * start, budget=2000)
    assert result.status is zm.Status.TARGET
    assert result.fun <= 0.9 * start
    assert (result.history.fun[:-1] > 0.9 * start).all()
    assert result.fun == result.history.fun[-1]
    assert result.nfev == 11 * result.nit, "the value that reached the target was measured: no query is added"


def test_max_time() -> None:
    def slow(points: Any) -> Any:
        time.sleep(0.02)
        return sphere_function(points)

    began = time.monotonic()
    result = run(slow, max_time=0.1, budget=10**6)
    assert time.monotonic() - began < 2
    assert result.status is zm.Status.MAX_TIME
    assert 1 <= result.nit < 20


def test_a_callback_stops_the_run() -> None:
    def stop(latest: zm.result.Intermediate) -> None:
        if latest.nit == 4:
            raise StopIteration

    result = run(callback=stop)
    assert (result.nit, result.nfev, result.status) == (4, 45, zm.Status.CALLBACK)
    assert result.success


def test_a_callback_sees_arrays_that_it_cannot_change() -> None:
    def write(latest: zm.result.Intermediate) -> None:
        with pytest.raises(ValueError, match="read-only"):
            latest.x[0] = 5

    assert run(callback=write).x.tobytes() == run().x.tobytes()


def test_an_error_of_the_callback_is_its_own() -> None:
    def fail(latest: zm.result.Intermediate) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(callback=fail)


# --- stochastic functions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorized", [True, False])
def test_noise_that_belongs_to_a_draw_cancels(vectorized: bool) -> None:
    """With huge noise shared in pairs the run moves as it would without."""

    def noisy(points: Any, draws: Any) -> Any:
        return sphere_function(points) + 1024.0 * (np.asarray(draws) % 7)

    def quiet(points: Any, draws: Any) -> Any:
        return sphere_function(points)

    a, b = (run(f, stochastic=True, vectorized=vectorized, budget=141) for f in (noisy, quiet))
    assert a.nit == b.nit == 7, "2 m queries an iteration"
    np.testing.assert_allclose(a.x, b.x, rtol=1e-6)


def test_rows_of_a_stochastic_run_come_in_pairs() -> None:
    seen: list[Any] = []

    def fun(points: Any, draws: Any) -> Any:
        seen.append((points.copy(), draws.copy()))
        return sphere_function(points)

    result = run(fun, stochastic=True, budget=61)
    assert [len(points) for points, _ in seen] == [20, 20, 20, 1]
    for t, (points, draws) in enumerate(seen[:-1]):
        assert draws.dtype.kind == "i"
        assert draws.tolist() == [*range(10 * t, 10 * t + 10)] * 2
        assert (points[:10] == points[0]).all()
    assert seen[-1][1].tolist() not in ([d] for _, draws in seen[:-1] for d in draws.tolist())
    assert result.history.f[0] == pytest.approx(6 / 16)


def test_plain_additive_noise_needs_no_handle() -> None:
    rng = np.random.default_rng(0)

    def fun(points: Any) -> Any:
        return sphere_function(points) + 1e-3 * rng.normal(size=len(points))

    method = zm.methods.zo_ada_expmd(50, radius=0.1)
    result = zm.minimize(fun, np.zeros(20), l1=0.2, bounds=(0, 1), method=method, budget=5000, rng=0)
    exact = zm.minimize(sphere_function, np.zeros(20), l1=0.2, bounds=(0, 1), method=method, budget=5000, rng=0)
    assert result.fun < 1.05 * exact.fun + 0.05


# --- shapes and dimensions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(
    "method",
    [zm.methods.zo_ada_expmd(60), zm.methods.zo_psgd(4.0, 60), zm.methods.zo_ada_psgd(60)],
    ids=lambda m: f"{m.mirror}{m.step}",
)
def test_one_and_two_dimensions(d: int, method: zm.methods.MirrorDescent) -> None:
    result = zm.minimize(sphere_function, np.zeros(d), l1=0.1, method=method, budget=4000, rng=0)
    np.testing.assert_allclose(result.x, np.full(d, 0.45), atol=0.05)


@pytest.mark.parametrize("x0", [[0, 0, 1], (0.0, 0.0), np.zeros(3, int), np.zeros(3, bool)], ids=str)
def test_x0_of_any_kind_of_number(x0: Any) -> None:
    result = zm.minimize(sphere_function, x0, method=METHOD, budget=50, rng=0)
    assert result.x.dtype == np.float64


def test_everything_fixed_is_a_run_that_does_not_move() -> None:
    for free_only in (False, True):
        method = zm.methods.MirrorDescent(
            zm.methods.Entropy(), zm.methods.TwoPoint(5, free_only=free_only), zm.methods.Adaptive()
        )
        result = run(x0=np.ones(6), bounds=(1, 1), method=method)
        assert result.x.tolist() == [1] * 6
        assert result.stationarity == 0


def test_free_only_never_shows_the_function_another_value_of_a_fixed_coordinate() -> None:
    lower, upper = np.zeros(6), np.array([0.0, 1, 0, 1, 1, 0])

    def fun(points: Any) -> Any:
        assert (points[:, [0, 2, 5]] == 0).all()
        return sphere_function(points)

    method = zm.methods.MirrorDescent(
        zm.methods.Entropy(), zm.methods.TwoPoint(10, free_only=True), zm.methods.Adaptive()
    )
    result = run(fun, np.zeros(6), bounds=(lower, upper), method=method, budget=400)
    assert (result.x[[1, 3, 4]] > 0.2).all()


def test_points_do_not_depend_on_blocks_or_on_the_way_of_calling() -> None:
    def asked(**options: Any) -> tuple[Any, zm.Result]:
        rows: list[Any] = []

        def fun(points: Any) -> Any:
            rows.extend(np.atleast_2d(points).copy())
            return sphere_function(points)

        return rows, run(fun, **options)

    whole, a = asked(maxiter=1)
    pieces, b = asked(
        maxiter=1,
        method=zm.methods.MirrorDescent(
            zm.methods.Entropy(), zm.methods.TwoPoint(10, max_block_bytes=100), zm.methods.Adaptive()
        ),
    )
    singly, c = asked(maxiter=1, vectorized=False)
    assert np.array(whole[:11]).tobytes() == np.array(pieces[:11]).tobytes() == np.array(singly[:11]).tobytes()
    np.testing.assert_allclose(a.x, b.x, rtol=1e-9)
    np.testing.assert_allclose(a.x, c.x, rtol=1e-9)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda values: torch.tensor(values, requires_grad=True),
            r"got Tensor, which numpy cannot read .*: give \.detach\(\)",
        ),
        (lambda values: torch.tensor(values, dtype=torch.bfloat16), "got Tensor, which numpy cannot read"),
        (lambda values: torch.tensor(values, device="meta"), "got Tensor, which numpy cannot read"),
        (lambda values: np.ma.masked_array(values, values > values.mean()), "some entries are masked: fill them"),
    ],
    ids=["gradient", "bfloat16", "another device", "masked"],
)
@pytest.mark.parametrize("first", [0, 2])
def test_answers_that_numpy_cannot_read_are_refused_in_a_sentence(answer: Any, message: str, first: int) -> None:
    """From the first batch on, or by a function that changes its mind: the queries before are kept."""
    calls = 0

    def fickle(points: Any) -> Any:
        nonlocal calls
        calls += 1
        values = sphere_function(points)
        return answer(values) if calls > first else values

    with pytest.raises(zm.errors.OracleError, match=message) as caught:
        run(fickle)
    assert caught.value.rows is not None
    assert caught.value.result.nfev == 11 * first
