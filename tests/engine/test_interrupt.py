"""F19 below the command line: the first SIGINT or SIGTERM asks for a clean stop, the second acts at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from zomirror.engine.interrupt import stop_on_signal
from zomirror.runs import inspect

PROGRAM = """
import sys, time
from zomirror.runs.directory import RunDirectory
from zomirror.engine.interrupt import stop_on_signal
with stop_on_signal() as stop, RunDirectory.open(sys.argv[1], {"budget": 100000}) as run:
    run.take(100000)
    batches = 0
    while not stop:
        run.begin(2)
        if batches == 3:
            print("ready", flush=True)
        time.sleep(float(sys.argv[2]) if batches == 3 else 0.001)
        run.values([1.0, 2.0])
        batches += 1
    run.checkpoint({"batches": batches})
    print("stopped by", stop.requested.name, flush=True)
"""


def start(path: Path, delay: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(path), str(delay)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_cleanly_after_the_batch(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path / "run", 0.5)
    process.send_signal(number)
    said, errors = process.communicate(timeout=60)
    assert (said, errors, process.returncode) == (f"stopped by {number.name}\n", "", 0)
    info = inspect(tmp_path / "run")
    assert (info.state, info.lost) == ("interrupted", 0)
    assert info.used == info.sent >= 8
    assert (tmp_path / "run" / "checkpoint.npz").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_acts_at_once(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path / "run", 60.0)
    process.send_signal(number)
    # the first signal cuts the system's sleep short, and Python sleeps on: only then is the second sent
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.5)
    process.send_signal(number)
    said, errors = process.communicate(timeout=30)
    assert said == ""
    assert process.returncode == (-number if number is signal.SIGTERM else -signal.SIGINT)
    assert ("KeyboardInterrupt" in errors) == (number is signal.SIGINT)
    info = inspect(tmp_path / "run")
    assert info.state == "interrupted"
    assert (info.used, info.sent, info.lost) == (6, 8, 2)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_on_signal() as stop:
        assert not stop
        with stop_on_signal() as inner:
            assert inner is stop
        assert signal.getsignal(signal.SIGINT) != before[0]
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested is signal.SIGINT
        assert stop
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_handlers_are_put_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), stop_on_signal():
        _ = 1 // 0
    assert signal.getsignal(signal.SIGINT) == before


def test_ignored_stays_ignored_and_the_handlers_of_others_are_left_alone() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert not stop
            signal.signal(signal.SIGINT, signal.default_int_handler)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_gets_a_flag_that_nobody_sets() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[bool] = []

    def work() -> None:
        with stop_on_signal() as stop:
            seen.append(bool(stop) or signal.getsignal(signal.SIGINT) != before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]


SEARCH = """
import sys, time
from dataclasses import dataclass
import numpy as np
import zomirror as zm
from zomirror.engine import interrupt
interrupt.PATIENCE = 0.5

def spin(seconds):
    print("ready", flush=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass

@dataclass(frozen=True)
class Spinning:
    "The method, except that it computes for ever, and asks for nothing, after its third batch."
    spins = sys.argv[3] == "spins"
    def __post_init__(self):
        object.__setattr__(self, "inner", zm.methods.zo_ada_expmd(5))
    def __getattr__(self, name):
        return getattr(self.inner, name)
    def init(self, *given):
        return self.inner.init(*given)
    def ask(self, state):
        if self.spins and state.t == 3:
            spin(1e9)
        return self.inner.ask(state)
    def tell(self, *given):
        return self.inner.tell(*given)

calls = 0

def fun(points):
    global calls
    calls += 1
    if sys.argv[3] == "slow" and calls == 3:  # a batch in flight, for three times the patience; in it another run
        zm.minimize(lambda p: np.square(p).sum(1), np.ones(2), budget=20, method=zm.methods.zo_ada_expmd(5), rng=0,
                    callback=lambda now: spin(1.5) if now.nit == 1 else None)
    return np.square(points - 0.5).sum(axis=1)

def scores(batch):
    return np.stack([batch.sum(axis=1), 1.0 - batch.sum(axis=1)], axis=1)

def glimpsed(now):
    if sys.argv[3] == "spins" and now.nfev > 20:
        spin(1e9)

if sys.argv[2] == "minimize":
    found = zm.minimize(fun, np.zeros(4), l1=0.1, bounds=(0, 1), budget=60, method=Spinning(), rng=0,
                        run_dir=sys.argv[1])
else:
    found = zm.explain(scores, np.full(4, 0.3), kind="PN", signed=True, budget=200, rng=0, callback=glimpsed,
                       run_dir=sys.argv[1])
print(found.status.name, found.nfev, found.x.tobytes().hex())
"""


def searched(path: Path, task: str, how: str, number: signal.Signals | None = None) -> list[str]:
    command = [sys.executable, "-c", SEARCH, str(path), task, how]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        if number is not None:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(number)
        said, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert (errors, process.returncode) == ("", 0)
    return said.split()


@pytest.mark.parametrize(("task", "number"), [("minimize", signal.SIGTERM), ("explain", signal.SIGINT)])
def test_a_signal_ends_a_search_that_asks_nothing(tmp_path: Path, task: str, number: signal.Signals) -> None:
    whole = searched(tmp_path / "whole", task, "whole")
    assert searched(tmp_path / "run", task, "spins", number)[0] == "INTERRUPTED"
    info = inspect(tmp_path / "run")
    assert (info.state, info.lost) == ("interrupted", 0)
    assert 0 < info.used == info.sent < int(whole[1])
    assert searched(tmp_path / "run", task, "whole") == whole


def test_a_batch_in_flight_is_waited_for_however_long_it_takes(tmp_path: Path) -> None:
    whole = searched(tmp_path / "whole", "minimize", "whole")
    assert searched(tmp_path / "run", "minimize", "slow", signal.SIGTERM)[0] == "INTERRUPTED"
    info = inspect(tmp_path / "run")
    assert (info.used, info.sent, info.lost) == (18, 18, 0)
    assert searched(tmp_path / "run", "minimize", "whole") == whole
