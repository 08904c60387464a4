"""minimize(run_dir=...) and Optimizer.open: whatever happens, the run that would have been, and no query too many."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.conftest import PRESETS, Counted, sphere_function
from zomirror.engine.black_box import BlackBox
from zomirror.engine.driver import drive_many
from zomirror.minimization import durable_minimization
from zomirror.result import MOST_ENTRIES
from zomirror.runs import inspect
from zomirror.runs import journal as journals
from zomirror.runs import record as records
from zomirror.runs.directory import RunDirectory
from zomirror.runs.folder import write_all

METHOD = zm.methods.zo_ada_expmd(10)  # eleven queries an iteration


class Crash(BaseException):
    """Nothing of ours catches it, as nothing catches a kill."""


class Dying:
    """f, which fails in its own way at the calls that it is told of; counts what it was asked."""

    def __init__(self, f: Callable[..., Any], at: Any, error: BaseException | type[BaseException] = Crash) -> None:
        self.f, self.at, self.error = Counted(f), at, error

    def __call__(self, points: Any, *rest: Any) -> Any:
        values = self.f(points, *rest)
        if self.f.calls in self.at:
            raise self.error
        return values


@pytest.fixture
def path() -> Iterator[Path]:
    """A run directory that is not there yet, in memory where there is some: many runs are made."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of its own inside it
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name) / "run"


def run(fun: Any = sphere_function, x0: Any = None, **options: Any) -> zm.Result:
    settled: dict[str, Any] = {"l1": 0.1, "l2": 0.1, "bounds": (0, 1), "method": METHOD, "rng": 0, "budget": 78}
    return zm.minimize(fun, np.full(6, 0.25) if x0 is None else x0, **(settled | options))


def bits(result: zm.Result) -> tuple[Any, ...]:
    """All of a result but the queries that were lost on the way."""
    h = result.history
    columns = [column.tobytes() for column in (h.nfev, h.fun, h.f, h.eta, h.stationarity, h.nnz)]
    numbers = np.array([result.fun, result.f, result.stationarity]).tobytes()
    return (result.x.dtype, result.x.tobytes(), numbers, result.nfev, result.nit, result.status, result.seed, *columns)


def always_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunDirectory, "checkpoint_due", property(lambda self: not self.replaying))


def noisy(points: Any, draws: Any) -> Any:
    return sphere_function(points) + 0.01 * np.sin(draws)


VARIANTS: dict[str, dict[str, Any]] = {
    **{f"{m.mirror}{m.step}": {"method": m} for m in PRESETS},
    "recommended": {"method": None},
    "float32": {"x0": np.full(6, 0.25, np.float32)},
    "recommended float32": {"method": None, "x0": np.full(6, 0.25, np.float32)},
    "stochastic": {"fun": noisy, "stochastic": True, "budget": 150},
    "best": {"returns": "best"},
    "random": {"returns": "random"},
    "one at a time": {"vectorized": False},
    "small blocks": {
        "method": zm.methods.MirrorDescent(
            zm.methods.Entropy(), zm.methods.TwoPoint(9, max_block_bytes=100), zm.methods.Adaptive()
        )
    },
    "target": {"target": 0.9},
    "maxiter": {"maxiter": 3},
}


# --- F13, F20: interrupted anywhere, the same run ------------------------------------------------------------------


@pytest.mark.parametrize("checkpoints", ["no checkpoint", "checkpoints"])
@pytest.mark.parametrize("name", VARIANTS)
def test_resumed_at_every_call_is_the_uninterrupted_run_bit_for_bit(
    path: Path, name: str, checkpoints: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if checkpoints == "checkpoints":
        always_checkpoint(monkeypatch)
    options = dict(VARIANTS[name])
    fun = options.pop("fun", sphere_function)
    counted = Counted(fun)
    whole = run(counted, **options)
    assert bits(run(fun, run_dir=path, **options)) == bits(whole)
    for k in range(1, counted.calls + 1, 1 if counted.calls < 20 else 7):
        shutil.rmtree(path)
        dying, rest = Dying(fun, {k}), Counted(fun)
        with pytest.raises(Crash):
            run(dying, run_dir=path, max_sent=1_000, **options)
        result = run(rest, run_dir=path, max_sent=1_000, **options)
        assert bits(result) == bits(whole)
        asked = dying.f.rows + rest.rows
        # one at a time, the batch in flight counts as sent although some of its points were not asked yet
        assert result.used == whole.nfev <= asked <= result.sent <= asked + (10 if "vectorized" in options else 0)
        info = inspect(path)
        assert (info.state, info.used, info.sent, info.lost) == ("finished", result.used, result.sent, result.lost)


def test_interrupted_at_every_batch_in_one_run(path: Path) -> None:
    dying = Dying(sphere_function, range(1, 15))
    for _ in range(14):
        with pytest.raises(Crash):
            run(dying, run_dir=path, max_sent=1_000)
    # every second batch was answered before the next was lost
    result = run(Counted(sphere_function), run_dir=path, max_sent=1_000)
    assert bits(result) == bits(run())
    assert result.lost == 14 * 11


def test_a_crash_between_the_last_answer_and_the_result_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def crash(*_: Any) -> None:
            raise Crash

        patch.setattr(RunDirectory, "finish", crash)
        with pytest.raises(Crash):
            run(run_dir=path)
    assert inspect(path).state == "interrupted"
    never = Counted(sphere_function)
    assert bits(run(never, run_dir=path)) == bits(run())
    assert never.rows == 0


def test_a_finished_run_is_not_run_again(path: Path) -> None:
    first, never = run(run_dir=path), Counted(sphere_function)
    again = run(never, run_dir=path)
    assert never.rows == 0
    assert bits(again) == bits(first)
    assert (again.message, again.sent, again.success) == (first.message, first.sent, first.success)
    assert not again.x.flags.writeable


def test_a_stored_result_that_is_damaged_is_made_again_from_the_journal(path: Path) -> None:
    first, never = run(run_dir=path), Counted(sphere_function)
    stored = (path / "result.json").read_bytes()
    for damage in (stored[:-20], stored.replace(b'"nit"', b'"nix"'), stored.replace(b'"BUDGET"', b'"BUDGED"')):
        (path / "result.json").write_bytes(damage)
        assert bits(run(never, run_dir=path)) == bits(first)
    (path / "result.npz").unlink()
    assert bits(run(never, run_dir=path)) == bits(first)
    assert never.rows == 0


def test_the_checkpoint_is_really_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    always_checkpoint(monkeypatch)
    with pytest.raises(Crash):
        run(Dying(sphere_function, {5}), run_dir=path, max_sent=100)
    seen: list[int] = []
    result = run(run_dir=path, max_sent=100, callback=lambda at: seen.append(at.nit))
    assert seen == [5, 6, 7], "four iterations came from the checkpoint, not from a replay"
    assert bits(result) == bits(run())


@pytest.mark.parametrize("damage", ["cut", "byte", "gone", "of another method", "lying"])
def test_a_checkpoint_that_cannot_be_used_is_replayed(path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F15."""
    always_checkpoint(monkeypatch)
    if damage in {"of another method", "lying"}:
        real = zm.Optimizer.snapshot
        lie = {"memory": np.ones(3)} if damage == "lying" else {}

        def snapshot(self: zm.Optimizer) -> Any:
            kept = real(self) | lie
            return kept if lie else {name: array for name, array in kept.items() if name != "pace"}

        monkeypatch.setattr(zm.Optimizer, "snapshot", snapshot)
    with pytest.raises(Crash):
        run(Dying(sphere_function, {5}), run_dir=path, max_sent=100)
    monkeypatch.undo()
    file = path / "checkpoint.npz"
    data = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "byte":
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    elif damage == "gone":
        file.unlink()
    seen: list[int] = []
    result = run(run_dir=path, max_sent=100, callback=lambda at: seen.append(at.nit))
    assert bits(result) == bits(run())
    # an array too many does no harm; what is missing or broken means a replay from the first value
    assert seen[0] == (5 if damage == "lying" else 1)


def test_a_checkpoint_beyond_a_smaller_end_is_not_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    always_checkpoint(monkeypatch)
    run(run_dir=path)
    short = run(run_dir=path, budget=34, max_sent=100)
    assert bits(short) == bits(run(budget=34))
    assert bits(run(run_dir=path, maxiter=2, max_sent=100)) == bits(run(maxiter=2))


# --- budgets, caps and the count on the other side -------------------------------------------------------------------


@pytest.mark.parametrize("budgets", [(23, 78), (34, 35, 100), (78, 89), (23, 24, 25, 26, 60)])
def test_a_larger_budget_continues_the_same_trajectory(path: Path, budgets: tuple[int, ...]) -> None:
    counted = Counted(sphere_function)
    for budget in budgets:
        result = run(counted, run_dir=path, budget=budget)
        assert result.status is zm.Status.BUDGET
        assert counted.rows == result.sent <= budget
    whole = run(budget=budgets[-1]).history.fun
    steps = len(result.history) - 1
    assert steps >= len(whole) - 2, "at most what the earlier ends cost is missing"
    assert result.history.fun[:steps].tobytes() == whole[:steps].tobytes()


def test_the_end_of_a_longer_run_is_where_an_interrupted_one_ends_too(path: Path) -> None:
    """What an earlier end measured counts from its own place on, before and after a crash."""
    run(run_dir=path, budget=23)
    shutil.copytree(path, path.with_name("other"))
    whole = run(run_dir=path, budget=78)
    for k in range(1, 6):
        other = path.with_name(f"other-{k}")
        shutil.copytree(path.with_name("other"), other)
        with pytest.raises(Crash):
            run(Dying(sphere_function, {k}), run_dir=other, budget=78, max_sent=1_000)
        assert bits(run(run_dir=other, budget=78, max_sent=1_000)) == bits(whole)


@pytest.mark.parametrize("max_sent", [1, 10, 11, 12, 22, 40, 77])
def test_max_sent_holds_through_crashes_and_what_is_left_is_a_prefix(path: Path, max_sent: int) -> None:
    """F21: the count on the other side."""
    fun = Dying(sphere_function, {2, 3, 5})
    for _ in range(6):
        try:
            result = run(fun, run_dir=path, max_sent=max_sent)
        except Crash:
            continue
        assert result.status is zm.Status.MAX_SENT
        assert not result.success
        assert fun.f.rows == result.sent == inspect(path).sent <= max_sent
        whole = run().history.fun
        assert result.history.fun.tobytes() == whole[: len(result.history)].tobytes()
    assert fun.f.rows <= max_sent
    assert bits(run(run_dir=path, max_sent=1_000)) == bits(run()), "a larger cap lets it end"


def test_budgets_around_one_iteration(path: Path) -> None:
    """F21."""
    for budget in (0, 1, 10, 11):
        never = Counted(sphere_function)
        with pytest.raises(zm.errors.ArgumentError, match="budget"):
            run(never, run_dir=path, budget=budget)
        assert never.rows == 0
        assert not path.exists()
    counted = Counted(sphere_function)
    assert bits(run(counted, run_dir=path, budget=12)) == bits(run(budget=12))
    assert counted.rows == 12


# --- faults of the function ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 4, 7, 8])
def test_a_function_that_raises_loses_its_batch_only(path: Path, k: int) -> None:
    """F1: first, middle, last iteration, and the last measurement."""
    fun = Dying(sphere_function, {k}, RuntimeError("the simulator fell over"))
    with pytest.raises(zm.errors.OracleError, match="the simulator fell over") as caught:
        run(fun, run_dir=path, max_sent=100)
    assert caught.value.result.status is zm.Status.ERROR
    assert caught.value.result.nit == min(k - 1, 7)
    rows = 1 if k == 8 else 11
    assert inspect(path).lost == rows
    result = run(fun, run_dir=path, max_sent=100)
    assert bits(result) == bits(run())
    assert fun.f.rows == result.sent == 78 + rows


def test_retries_are_in_the_ledger(path: Path) -> None:
    fun = Dying(sphere_function, {2, 5, 6}, RuntimeError("busy"))
    result = run(fun, run_dir=path, max_sent=200, on_error=zm.Retry(2))
    assert bits(result) == bits(run())
    assert fun.f.rows == result.sent == 78 + 33 == inspect(path).sent
    stubborn = Dying(sphere_function, range(100), RuntimeError("busy"))
    with pytest.raises(zm.errors.OracleError, match="attempt 3 of 3"):
        run(stubborn, run_dir=path.with_name("other"), max_sent=200, on_error=zm.Retry(2))
    assert stubborn.f.rows == inspect(path.with_name("other")).sent == 33


def test_retries_stop_at_max_sent(path: Path) -> None:
    fun = Dying(sphere_function, range(100), RuntimeError("busy"))
    result = run(fun, run_dir=path, max_sent=30, on_error=zm.Retry(10))
    assert result.status is zm.Status.MAX_SENT
    assert fun.f.rows == 22 == result.sent == inspect(path).sent


@pytest.mark.parametrize("answer", [np.zeros((11, 2)), np.zeros(3), "words", [1j] * 11])
def test_a_wrong_answer_is_lost_and_nothing_else(path: Path, answer: Any) -> None:
    """F3, F4."""
    broken = Counted(lambda points: answer if len(points) == 11 else sphere_function(points))
    with pytest.raises(zm.errors.OracleError, match="expected"):
        run(broken, run_dir=path)
    assert inspect(path).sent == broken.rows == 11
    assert bits(run(run_dir=path, max_sent=1_000)) == bits(run())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_end_the_run_once_and_for_all(path: Path, bad: float) -> None:
    """F2."""
    calls = Counted(sphere_function)

    def fun(points: Any) -> Any:
        values = calls(points)
        values[3] = bad if calls.calls == 4 else values[3]
        return values

    result = run(fun, run_dir=path)
    assert result.status is zm.Status.NONFINITE
    assert np.isfinite(result.x).all()
    assert calls.rows == result.sent == 44
    again = run(calls, run_dir=path)
    assert calls.rows == 44
    assert bits(again) == bits(result)
    assert bits(run(calls, run_dir=path, budget=500)) == bits(result), "the value is in the journal"


def test_refused_points_are_refused_again_after_a_crash(path: Path) -> None:
    def fun(points: Any) -> Any:
        values = sphere_function(points)
        return np.where(np.arange(len(values)) % 4 == 3, np.nan, values)

    whole = run(fun, nonfinite="refuse")
    with pytest.raises(Crash):
        run(Dying(fun, {4}), run_dir=path, nonfinite="refuse", max_sent=200)
    assert bits(run(fun, run_dir=path, nonfinite="refuse", max_sent=200)) == bits(whole)


def test_a_callback_that_fails_costs_nothing(path: Path) -> None:
    def callback(at: zm.result.Intermediate) -> None:
        if at.nit == 3:
            raise ZeroDivisionError

    counted = Counted(sphere_function)
    with pytest.raises(ZeroDivisionError):
        run(counted, run_dir=path, callback=callback)
    assert bits(run(counted, run_dir=path)) == bits(run())
    assert counted.rows == 78


# --- the configuration ---------------------------------------------------------------------------------------------

CHANGES: dict[str, dict[str, Any]] = {
    "l1": {"l1": 0.2},
    "l2": {"l2": 0.2},
    "method": {"method": zm.methods.zo_ada_expmd(11)},
    "seed": {"rng": 1},
    "x0": {"x0": np.full(6, np.nextafter(0.25, 1))},
    "x0.dtype": {"x0": np.full(6, 0.25, np.float32)},
    "upper": {"bounds": (0, 2)},
    "lower": {"bounds": (-1, 1)},
    "returns": {"returns": "best"},
    "target": {"target": -1.0},
    "nonfinite": {"nonfinite": "refuse"},
    "stochastic": {"stochastic": True},
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_configuration_is_refused_by_name(path: Path, name: str) -> None:
    first, never = run(run_dir=path), Counted(sphere_function)
    with pytest.raises(zm.errors.RunError, match=rf"{name}[\w.]* was .* and is now .*another run_dir"):
        run(never, run_dir=path, **CHANGES[name])
    assert never.rows == 0
    assert bits(run(never, run_dir=path)) == bits(first)


def test_without_a_seed_the_stored_one_goes_on(path: Path) -> None:
    with pytest.raises(Crash):
        run(Dying(sphere_function, {4}), run_dir=path, rng=None, max_sent=200)
    result = run(run_dir=path, rng=None, max_sent=200)
    assert bits(result) == bits(run(rng=result.seed))
    assert run(run_dir=path.with_name("other"), rng=None).seed != result.seed


def test_a_method_that_cannot_be_named_is_refused_before_the_first_query(path: Path) -> None:
    class Nameless:
        init, ask, tell = METHOD.init, METHOD.ask, METHOD.tell

    never = Counted(sphere_function)
    with pytest.raises(zm.errors.ArgumentError, match="expected method to have a repr that names its parameters"):
        run(never, run_dir=path, method=Nameless())
    assert never.rows == 0


def test_the_directory_of_another_task_is_refused(path: Path) -> None:
    zm.Optimizer.open(path, np.full(6, 0.25), l1=0.1, l2=0.1, bounds=(0, 1), method=METHOD, rng=0).close()
    with pytest.raises(zm.errors.RunError, match='task was "ask and tell" and is now "minimize"'):
        run(run_dir=path)


# --- faults of the machine -------------------------------------------------------------------------------------------


def test_a_directory_that_cannot_be_written_is_refused_before_the_first_query(path: Path) -> None:
    """F17: one below a file, and one that is a device."""
    path.write_bytes(b"in the way")
    for where in (path, path / "below", Path("/dev/full")):
        never = Counted(sphere_function)
        with pytest.raises(zm.errors.RunError):
            run(never, run_dir=where)
        assert never.rows == 0
    with pytest.raises(zm.errors.ArgumentTypeError, match="run_dir"):
        run(run_dir=3)


def test_a_full_disk_stops_before_the_next_batch_and_loses_nothing(path: Path) -> None:
    """F16: the kernel refuses to let files grow beyond what the run needs after some batches."""
    code = (
        "import sys, signal, resource, numpy as np, zomirror as zm\n"
        "from tests.conftest import Counted, sphere_function\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))\n"
        "f = Counted(sphere_function)\n"
        "try:\n"
        "    method = zm.methods.zo_ada_expmd(10)\n"
        "    zm.minimize(f, np.full(6, 0.25), l1=0.1, l2=0.1, bounds=(0, 1), method=method, rng=0,\n"
        "                budget=780, run_dir=sys.argv[1])\n"
        "except zm.errors.RunError as error:\n"
        "    print(f.rows, error)\n"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    for limit in ("100", "20000"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(path), limit], capture_output=True, text=True, timeout=120, check=True
        )
        assert "largest file size" in done.stdout, done.stderr
        rows = int(done.stdout.split()[0])
        assert (rows > 0) == (limit == "20000")
        if rows:
            assert (inspect(path).used, inspect(path).sent) == (rows, rows)
    counted = Counted(sphere_function)
    assert bits(run(counted, run_dir=path, budget=780)) == bits(run(budget=780))
    assert counted.rows == run(budget=780).nfev - rows


def test_the_second_process_is_refused_by_name(path: Path) -> None:
    """F18, here with a second call inside the function of the first."""

    def fun(points: Any) -> Any:
        with pytest.raises(zm.errors.RunError, match=f"in use by process {os.getpid()}"):
            run(run_dir=path)
        return sphere_function(points)

    assert bits(run(fun, run_dir=path)) == bits(run())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_the_run_after_the_batch_in_flight(path: Path, number: signal.Signals) -> None:
    """F19."""
    counted = Counted(sphere_function)

    def fun(points: Any) -> Any:
        values = counted(points)
        if counted.calls == 3:
            signal.raise_signal(number)
        return values

    before = signal.getsignal(number)
    result = run(fun, run_dir=path)
    assert signal.getsignal(number) is before
    assert result.status is zm.Status.INTERRUPTED
    assert (result.nit, result.used, result.sent, counted.rows) == (3, 33, 33, 33)
    assert (path / "checkpoint.npz").exists()
    info = inspect(path)
    assert (info.state, info.lost) == ("interrupted", 0)
    assert bits(run(counted, run_dir=path)) == bits(run())
    assert counted.rows == 78


def test_the_second_ctrl_c_is_immediate(path: Path) -> None:
    counted = Counted(sphere_function)

    def fun(points: Any) -> Any:
        values = counted(points)
        if counted.calls == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return values

    with pytest.raises(KeyboardInterrupt):
        run(fun, run_dir=path, max_sent=200)
    assert (inspect(path).used, inspect(path).lost) == (22, 11)
    assert bits(run(run_dir=path, max_sent=200)) == bits(run())


def test_a_run_in_a_thread_takes_no_signals_and_runs(path: Path) -> None:
    results: list[zm.Result] = []
    thread = threading.Thread(target=lambda: results.append(run(run_dir=path)))
    thread.start()
    thread.join()
    assert bits(results[0]) == bits(run())


# --- ask and tell ----------------------------------------------------------------------------------------------------


def opened(path: Path, **options: Any) -> zm.Optimizer:
    settled: dict[str, Any] = {"l1": 0.1, "l2": 0.1, "bounds": (0, 1), "method": METHOD, "rng": 0}
    return zm.Optimizer.open(path, np.full(6, 0.25), **(settled | options))


def told(batches: int, **options: Any) -> zm.Optimizer:
    settled: dict[str, Any] = {"l1": 0.1, "l2": 0.1, "bounds": (0, 1), "method": METHOD, "rng": 0}
    opt = zm.Optimizer(np.full(6, 0.25), **(settled | options))
    for _ in range(batches):
        opt.tell(sphere_function(opt.ask()))
    return opt


@pytest.mark.parametrize("options", [{}, {"method": None}, {"returns": "best"}], ids=str)
def test_an_optimizer_opened_again_goes_on_where_it_was(path: Path, options: dict[str, Any]) -> None:
    for batch in range(6):
        with opened(path, **options) as opt:
            assert opt.nit == batch
            assert bits(opt.result) == bits(told(batch, **options).result)
            opt.tell(sphere_function(opt.ask()))
            assert opt.result.lost == 0
    (path / "checkpoint.npz").unlink()
    with opened(path, **options) as opt:
        assert bits(opt.result) == bits(told(6, **options).result), "replayed from the first value"


def test_asking_twice_sends_once_and_a_batch_never_told_is_lost(path: Path) -> None:
    with opened(path) as opt:
        assert opt.ask().tobytes() == opt.ask().tobytes()
        assert inspect(path).sent == 11
        with pytest.raises(zm.errors.OracleError, match="expected values of shape"):
            opt.tell(np.zeros(3))
        opt.tell(sphere_function(opt.ask()))
        assert (opt.result.used, opt.result.sent, opt.result.lost) == (11, 11, 0)
        opt.ask()
    with opened(path) as opt:
        assert opt.nit == 1
        opt.tell(sphere_function(opt.ask()))
        assert (opt.result.used, opt.result.sent, opt.result.lost) == (22, 33, 11)
        assert opt.x.tobytes() == told(2).x.tobytes()


def test_an_optimizer_never_asks_beyond_max_sent(path: Path) -> None:
    with opened(path, max_sent=25) as opt:
        for _ in range(2):
            opt.tell(sphere_function(opt.ask()))
        with pytest.raises(zm.errors.BudgetError, match="max_sent = 25"):
            opt.ask()
    with opened(path, max_sent=33) as opt:
        opt.tell(sphere_function(opt.ask()))
        assert opt.x.tobytes() == told(3).x.tobytes()


def test_values_that_are_not_finite_are_told_again_in_the_same_order(path: Path) -> None:
    with opened(path) as opt:
        values = sphere_function(opt.ask())
        opt.tell(np.full(11, np.nan))
        assert opt.status is zm.Status.NONFINITE
        opt.tell(values)
    with opened(path) as opt:
        assert opt.x.tobytes() == told(1).x.tobytes()
        assert (opt.nit, opt.nfev, opt.result.sent) == (1, 22, 22)


def test_an_optimizer_of_another_configuration_is_refused_by_name(path: Path) -> None:
    opened(path).close()
    changes: dict[str, dict[str, Any]] = {"l1": {"l1": 0.3}, "seed": {"rng": 3}, "upper": {"bounds": (0, 3)}}
    for name, change in changes.items():
        with pytest.raises(zm.errors.RunError, match=f"{name}.* was .* and is now"):
            opened(path, **change)
    with pytest.raises(TypeError, match="colour"):
        opened(path, colour="red")
    with opened(path, rng=None) as opt:
        assert opt.seed == 0
    opt.close()


@pytest.mark.parametrize("method", [None, zm.methods.zo_group_expmd()], ids=["recommended", "its descent"])
def test_a_run_of_an_earlier_revision_of_its_method_is_not_gone_on_with(
    path: Path, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same values would lead it to other points than those that were asked."""
    with pytest.raises(Crash):
        run(Dying(sphere_function, {3}), method=method, run_dir=path, max_sent=1_000)
    for changed in (zm.methods.Surveyed, zm.methods.GroupMemory):
        monkeypatch.setattr(changed, "revision", changed.revision + 1)
    never = Counted(sphere_function)
    with pytest.raises(zm.errors.RunError, match="trajectory"):
        run(never, method=method, run_dir=path, max_sent=1_000)
    assert never.calls == 0
    monkeypatch.undo()
    assert bits(run(method=method, run_dir=path, max_sent=1_000)) == bits(run(method=method))


def test_a_run_of_other_draws_is_refused_by_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F30: a version that draws other random numbers would ask other points."""
    with pytest.raises(Crash):
        run(Dying(sphere_function, {3}), run_dir=path, max_sent=1_000)
    never = Counted(sphere_function)
    monkeypatch.setattr("zomirror.optimizer.fingerprint", lambda: "0123456789ab")
    with pytest.raises(zm.errors.RunError, match=r"draws was .* and is now .?0123456789ab"):
        run(never, run_dir=path, max_sent=1_000)
    assert never.rows == 0


def in_lockstep(fun: Any, path: Path, count: int = 3, **options: Any) -> list[zm.Result]:
    """Several durable minimisations before one function, whose batches it sees as one."""
    jobs = [
        durable_minimization(
            zm.Optimizer(np.full(6, 0.25), l1=0.1, l2=0.1, bounds=(0, 1), method=METHOD, rng=seed),
            path / str(seed),
            {"task": "minimize", "target": None, "nonfinite": "stop", "budget": 78, "maxiter": None, "max_time": None},
            78,
            1_000,
        )
        for seed in range(count)
    ]
    return drive_many(jobs, BlackBox(fun, **options), lockstep=count)


def test_in_lockstep_resumed_at_every_call_each_run_is_the_one_it_would_have_been_alone(path: Path) -> None:
    """F13, F20, F21: whatever shares a batch, the promises hold for each run."""
    alone = [bits(run(rng=seed)) for seed in range(3)]
    counted = Counted(sphere_function)
    assert [bits(one) for one in in_lockstep(counted, path)] == alone
    assert counted.rows == 3 * 78
    assert counted.calls < 3 * 8, "joint batches"
    for at in range(1, counted.calls + 1):
        shutil.rmtree(path)
        dying, rest = Dying(sphere_function, {at}), Counted(sphere_function)
        with pytest.raises(Crash):
            in_lockstep(dying, path)
        results = in_lockstep(rest, path)
        assert [bits(one) for one in results] == alone
        assert sum(one.sent for one in results) == dying.f.rows + rest.rows


def test_in_lockstep_a_failing_batch_is_sent_again_and_counted(path: Path) -> None:
    """F1: the joint batch, then each alone, as often as the policy says."""
    alone = [bits(run(rng=seed)) for seed in range(3)]
    flaky = Dying(sphere_function, {2, 3, 9}, ConnectionError("gone"))
    results = in_lockstep(flaky, path, attempts=3)
    assert [bits(one) for one in results] == alone
    assert sum(one.sent for one in results) == flaky.f.rows > 3 * 78


@pytest.mark.parametrize("task", ["minimize", "explain"])
def test_a_result_that_cannot_be_stored_is_given_all_the_same(path: Path, task: str) -> None:
    """F33: the directory vanishes while the run goes on."""

    def vanishing(points: Any) -> Any:
        shutil.rmtree(path, ignore_errors=True)
        return sphere_function(points)

    if task == "minimize":
        result: Any = run(vanishing, run_dir=path)
        assert bits(result) == bits(run())
    else:
        weights = np.random.default_rng(0).normal(size=(6, 3))
        model = lambda X: vanishing(X)[:, None] * 0 + X @ weights  # noqa: E731
        result = zm.explain(model, np.full(6, 0.4), signed=True, budget=150, run_dir=path)
        assert result.nfev > 1
    assert "the result could not be stored" in result.message


@pytest.mark.parametrize("error", [RecursionError("too deep"), TypeError("not JSON"), OSError(28, "no space")])
def test_whatever_fails_while_storing_the_result_is_in_the_callers_hands(
    path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F33: the next call stores it, without a query."""

    def failing(*_: Any) -> None:
        raise error

    monkeypatch.setattr(RunDirectory, "finish", failing)
    result = run(run_dir=path)
    assert bits(result) == bits(run())
    assert f"the result could not be stored: {type(error).__name__}: " in result.message
    monkeypatch.undo()
    never = Counted(sphere_function)
    assert bits(run(never, run_dir=path)) == bits(result)
    assert never.rows == 0
    assert inspect(path).state == "finished"


# --- a large answer is recorded in several parts ---------------------------------------------------------------------


def killed_at_write(write: int, work: Callable[[], Any]) -> bool:
    """Do the work in a process of its own, which is killed before this write to a journal; whether it was."""
    pid = os.fork()
    if pid == 0:
        left = write

        def counted(*given: Any) -> None:
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            write_all(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journals, "write_all", counted)
            work()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def linear_scores(batch: Any) -> Any:
    return np.stack([batch[:, 0] + batch[:, 1], 1.5 - batch[:, 2], batch[:, 3]], axis=1)


def two_explained(**durable: Any) -> list[Any]:
    found = zm.explain_many(
        linear_scores, np.full((2, 4), 0.4), kind="PN", signed=True, budget=100, rng=0, lockstep=2, **durable
    )
    return [(one.x.tobytes(), one.objective, one.nfev, one.history.fun.tobytes()) for one in found]


@pytest.mark.parametrize(("work", "step"), [(lambda **k: bits(run(**k)), 2), (two_explained, 19)], ids=["one", "two"])
def test_killed_between_the_parts_of_an_answer_it_asks_for_the_rest(
    path: Path, work: Callable[..., Any], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was recorded of the answer is used, only the other rows are asked again, and the bits are the same."""
    whole = work()
    for module in (journals, records):
        monkeypatch.setattr(module, "rows_of_a_record", lambda width: 4)
    write, partly = 1, 0
    while killed_at_write(write, lambda: work(run_dir=path, max_sent=800)):
        if (path / "config.json").exists():
            info = inspect(path)
            partly += any(one.position % 11 for one in (info, *info.members))
            assert work(run_dir=path, max_sent=800) == whole
            assert inspect(path).lost == info.lost
        shutil.rmtree(path, ignore_errors=True)
        write += step
    assert write > 20
    assert partly > 2


# --- F36: long runs ------------------------------------------------------------------------------------------------


def bytes_read() -> int:
    [count] = [line.split()[1] for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("rchar")]
    return int(count)


def test_a_long_run_costs_no_more_as_it_grows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """200,000 queries: history and checkpoint stay as they were at 100,000; what is read is what is new."""
    looks, sizes, budget = 0, dict[int, int](), 200_000

    def sometimes(run: RunDirectory) -> bool:
        nonlocal looks
        looks += 1
        return looks % 500 == 0 and not run.replaying

    monkeypatch.setattr(RunDirectory, "checkpoint_due", property(sometimes))

    def crashing(now: Any) -> None:
        if now.nfev >= 0.95 * budget:
            raise Crash
        if now.nfev >= budget // 2 and not sizes:
            sizes[now.nfev] = (path / "checkpoint.npz").stat().st_size

    def first_query(points: Any) -> Any:
        raise Crash

    given: dict[str, Any] = {"method": zm.methods.zo_ada_expmd(20), "budget": budget, "run_dir": path}
    with pytest.raises(Crash):
        run(callback=crashing, **given)
    journal, [early] = (path / "journal.bin").stat().st_size, sizes.values()
    assert (path / "checkpoint.npz").stat().st_size < min(1.25 * early, 1e6)
    before = bytes_read()
    assert inspect(path).used >= 0.95 * budget
    inspected = bytes_read() - before
    before = bytes_read()
    with pytest.raises(Crash):
        run(first_query, **given)
    resumed = bytes_read() - before
    assert inspected < 0.3 * journal
    assert resumed < 0.5 * journal
    result = run(max_sent=2 * budget, **given)
    assert len(result.history) <= MOST_ENTRIES + 2
    assert result.nit > 2 * MOST_ENTRIES
    whole = run(**(given | {"run_dir": None}))
    assert bits(result) == bits(whole)
    assert (result.history.best[-1], result.history.nfev[-1]) == (whole.history.fun.min(), result.nfev)
