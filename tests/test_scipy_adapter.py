"""zomirror as a method of scipy.optimize.minimize, by SciPy's own conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, OptimizeResult, minimize

import zomirror as zm

METHOD = zm.methods.zo_ada_expmd(10)


def f(x: Any, shift: float = 0.5) -> float:
    assert x.shape == (5,)
    return float(np.square(x - shift).sum())


def solve(fun: Any = f, **options: Any) -> OptimizeResult:
    settled: dict[str, Any] = {"method": zm.scipy_method(METHOD, l1=0.1), "options": {"budget": 200, "rng": 0}}
    result: OptimizeResult = minimize(fun, np.full(5, 0.25), **(settled | options))
    return result


def test_it_is_the_same_run_as_ours() -> None:
    result = solve(bounds=[(0, 1)] * 5)
    ours = zm.minimize(
        lambda x: f(x), np.full(5, 0.25), l1=0.1, bounds=(0, 1), method=METHOD, budget=200, rng=0, vectorized=False
    )
    assert result.x.tobytes() == ours.x.tobytes()
    assert (result.fun, result.nfev, result.nit) == (ours.fun, ours.nfev, ours.nit)
    assert result.success
    assert (result.status, result.message) == ("BUDGET", zm.Status.BUDGET.value)
    assert result.seed == 0
    assert result.stationarity == ours.stationarity
    assert len(result.history) == ours.nit + 1
    assert isinstance(result, OptimizeResult)


@pytest.mark.parametrize(
    "bounds", [Bounds(0, 1), Bounds(np.zeros(5), np.ones(5)), [(0, 1)] * 5, ((0, 1),) * 5, [(0.0, 1)] * 4 + [(0, 1.0)]]
)
def test_every_form_of_bounds(bounds: Any) -> None:
    assert solve(bounds=bounds).x.tobytes() == solve(bounds=[(0, 1)] * 5).x.tobytes()


def test_open_sides() -> None:
    result = solve(bounds=[(None, 0.3), (0.2, None), (None, None), (0.25, 0.25), (0, 1)], options={"budget": 900})
    assert result.x[0] <= 0.3
    assert result.x[1] >= 0.2
    assert result.x[3] == 0.25


def test_args_are_passed_on() -> None:
    assert solve(args=(0.9,), bounds=Bounds(0, 1), options={"budget": 2000, "rng": 0}).x.mean() > 0.6
    assert solve(args=0.5).x.tobytes() == solve().x.tobytes()


def test_the_function_gets_points_of_its_own() -> None:
    def writes(x: Any) -> float:
        value = f(x)
        x[:] = 99
        return value

    assert solve(writes).x.tobytes() == solve().x.tobytes()


def test_an_array_of_one_element_is_a_number() -> None:
    assert solve(lambda x: np.array([f(x)])).x.tobytes() == solve().x.tobytes()
    with pytest.raises(zm.errors.OracleError, match="cannot reshape array of size 2"):
        solve(lambda x: np.ones(2))


def test_callback_of_the_result_form() -> None:
    seen: list[OptimizeResult] = []

    def callback(intermediate_result: OptimizeResult) -> None:
        seen.append(intermediate_result)

    result = solve(callback=callback)
    assert len(seen) == result.nit
    assert seen[0].x.tolist() == [0.25] * 5
    assert seen[0].fun == pytest.approx(5 / 16 + 0.125)
    assert [latest.nit for latest in seen] == list(range(1, result.nit + 1))
    assert seen[-1].nfev == result.nfev - 1


def test_callback_of_the_result_form_by_keyword_only() -> None:
    seen: list[float] = []

    def callback(*, intermediate_result: OptimizeResult) -> None:
        seen.append(intermediate_result.fun)

    assert len(seen) == 0
    assert solve(callback=callback).nit == len(seen)


def test_callback_of_the_point_form() -> None:
    seen: list[Any] = []

    def callback(xk: Any) -> None:
        seen.append(xk)
        xk[:] = 7  # a copy: nothing happens

    result = solve(callback=callback)
    assert result.x.tobytes() == solve().x.tobytes()
    assert len(seen) == result.nit
    assert all(isinstance(x, np.ndarray) and x.shape == (5,) for x in seen)


@pytest.mark.parametrize("named", [True, False])
def test_a_callback_stops_the_run(named: bool) -> None:
    def by_name(intermediate_result: OptimizeResult) -> None:
        raise StopIteration

    def by_point(xk: Any) -> None:
        raise StopIteration

    result = solve(callback=by_name if named else by_point)
    assert (result.status, result.nit, result.success) == ("CALLBACK", 1, True)


def test_options() -> None:
    assert solve(options={"maxiter": 2, "rng": 0}).nit == 2
    assert solve(options={"target": 10.0}).status == "TARGET"
    assert solve(options={"max_time": 1e-9}).status == "MAX_TIME"
    best = solve(options={"returns": "best", "budget": 200, "rng": 3})
    assert best.fun == best.history.fun.min()
    assert solve(method=zm.scipy_method(METHOD, budget=50, rng=0), options=None).nfev <= 50


def test_batch_size_is_an_option() -> None:
    result = solve(options={"budget": 200, "rng": 0, "batch_size": 20})
    ours = solve(method=zm.scipy_method(zm.methods.zo_ada_expmd(20), l1=0.1))
    assert result.x.tobytes() == ours.x.tobytes()
    assert result.nfev == 9 * 21 + 1
    assert solve(method=zm.scipy_method(), options={"budget": 45, "batch_size": 10}).nit >= 1
    with pytest.raises(zm.errors.ArgumentError, match="expected a method whose estimator has a batch_size"):
        solve(method=zm.scipy_method(Bare()), options={"batch_size": 3})


class Bare:
    """A method without parts."""

    def init(self, x0: Any, problem: Any, key: Any) -> Any: ...
    def ask(self, state: Any) -> Any: ...
    def tell(self, state: Any, query: Any, values: Any) -> Any: ...


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"constraints": {"type": "eq", "fun": lambda x: 0.0}}, "expected no constraints, only bounds"),
        ({"options": {"gtol": 1e-3}}, r"expected options among .*budget.*, got gtol"),
        ({"tol": 1e-3}, "got tol"),
        ({"options": {"budget": 5}}, "expected budget >= 12"),
        ({"bounds": [(0.5, 1)] * 5}, "expected x0 inside the bounds, got coordinates 0, 1, 2, 3, 4 outside"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else value,
)
def test_what_is_refused(options: dict[str, Any], sentence: str) -> None:
    calls = []
    with pytest.raises(zm.errors.ArgumentError, match=sentence):
        solve(lambda x: calls.append(x), **options)
    assert calls == []


def test_a_gradient_is_not_needed_and_not_used() -> None:
    def never(x: Any) -> Any:
        raise AssertionError("only values are used")

    assert solve(jac=never).x.tobytes() == solve().x.tobytes()
