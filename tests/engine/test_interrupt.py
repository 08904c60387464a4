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
