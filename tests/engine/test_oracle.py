"""The oracle: counts, refuses before overspending, checks what comes back, gives memory that cannot be misused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.conftest import Counted, sphere_function
from zomirror.engine.oracle import MemoryLedger, Oracle, checked_values, nonfinite_rows
from zomirror.methods.directions import key_of
from zomirror.methods.query import Query


def query(m: int = 9, d: int = 4, *, t: int = 0, max_block_bytes: int = 1 << 20, stochastic: bool = False) -> Query:
    problem = zm.methods.Problem(
        d, np.dtype(np.float64), zm.methods.ElasticNet(), zm.methods.Box(), stochastic=stochastic
    )
    estimator = zm.methods.TwoPoint(m, radius=0.1, max_block_bytes=max_block_bytes)
    return estimator.ask(None, problem, np.linspace(0, 1, d), t, key_of(0))


def test_values_of_every_row_in_order() -> None:
    q = query()
    oracle = Oracle(Counted(sphere_function), 100)
    assert oracle(q).tolist() == sphere_function(q.points()).tolist()
    assert oracle.remaining == 90
    assert (oracle.ledger.used, oracle.ledger.sent) == (10, 10)


@pytest.mark.parametrize("rows", [1, 3, 4, 10])
def test_blocks_change_the_calls_and_nothing_else(rows: int) -> None:
    fun = Counted(sphere_function)
    q = query(max_block_bytes=rows * 4 * 8)
    values = Oracle(fun, 10)(q)
    assert values.tobytes() == Oracle(sphere_function, 10)(query()).tobytes()
    assert fun.calls == -(-10 // rows)
    assert fun.rows == 10


def test_one_point_at_a_time() -> None:
    seen: list[tuple[int, ...]] = []

    def one(x: Any) -> float:
        seen.append(x.shape)
        return float(sphere_function(x))

    values = Oracle(one, 10, vectorized=False)(query())
    np.testing.assert_allclose(values, sphere_function(query().points()), rtol=1e-15)
    assert seen == [(4,)] * 10


@pytest.mark.parametrize("wrap", [float, np.float32, lambda v: np.array(v), lambda v: np.array([v]), lambda v: [[v]]])
def test_one_number_in_any_wrapping(wrap: Any) -> None:
    values = Oracle(lambda x: wrap(sphere_function(x)), 10, vectorized=False)(query())
    np.testing.assert_allclose(values, sphere_function(query().points()), rtol=1e-6)


@pytest.mark.parametrize("vectorized", [True, False])
def test_a_stochastic_function_gets_the_draws(vectorized: bool) -> None:
    q = query(m=5, stochastic=True)
    seen: list[int] = []

    def fun(points: Any, draws: Any) -> Any:
        seen.extend(np.atleast_1d(draws).tolist())
        if not vectorized:
            assert type(draws) is int
        return sphere_function(points) + 100.0 * draws

    values = Oracle(fun, 10, vectorized=vectorized)(q)
    assert seen == [0, 1, 2, 3, 4] * 2
    np.testing.assert_allclose(values, sphere_function(q.points()) + 100.0 * q.samples())


def test_a_batch_that_does_not_fit_is_not_sent() -> None:
    fun = Counted(sphere_function)
    oracle = Oracle(fun, 15)
    oracle(query())
    with pytest.raises(zm.errors.BudgetError, match=r"at most 5 more queries \(budget 15\), got 10: nothing was sent"):
        oracle(query())
    assert fun.rows == 10
    assert len(oracle(query(m=4))) == 5, "what still fits is sent"
    assert fun.rows == 15


def test_a_ledger_with_a_cap_refuses_before_sending() -> None:
    fun = Counted(sphere_function)
    oracle = Oracle(fun, 100, ledger=MemoryLedger(max_sent=25))
    oracle(query())
    oracle(query())
    with pytest.raises(zm.errors.BudgetError, match="send at most 25 queries, but 20 were sent and 10 more are needed"):
        oracle(query())
    assert fun.rows == 20


class Flaky:
    """Fails at the calls that are named, counting from 1."""

    def __init__(self, *failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self, points: Any) -> Any:
        self.calls += 1
        if self.calls in self.failures:
            raise RuntimeError(f"call {self.calls} failed")
        return sphere_function(points)


def test_an_exception_is_chained_and_names_the_rows() -> None:
    oracle = Oracle(Flaky(3), 100)
    oracle(query())  # rows 0 to 9
    blocks_of_four = query(max_block_bytes=4 * 4 * 8)  # rows 10 to 13, then 14 to 17
    with pytest.raises(
        zm.errors.OracleError, match=r"raised RuntimeError: call 3 failed \(queries 14 to 17 of the run"
    ) as e:
        oracle(blocks_of_four)
    assert isinstance(e.value.__cause__, RuntimeError)
    assert e.value.rows == range(14, 18)
    assert (oracle.ledger.used, oracle.ledger.sent) == (14, 18)


def test_retry_sends_the_same_rows_again_and_counts_them() -> None:
    fun = Flaky(1, 2)
    oracle = Oracle(fun, 10, on_error=zm.Retry(2))
    assert oracle(query()).tobytes() == Oracle(sphere_function, 10)(query()).tobytes()
    assert (oracle.ledger.used, oracle.ledger.sent, fun.calls) == (10, 30, 3)


def test_retry_gives_up_after_its_times() -> None:
    fun = Flaky(1, 2, 3)
    with pytest.raises(zm.errors.OracleError, match=r"call 3 failed.*attempt 3 of 3"):
        Oracle(fun, 10, on_error=zm.Retry(2))(query())
    assert fun.calls == 3


def test_rows_are_counted_by_what_was_used() -> None:
    oracle = Oracle(Flaky(1, 3, 4), 100, on_error=zm.Retry(1))
    oracle(query())  # sent twice, used once
    with pytest.raises(zm.errors.OracleError, match=r"queries 10 to 19 of the run, attempt 2 of 2") as caught:
        oracle(query())
    assert caught.value.rows == range(10, 20)
    assert (oracle.ledger.used, oracle.ledger.sent) == (10, 40)


def test_retry_stops_at_the_cap() -> None:
    fun = Flaky(1, 2, 3)
    with pytest.raises(zm.errors.BudgetError, match="but 20 were sent and 10 more"):
        Oracle(fun, 10, ledger=MemoryLedger(29), on_error=zm.Retry(5))(query())
    assert fun.calls == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_not_an_error_of_the_function(stop: type[BaseException]) -> None:
    def fun(points: Any) -> Any:
        raise stop

    with pytest.raises(stop):
        Oracle(fun, 10, on_error=zm.Retry(3))(query())


@pytest.mark.parametrize(
    "answer",
    [
        np.arange(4.0),
        np.arange(4),
        np.arange(4, dtype=np.float16),
        np.array([True, False, True, True]),
        [1, 2.5, 3, 4],
        (1, 2, 3, 4),
        np.arange(4, dtype=np.longdouble),
        np.arange(8.0)[::2],
    ],
    ids=str,
)
def test_real_numbers_of_any_kind_are_taken(answer: Any) -> None:
    values = checked_values(answer, 4)
    assert values.dtype == np.float64
    assert values.tolist() == [float(v) for v in answer]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (np.ones((4, 10)), r"shape \(4,\), got \(4, 10\): return one number per row"),
        (np.ones((4, 1)), r"shape \(4,\), got \(4, 1\)"),
        (np.ones(3), r"shape \(4,\), got \(3,\)"),
        (1.0, r"shape \(4,\), got \(\)"),
        ([], r"shape \(4,\), got \(0,\)"),
        (np.ones(4, complex), "real numbers, got dtype complex128: return one float per row"),
        (np.array([1, None, 2, 3], object), "real numbers, got dtype object"),
        (["a"] * 4, "real numbers, got dtype <U1"),
        ([b"a"] * 4, r"real numbers, got dtype \|S1"),
        (None, "real numbers, got dtype object"),
        ({"a": 1}, "real numbers, got dtype object"),
        (np.ones(4, "datetime64[s]"), "real numbers, got dtype datetime64"),
        ([[1], [1, 2], 3, 4], "got a ragged sequence"),
    ],
    ids=str,
)
def test_anything_else_is_refused_in_one_sentence(answer: Any, sentence: str) -> None:
    with pytest.raises(zm.errors.OracleError, match=sentence) as caught:
        checked_values(answer, 4, first=20)
    assert caught.value.rows == range(20, 24)
    with pytest.raises(zm.errors.OracleError, match=sentence):
        Oracle(lambda points: answer, 10)(query(m=3))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (np.ones(2), r"one number for one point, got shape \(2,\)"),
        (None, "dtype object"),
        ("1.0", "dtype <U3"),
        (1j, "dtype complex128"),
    ],
    ids=str,
)
def test_wrong_answers_for_one_point(answer: Any, sentence: str) -> None:
    with pytest.raises(zm.errors.OracleError, match=sentence):
        Oracle(lambda x: answer, 10, vectorized=False)(query())


def test_nonfinite_values_pass_and_are_named() -> None:
    values = Oracle(lambda points: np.where(np.arange(len(points)) > 2, np.nan, 1.0), 10)(query())
    assert nonfinite_rows(values) == "nan in rows 3, 4, 5, 6, 7 and 2 more of the batch"
    assert nonfinite_rows(np.array([1.0, -np.inf])) == "-inf in row 1 of the batch"
    assert nonfinite_rows(np.ones(3)) == ""


# --- memory that is lent to the function -------------------------------------------------------------------------


@pytest.mark.parametrize("vectorized", [True, False])
def test_the_input_is_read_only(vectorized: bool) -> None:
    def fun(points: Any) -> Any:
        with pytest.raises(ValueError, match="read-only"):
            points[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            points.flags.writeable = True
        return sphere_function(points)

    Oracle(fun, 10, vectorized=vectorized)(query())


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("keep", [lambda p: p, lambda p: p[..., 1:], lambda p: p.T, lambda p: memoryview(p)])
def test_points_that_are_kept_do_not_change(vectorized: bool, keep: Any) -> None:
    kept: list[tuple[Any, Any]] = []

    def fun(points: Any) -> Any:
        part = keep(points)
        kept.append((part, np.array(part)))
        return sphere_function(points)

    oracle = Oracle(fun, 10_000, vectorized=vectorized)
    for t in range(5):
        oracle(query(t=t, max_block_bytes=3 * 4 * 8))
    assert len(kept) == (50 if vectorized is False else 20)
    for part, then in kept:
        assert (np.asarray(part) == then).all()


def test_memory_is_reused_when_nothing_is_kept() -> None:
    places = set()

    def fun(points: Any) -> Any:
        places.add(points.__array_interface__["data"][0])
        return sphere_function(points)

    oracle = Oracle(fun, 10_000)
    for t in range(20):
        oracle(query(t=t))
    [place] = places
    assert place % 64 == 0, "it begins on a line of the cache"


def test_answers_may_be_views_of_the_points() -> None:
    oracle = Oracle(lambda points: points[:, 0], 100)
    first = oracle(query(t=0))
    kept = first.copy()
    oracle(query(t=1))
    assert (first == kept).all()


@pytest.mark.parametrize("times", [0, -1])
def test_retry_needs_a_positive_number(times: int) -> None:
    with pytest.raises(zm.errors.ArgumentError, match=f"expected times >= 1, got {times}"):
        zm.Retry(times)


@pytest.mark.parametrize(("budget", "error"), [(0, ValueError), (-3, ValueError), (1.5, TypeError), (True, TypeError)])
def test_an_oracle_needs_a_budget(budget: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="expected budget"):
        Oracle(sphere_function, budget)
