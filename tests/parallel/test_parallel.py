"""Units over workers: bitwise what one process does, whoever dies, and nothing spent twice."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.units import INPUTS, OPTIONS, Model, Struck, bits, lines, note, square
from zomirror.errors import ArgumentError, ArgumentTypeError, BusyError, OracleError
from zomirror.parallel import Team, Workers, spread
from zomirror.parallel.unit import Outcome, Unit, Work, run_unit, this_process


def told(outcomes: Any) -> list[Any]:
    """The outcomes in order, exceptions by what they say; each task must have exactly one."""
    found = sorted(outcomes, key=lambda pair: pair[0])
    assert [i for i, _ in found] == list(range(len(found)))
    return [repr(one) if isinstance(one, Exception) else one for _, one in found]


SQUARES = [0, 1, 4, "ValueError('three')", 16, 25]


# --- every kind of workers does what one process does ---------------------------------------------------------------


@pytest.mark.parametrize("workers", [None, 1, map, ThreadPoolExecutor(2), Workers(map, deadline=60)])
def test_outcomes_are_those_of_the_function(workers: Any) -> None:
    assert told(spread(square, range(6), workers=workers)) == SQUARES
    assert list(spread(square, [], workers=workers)) == []


def test_processes_do_the_same() -> None:
    spawned = get_context("spawn")
    with ProcessPoolExecutor(1, spawned) as executor, spawned.Pool(1) as pool, Team(2) as team:
        assert told(spread(square, range(6), workers=executor)) == SQUARES
        assert told(spread(square, range(6), workers=pool.map)) == SQUARES
        assert told(team.spread(square, range(6))) == SQUARES
        offset = 7  # a function that no module holds, with what it refers to
        assert told(team.spread(lambda x: x + offset, range(3))) == [7, 8, 9]
        assert told(team.spread(unsendable, range(2))) == [
            "1",
            "WorkerError(\"the outcome of a worker's task cannot be sent back: its result cannot be sent: "
            "TypeError: cannot pickle '_thread.lock' object\")",
        ]
        assert told(team.spread(raising, range(1))) == [
            "WorkerError(\"the outcome of a worker's task cannot be sent back: Odd: 1 and 2 (its outcome could "
            'not be unpickled here: TypeError)")'
        ]
        # the same process serves one round after the other
        pids = {pid for _, pid in team.spread(process_id, range(8))}
        assert len(pids) <= 2
        assert os.getpid() not in pids
        assert pids >= {pid for _, pid in team.spread(process_id, range(8))}


def process_id(_: int) -> int:
    return os.getpid()


def unsendable(x: int) -> Any:
    return threading.Lock() if x else "1"


class Odd(Exception):  # noqa: N818
    """One that pickle cannot make again."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raising(_: int) -> None:
    raise Odd(1, 2)


def reopened(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))  # noqa: S301


def test_an_error_keeps_what_it_carries() -> None:
    error = reopened(Outcome(error=OracleError("no", rows=range(3, 5), result=7))).error
    assert (str(error), error.rows, error.result) == ("no", range(3, 5), 7)


def test_a_task_that_a_worker_cannot_open_says_so() -> None:
    unit = reopened(Unit(Work(square), Unopenable(), "ticket"))
    assert "install the same packages and modules there" in str(run_unit(unit).error)


class Unopenable:
    def __reduce__(self) -> Any:
        return int, ("not a number",)


def test_a_function_is_opened_once_in_a_process() -> None:
    work = Work(Opened())
    Opened.count = 0
    for ticket in "abc":
        assert run_unit(reopened(Unit(work, 2, ticket))).value == 4
    assert Opened.count == 1


class Opened:
    count = 0

    def __setstate__(self, _: Any) -> None:
        Opened.count += 1

    def __getstate__(self) -> dict[str, int]:
        return {"some": 1}

    def __call__(self, x: int) -> int:
        return x * x


def test_a_ticket_lets_a_unit_in_once_and_into_its_process_only() -> None:
    work = Work(square)
    assert run_unit(Unit(work, 2, "one", this_process())).value == 4
    assert run_unit(Unit(work, 2, "one", this_process())).refused
    assert run_unit(Unit(work, 2, "two", f"{os.getpid()}-of another life")).refused


def test_tickets_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zomirror.parallel.unit._REMEMBERED", 3)
    monkeypatch.setattr("zomirror.parallel.unit._seen", {})
    work = Work(square)
    assert not any(run_unit(Unit(work, 2, ticket)).refused for ticket in "abcde")
    assert [run_unit(Unit(work, 2, ticket)).refused for ticket in "edc"] == [True, True, True]
    assert not run_unit(Unit(work, 2, "a")).refused


@pytest.mark.parametrize(
    ("workers", "error", "message"),
    [
        (0, ArgumentError, "expected workers"),
        (-2, ArgumentError, "expected workers"),
        (True, ArgumentTypeError, "expected workers, got True: give a number"),
        (2.5, ArgumentTypeError, "expected workers, got 2.5"),
        ("4", ArgumentError, "expected workers 'dask://host:port', got '4'"),
        ("tcp://127.0.0.1:1", ArgumentError, "expected workers 'dask://host:port'"),
        ("dask://", ArgumentError, "expected workers 'dask://host:port'"),
    ],
)
def test_other_workers_are_refused_before_anything_is_asked(
    workers: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    model = Model(tmp_path / "log")
    for call in (
        lambda: spread(square, range(3), workers=workers),
        lambda: zm.explain_many(model, INPUTS, workers=workers, run_dir=tmp_path / "run", **OPTIONS),
        lambda: zm.minimize(np.sum, np.zeros(3), workers=workers, run_dir=tmp_path / "run"),
    ):
        with pytest.raises(error, match=message):
            call()
    assert list(tmp_path.iterdir()) == []


def test_patience_is_checked() -> None:
    for wrong in ({"deadline": 0}, {"silence": -1}, {"attempts": 0}):
        with pytest.raises(ArgumentError):
            Workers(2, **wrong)
    assert Workers(-1).count == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    "where", [2, "dask://127.0.0.1:1", map, ThreadPoolExecutor(1)], ids=["2", "dask", "map", "own"]
)
def test_workers_of_every_kind_have_a_deadline(where: Any) -> None:
    """A worker that hangs cannot be told from a slow one by anything else."""
    assert Workers(where).patience == 86_400.0
    assert Workers(where, deadline=600).patience == 600.0


def test_a_function_that_cannot_travel_is_refused() -> None:
    lock = threading.Lock()
    with pytest.raises(ArgumentTypeError, match="expected a function that can be pickled"):
        list(spread(lambda x: (lock, x), range(3), workers=2))


# --- workers die, stop and hang ---------------------------------------------------------------------------------


def test_one_dies_and_one_is_stopped_and_all_is_done(tmp_path: Path) -> None:
    function = Struck(tmp_path / "log", {1: "SIGKILL", 4: "SIGSTOP", 6: "always SIGKILL"})
    found = told(spread(function, range(7), workers=Workers(2, silence=1, attempts=2), again=True))
    assert found[:6] == [0, 1, 4, 9, 16, 25]
    assert "unit 6 was given up: its worker was lost (TerminatedWorkerError) (start 2 of 2)" in found[6]
    assert sorted(function.starts) == [0, 1, 1, 2, 3, 4, 4, 5, 6, 6]
    assert not any(alive(int(line.split()[1])) for line in lines(function.log))


def test_a_worker_that_is_stopped_while_it_starts_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(_: int) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    monkeypatch.setattr("zomirror.parallel.local._begin", begin)
    monkeypatch.setattr("zomirror.parallel.local.LocalSlot.start_time", 1.0)
    [found] = told(spread(square, range(1), workers=Workers(2, silence=1)))
    assert "its worker has not started" in found


def test_waiting_for_a_journal_takes_none_of_the_starts(tmp_path: Path) -> None:
    function = BusyThenKilled(tmp_path / "log")
    assert told(spread(function, range(2), workers=Workers(2, silence=5, attempts=2), again=True)) == [0, 1]
    assert len(lines(function.log)) == 6


@dataclass(frozen=True)
class BusyThenKilled:
    """Squares, but for 1: its journal is held by somebody three times, then its process dies, then it is done."""

    log: Path

    def __call__(self, x: int) -> int:
        note(self.log, str(x))
        starts = lines(self.log).count("1")
        if x == 1 and starts <= 3:
            raise BusyError("somebody else has it")
        if x == 1 and starts == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return x * x


def test_what_was_given_up_tells_what_it_has_spent(tmp_path: Path) -> None:
    model = Model(tmp_path / "log", after=(("SIGKILL", 100),))
    kept: dict[str, Any] = {"run_dir": tmp_path / "run", "workers": Workers(2, attempts=1)}
    found = zm.explain_many(model, INPUTS, **OPTIONS, **kept)
    members = zm.runs.inspect(tmp_path / "run").members
    assert [(one.used, one.sent) for one in found] == [(one.used, one.sent) for one in members]
    assert [one.status for one in found].count(zm.Status.ERROR) == 1
    assert len(lines(model.log)) == sum(one.sent for one in found)


def test_what_no_journal_holds_is_not_begun_again(tmp_path: Path) -> None:
    function = Struck(tmp_path / "log", {1: "SIGKILL", 2: "SIGSTOP", 3: "sleep"})
    found = told(spread(function, range(5), workers=Workers(2, silence=1, deadline=6)))
    assert (
        "its worker was lost (TerminatedWorkerError), and without a journal the queries that it has spent are unknown"
        in found[1]
    )
    assert "its worker was stopped" in found[2]
    assert "it took longer than its deadline of 6 s" in found[3]
    assert [found[0], found[4]] == [0, 16]
    assert sorted(function.starts) == [0, 1, 2, 3, 4]
    assert not any(alive(int(line.split()[1])) for line in lines(function.log))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_executors_of_others_have_a_deadline_too() -> None:
    go = threading.Event()
    executor = ThreadPoolExecutor(2)
    try:
        found = told(spread(lambda x: go.wait(60) if x == 1 else x, range(4), workers=Workers(executor, deadline=1)))
        assert [found[0], found[2], found[3]] == [0, 2, 3]
        assert "deadline of 1 s" in found[1]
        # when no worker is left, the rest is not waited for
        found = told(spread(lambda x: go.wait(60), range(4), workers=Workers(executor, deadline=1, silence=1)))
        assert "deadline of 1 s" in found[0]
        assert "its worker has not begun it" in found[1]  # the other thread still waits for the unit above
        assert all("there has been no worker for 1 s" in one for one in found[2:])
    finally:
        go.set()
        executor.shutdown()


def test_an_answer_that_comes_too_late_is_not_heard() -> None:
    go = threading.Event()

    def late(x: int) -> int:
        if x == 0:
            go.wait(60)
        elif x == 3:
            time.sleep(3)  # by now unit 0 has been given up
            go.set()
            time.sleep(1)  # and here it answers
        return x

    with ThreadPoolExecutor(3) as executor:
        found = told(spread(late, range(4), workers=Workers(executor, deadline=1.5), again=True))
    assert "deadline of 1.5 s" in found[0]
    assert found[1:3] == [1, 2]


def test_a_map_that_never_comes_back_is_left() -> None:
    go = threading.Event()

    def hanging(function: Any, tasks: Any) -> Any:
        yield from map(function, tasks[:2])
        go.wait(60)

    began = time.monotonic()
    found = told(spread(square, range(4), workers=Workers(hanging, deadline=0.2)))
    go.set()
    assert found[:2] == [0, 1]
    assert all("no result within" in one for one in found[2:])
    assert time.monotonic() - began < 20


def test_a_broken_pool_and_a_pool_of_another_kind_are_told(tmp_path: Path) -> None:
    struck = Struck(tmp_path / "log", {0: "SIGKILL"})
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        found = told(spread(struck, range(3), workers=Workers(executor, silence=1), again=True))
    assert all("WorkerError" in one for one in found)
    assert struck.starts == [0]

    class Foreign:
        def submit(self, *_: Any) -> str:
            return "later"

    with pytest.raises(ArgumentTypeError, match=r"submit\(\) returns a concurrent.futures.Future, got str"):
        list(spread(square, range(3), workers=Foreign()))


class Returning(Executor):
    """An executor that gives back the first unit it gets."""

    def __init__(self) -> None:
        self.given = 0

    def submit(self, function: Any, /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.given += 1
        if self.given == 1:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_result(function(*args))
        return future


def test_a_unit_that_was_given_back_is_begun_again_only_with_a_journal() -> None:
    assert told(spread(square, range(3), workers=Returning(), again=True)) == [0, 1, 4]
    found = told(spread(square, range(3), workers=Returning()))
    assert "its worker gave it back" in found[0]
    assert found[1:] == [1, 4]


def test_a_journal_in_use_is_waited_for_and_not_for_ever() -> None:
    tried: list[int] = []

    def busy(x: int) -> int:
        tried.append(x)
        if tried.count(x) < 3 or x == 1:
            raise BusyError("in use")
        return x

    with ThreadPoolExecutor(1) as executor:
        found = told(spread(busy, range(3), workers=Workers(executor, silence=1, deadline=2), again=True))
        assert found == [0, "BusyError('in use')", 2]
        assert told(spread(busy, [1], workers=executor)) == ["BusyError('in use')"]


def test_a_stop_begins_nothing_more(tmp_path: Path) -> None:
    function = Struck(tmp_path / "log", {0: "sleep"})
    stop = threading.Event()
    outcomes = spread(function, range(9), workers=Workers(2, silence=30), stop=stop.is_set)
    found = [next(outcomes), next(outcomes)]
    stop.set()
    found += list(outcomes)
    assert 0 not in [one for _, one in found if not isinstance(one, Exception)]
    assert len(found) < 9
    assert len(function.starts) < 9


def test_workers_do_not_outlive_the_process_that_wanted_them(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nfrom tests.support.units import Struck\nfrom zomirror.parallel import spread\n"
        f"list(spread(Struck(Path({str(tmp_path / 'log')!r}), {{0: 'sleep', 1: 'sleep'}}), range(2), workers=2))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 60
    while len(lines(tmp_path / "log")) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    parent.kill()
    parent.wait()
    pids = [int(line.split()[1]) for line in lines(tmp_path / "log")]
    assert len(pids) == 2
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(alive, pids))


# --- the batches of one run -------------------------------------------------------------------------------------


def chunky(points: Any) -> Any:
    """A function whose last bits depend on which rows it is given together."""
    return (points.astype(np.float32) @ np.linspace(0, 1, points.shape[1], dtype=np.float32)) ** 2 + len(points) * 1e-9


def rough(points: Any, samples: Any) -> Any:
    return np.square(points).sum(axis=1) + np.sin(samples * 1.0)


def one_by_one(point: Any) -> float:
    return float(point @ point)


def minimized(fun: Any, **options: Any) -> tuple[Any, ...]:
    given: dict[str, Any] = {
        "l1": 0.1,
        "bounds": (0, 1),
        "budget": 200,
        "rng": 0,
        "method": zm.methods.zo_ada_expmd(20),
    }
    result = zm.minimize(fun, np.full(30, 0.5), **(given | options))
    return result.x.tobytes(), result.fun, result.nfev, result.sent, result.history.fun.tobytes()


@pytest.mark.parametrize(
    ("fun", "options"),
    [(chunky, {}), (rough, {"stochastic": True}), (one_by_one, {"vectorized": False})],
    ids=["vectorized", "stochastic", "one by one"],
)
def test_blocks_and_not_workers_decide_the_bits(fun: Any, options: dict[str, Any]) -> None:
    expected = minimized(fun, block_rows=4, **options)
    for count in (1, 2, 3, 7):
        with ThreadPoolExecutor(count) as executor:
            assert minimized(fun, block_rows=4, workers=executor, **options) == expected
    assert minimized(fun, workers=map, **options) == minimized(fun, workers=1, **options)
    if fun is chunky:
        assert minimized(fun) != expected  # else nothing was shown
        assert minimized(fun, block_rows=4, workers=2) == expected


class Backwards(Executor):
    """An executor that answers the last of what it was given first."""

    def __init__(self) -> None:
        self.given: list[tuple[Future[Any], Any, Any]] = []

    def submit(self, function: Any, /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if not self.given:
            threading.Timer(0.05, self._answer).start()
        self.given.append((future, function, args))
        return future

    def _answer(self) -> None:
        given, self.given = self.given, []
        for future, function, args in reversed(given):
            future.set_result(function(*args))


def test_the_order_of_the_answers_decides_nothing(tmp_path: Path) -> None:
    assert minimized(chunky, block_rows=4, workers=Backwards()) == minimized(chunky, block_rows=4)
    expected = bits(zm.explain_many(Model(tmp_path / "serial"), INPUTS, **OPTIONS))
    assert bits(zm.explain_many(Model(tmp_path / "log"), INPUTS, workers=Backwards(), **OPTIONS)) == expected


def test_the_function_sees_blocks_of_the_given_size_that_it_cannot_write_into() -> None:
    sizes = []

    def fun(points: Any) -> Any:
        sizes.append(len(points))
        with pytest.raises(ValueError, match="read-only"):
            points[0] = 0
        return np.square(points).sum(axis=1)

    minimized(fun, block_rows=8, budget=43, workers=1)
    assert sizes == [8, 8, 5, 8, 8, 5, 1]


def test_a_durable_run_may_change_its_workers(tmp_path: Path) -> None:
    x, fun, nfev, sent, history = minimized(chunky, block_rows=4)
    assert minimized(chunky, block_rows=4, workers=map, maxiter=3, run_dir=tmp_path / "run")[2] < nfev
    with ThreadPoolExecutor(3) as executor:
        found = minimized(chunky, block_rows=4, workers=executor, run_dir=tmp_path / "run")
    assert found == (x, fun, nfev, sent + 1, history)  # the first call ended with a measurement of its own


def test_the_first_failing_row_is_the_one_that_is_told() -> None:
    def fun(points: Any) -> Any:
        if points[0, 0] != points[0, 1]:
            raise ValueError(f"{len(points)} rows")
        return np.zeros(len(points))

    with ThreadPoolExecutor(3) as executor, pytest.raises(OracleError, match="ValueError: 5 rows") as caught:
        minimized(fun, block_rows=5, workers=executor)
    assert caught.value.rows == range(21)
    with pytest.raises(OracleError, match=r"expected values of shape \(5,\), got \(1,\)"):
        minimized(lambda points: np.zeros(1), block_rows=5, workers=1)


def test_a_lost_worker_is_an_error_of_the_function_and_a_retry_counts(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match="WorkerError: unit 0 was given up: its worker gave it back"):
        minimized(chunky, workers=Returning())
    given: dict[str, Any] = {
        "budget": 90,
        "method": zm.methods.zo_ada_expmd(20),
        "rng": 0,
        "workers": 2,
        "block_rows": 7,
    }
    fun = Margin(Model(tmp_path / "log", (("SIGKILL", 30),)))
    result = zm.minimize(fun, INPUTS[0], on_error=zm.Retry(1), max_sent=200, **given)
    assert result.sent - result.nfev == 21
    assert len(lines(tmp_path / "log")) <= result.sent


class Margin:
    """A number per row of what a model scores."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, points: Any) -> Any:
        return self.model(points)[:, 0]


# --- whole explanations ---------------------------------------------------------------------------------------------


def test_explanations_are_the_same_for_any_workers(tmp_path: Path) -> None:
    model = Model(tmp_path / "log")
    expected = bits(zm.explain_many(model, INPUTS, **OPTIONS))
    asked = sorted(lines(tmp_path / "log"))
    for i, count in enumerate((1, 2, 3, 7)):
        again = Model(tmp_path / f"log-{count}")
        run: dict[str, Any] = {"run_dir": tmp_path / f"run-{count}"} if i % 2 else {}
        with ThreadPoolExecutor(count) as executor:
            assert bits(zm.explain_many(again, INPUTS, workers=executor, **OPTIONS, **run)) == expected
        assert sorted(lines(again.log)) == asked


def test_a_killed_and_a_stopped_worker_cost_nothing_twice(tmp_path: Path) -> None:
    """The one is killed before the model has counted its batch, the other is stopped when it has."""
    expected = bits(zm.explain_many(Model(tmp_path / "serial"), INPUTS, **OPTIONS))
    model = Model(tmp_path / "log", (("SIGKILL", 200),), (("SIGSTOP", 500),))
    options = OPTIONS | {"run_dir": tmp_path / "run", "max_sent": 600, "workers": Workers(2, silence=2)}
    found = zm.explain_many(model, INPUTS, **options)
    assert bits(found) == expected
    serial, seen = Counter(lines(tmp_path / "serial")), Counter(lines(model.log))
    used, sent = sum(one.nfev for one in found), sum(one.sent for one in found)
    twice = seen - serial  # the batch in flight when its worker was stopped: sent again, and in the ledger
    assert serial <= seen
    assert used == serial.total() < seen.total() < sent
    assert 0 < twice.total() <= max(one.sent - one.nfev for one in found)
    before = len(lines(model.log))
    assert bits(zm.explain_many(model, INPUTS, **options)) == expected
    assert len(lines(model.log)) == before  # a finished run asks nothing


def test_without_a_run_the_input_of_a_lost_worker_is_an_error(tmp_path: Path) -> None:
    expected = bits(zm.explain_many(Model(tmp_path / "serial"), INPUTS, **OPTIONS))
    found = zm.explain_many(Model(tmp_path / "log"), INPUTS, workers=Returning(), **OPTIONS)
    assert found[0].status is zm.Status.ERROR
    assert (
        "its worker gave it back, and without a journal the queries that it has spent are unknown" in found[0].message
    )
    assert bits(found[1:]) == expected[1:]


def test_a_signal_ends_the_workers_cleanly_and_the_same_call_goes_on(tmp_path: Path) -> None:
    expected = bits(zm.explain_many(Model(tmp_path / "serial"), INPUTS, **OPTIONS))
    code = (
        "import sys\nfrom pathlib import Path\nimport zomirror as zm\n"
        "from tests.support.units import INPUTS, OPTIONS, Model\n"
        "model = Model(Path(sys.argv[1]), pause=0.02)\n"
        "found = zm.explain_many(model, INPUTS, workers=2, run_dir=sys.argv[2], **OPTIONS)\n"
        "print(sum(one.status is zm.Status.INTERRUPTED for one in found))\n"
    )
    args = [sys.executable, "-c", code, str(tmp_path / "log"), str(tmp_path / "run")]
    process = subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while len(lines(tmp_path / "log")) < 200 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert int(out) >= 1
    model = Model(tmp_path / "log")
    found = zm.explain_many(model, INPUTS, workers=1, run_dir=tmp_path / "run", **OPTIONS)
    assert bits(found) == expected
    assert sum(one.sent for one in found) == sum(one.nfev for one in found) == len(lines(model.log))
    assert sorted(lines(model.log)) == sorted(lines(tmp_path / "serial"))
