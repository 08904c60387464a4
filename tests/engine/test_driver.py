"""The engine: counts, refuses before overspending, checks what comes back, gives memory that cannot be misused."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.conftest import Counted, sphere_function
from zomirror.engine.black_box import BlackBox, PointBuffer, call, checked_values, nonfinite_rows
from zomirror.engine.driver import drive, drive_many
from zomirror.engine.ledger import JournalLedger, MemoryLedger
from zomirror.engine.request import Interrupted, Job, Request, Search
from zomirror.engine.retry import attempts_of
from zomirror.errors import ArgumentError, BudgetError, OracleError
from zomirror.methods.query import Query
from zomirror.numerics.random import key_of
from zomirror.runs.directory import RunDirectory


class Oracle:
    """A function asked through the engine, one query a call, with one ledger for all."""

    def __init__(
        self, fun: Any, max_sent: int | None = None, *, vectorized: bool = True, on_error: Any = "raise"
    ) -> None:
        self.ledger, self.buffer = MemoryLedger(max_sent), PointBuffer()
        self.box = BlackBox(partial(call, fun, vectorized=vectorized), attempts=attempts_of(on_error))

    def __call__(self, query: Query) -> Any:
        def search() -> Search[Any]:
            return (yield Request(query, checked_values))

        return drive(Job(search(), self.ledger, buffer=self.buffer), self.box)


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
    with pytest.raises(zm.errors.BudgetError, match="send at most 15 queries, but 10 were sent and 10 more are needed"):
        oracle(query())
    assert fun.rows == 10
    assert len(oracle(query(m=4))) == 5, "what still fits is sent"
    assert fun.rows == 15


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
    oracle = Oracle(fun, on_error=zm.Retry(2))
    assert oracle(query()).tobytes() == Oracle(sphere_function, 10)(query()).tobytes()
    assert (oracle.ledger.used, oracle.ledger.sent, fun.calls) == (10, 30, 3)


def test_retry_gives_up_after_its_times() -> None:
    fun = Flaky(1, 2, 3)
    with pytest.raises(zm.errors.OracleError, match=r"call 3 failed.*attempt 3 of 3"):
        Oracle(fun, on_error=zm.Retry(2))(query())
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
        Oracle(fun, 29, on_error=zm.Retry(5))(query())
    assert fun.calls == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_not_an_error_of_the_function(stop: type[BaseException]) -> None:
    def fun(points: Any) -> Any:
        raise stop

    with pytest.raises(stop):
        Oracle(fun, on_error=zm.Retry(3))(query())


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
        Oracle(lambda points: answer)(query(m=3))
    assert caught.value.rows == range(4)


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
    assert place % 64 == 0, "it begins on a cache line"


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


# --- several searches before one black box -----------------------------------------------------------------------


def asking(queries: list[Query], log: list[Any]) -> Search[list[Any]]:
    """A search that asks what it is given, and notes the errors thrown into it."""
    found = []
    for one in queries:
        try:
            found.append((yield Request(one, checked_values)).tolist())
        except (zm.errors.OracleError, zm.errors.BudgetError, Interrupted) as error:
            log.append(error)
            return found
    return found


@pytest.mark.parametrize("lockstep", [1, 2, 3, 7])
def test_searches_in_lockstep_are_answered_as_if_alone(lockstep: int) -> None:
    lists = [[query(m=3 + i, t=t) for t in range(i + 1)] for i in range(5)]
    expected = [[sphere_function(q.points()).tolist() for q in some] for some in lists]
    fun, ended = Counted(sphere_function), list[int]()
    jobs = [Job(asking(some, [])) for some in lists]
    found = drive_many(jobs, BlackBox(fun), lockstep=lockstep, done=lambda i, _: ended.append(i))
    assert found == expected
    assert sorted(ended) == list(range(5))
    rows = sum(len(q) for some in lists for q in some)
    assert fun.rows == rows == sum(job.ledger.used for job in jobs) == sum(job.ledger.sent for job in jobs)
    assert fun.calls < sum(map(len, lists)) or lockstep == 1


def test_of_a_joint_batch_that_fails_only_the_culprit_suffers() -> None:
    bad = query(m=4, t=1)
    poison = bad.points()[2]

    def fun(points: Any) -> Any:
        if (points == poison).all(axis=1).any():
            raise RuntimeError("poison")
        return sphere_function(points)

    logs: list[list[Any]] = [[], [], []]
    jobs = [Job(asking([q], log)) for q, log in zip([query(m=4), bad, query(m=4, t=2)], logs, strict=True)]
    found = drive_many(jobs, BlackBox(fun), lockstep=3)
    assert [len(one) for one in found] == [1, 0, 1]
    assert [len(log) for log in logs] == [0, 1, 0]
    assert "poison" in str(logs[1][0])
    assert [job.ledger.sent for job in jobs] == [10, 10, 10], "the joint batch was sent, and then each alone"
    assert [job.ledger.used for job in jobs] == [5, 0, 5]


def test_who_may_send_no_more_holds_up_nobody() -> None:
    logs: list[list[Any]] = [[], []]
    fun = Counted(sphere_function)
    poor = Job(asking([query(m=4), query(m=4, t=1)], logs[0]), MemoryLedger(7))
    rich = Job(asking([query(m=4), query(m=4, t=1)], logs[1]), MemoryLedger(70))
    found = drive_many([poor, rich], BlackBox(fun), lockstep=2)
    assert [len(one) for one in found] == [1, 2]
    assert isinstance(logs[0][0], zm.errors.BudgetError)
    assert (poor.ledger.sent, rich.ledger.sent, fun.rows) == (5, 10, 15)


def test_a_stop_interrupts_those_under_way_and_begins_no_other() -> None:
    logs: list[list[Any]] = [[], [], []]
    fun = Counted(sphere_function)
    jobs = [Job(asking([query(t=t) for t in range(9)], log)) for log in logs]
    found = drive_many(jobs, BlackBox(fun), lockstep=2, stop=lambda: fun.rows >= 40, unbegun=lambda i: [i])
    assert [len(one) for one in found] == [2, 2, 1]
    assert [type(log[0]).__name__ for log in logs[:2]] == ["Interrupted"] * 2
    assert found[2] == [2]
    assert fun.rows == 40


def test_an_exception_that_cannot_speak_is_told_all_the_same() -> None:
    class Mute(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise ValueError("no words")

    def fun(points: Any) -> Any:
        raise Mute

    with pytest.raises(zm.errors.OracleError, match=r"raised Mute: \(its message cannot be read: ValueError\)"):
        Oracle(fun)(query())


def test_an_error_in_one_search_loses_no_answer_of_the_others() -> None:
    def breaking() -> Search[list[Any]]:
        yield Request(query(m=4), checked_values)
        raise ZeroDivisionError

    jobs = [Job(breaking()), Job(asking([query(m=4), query(m=4, t=1)], []))]
    with pytest.raises(ZeroDivisionError):
        drive_many(jobs, BlackBox(sphere_function), lockstep=2)
    assert [job.ledger.used for job in jobs] == [5, 5], "what was answered is recorded"


def test_a_search_that_asks_for_no_rows_ends() -> None:
    """Nothing would ever count: the search is told once, and may end in its own way."""
    nothing = Request(Query(()), checked_values)

    def stubborn() -> Search[None]:
        while True:
            try:
                yield nothing
            except ArgumentError:
                continue

    def sensible() -> Search[str]:
        try:
            yield nothing
        except ArgumentError as error:
            return str(error)
        return "answered"

    box = BlackBox(sphere_function)
    with pytest.raises(ArgumentError, match="at least one row"):
        drive(Job(stubborn()), box)
    with pytest.raises(ArgumentError, match="at least one row"):
        drive_many([Job(stubborn()), Job(stubborn())], box, lockstep=2)
    assert "at least one row" in drive(Job(sensible()), box)


def test_an_answer_that_cannot_be_kept_is_lost_and_nothing_stays_in_flight(tmp_path: Path) -> None:
    """Whatever `keep` raises: the journal says that the batch is lost, and the next one can be sent."""
    ledger, q = JournalLedger(), query()

    def keep(answer: Any, rows: int) -> Any:
        raise ZeroDivisionError("no such answer")

    def search() -> Search[Any]:
        with pytest.raises(OracleError, match="cannot be used: ZeroDivisionError: no such answer") as caught:
            yield Request(q, keep)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert caught.value.rows == range(10)
        return (yield Request(q, checked_values))

    with RunDirectory.open(tmp_path / "run", {}, max_sent=20) as run:
        ledger.attach(run)
        values = drive(Job(search(), ledger), BlackBox(sphere_function))
        assert values.tolist() == sphere_function(q.points()).tolist()
        assert (run.used, run.sent, run.lost) == (10, 20, 10)


def test_a_joint_batch_that_fails_counts_twice_and_never_beyond_a_cap() -> None:
    """Each row was sent together with others and then alone. Who may not send again ends; the others go on."""
    sent = 0

    def alone_only(points: Any) -> Any:
        nonlocal sent
        sent += len(points)
        if len(points) > 10:
            raise RuntimeError("too many rows")
        return sphere_function(points)

    def search() -> Search[str]:
        try:
            for t in range(3):
                yield Request(query(t=t), checked_values)
        except BudgetError:
            return "no more"
        return "done"

    caps = [15, 35, 55, 60]
    ledgers = [MemoryLedger(cap) for cap in caps]
    found = drive_many([Job(search(), ledger) for ledger in ledgers], BlackBox(alone_only), lockstep=4)
    assert found == ["no more", "no more", "no more", "done"]
    assert all(ledger.sent <= cap for ledger, cap in zip(ledgers, caps, strict=True))
    assert sum(ledger.sent for ledger in ledgers) == sent
