"""F13: a run killed with SIGKILL at any moment ends, after any number of resumes, bitwise where it would have ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support import runs_toy
from zomirror.errors import RunError
from zomirror.runs import inspect
from zomirror.runs.directory import RunDirectory

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fast_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: a kill takes nothing from either, and hundreds of runs are made."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of its own inside it
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as name:
        yield Path(name)


def toy(what: str, root: Path, **options: Any) -> Any:
    command = [sys.executable, "-m", "tests.support.runs_toy", what, str(root), json.dumps(options)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_killed_at_every_system_call(fast_disk: Path) -> None:
    answer = toy("sweep", fast_disk)
    assert len(answer["seen"]) > 100
    assert {case["call"] for case in answer["seen"]} >= {"pwrite", "fdatasync", "fsync", "rename", "ftruncate"}
    for case in answer["seen"]:
        assert case["killed"], case
        assert case["resumed"] == 0, case
        assert case["final"] == answer["whole"], case
        assert case["after"]["state"] == "finished", case
        assert case["after"]["used"] == runs_toy.BUDGET, case
        assert case["after"]["lost"] <= runs_toy.ROWS, case  # one batch for one kill
        assert case["asked"] <= case["after"]["sent"] <= case["asked"] + runs_toy.ROWS, case
        if case["before"] is None:
            assert case["asked_before"] == 0, case  # nothing is asked before the run counts
        else:
            assert case["before"]["state"] in {"fresh", "interrupted", "finished"}, case
            assert case["before"]["sent"] >= case["asked_before"], case
    assert sum(case["after"]["lost"] > 0 for case in answer["seen"]) > 5


def test_fifty_kills_at_random_moments(fast_disk: Path) -> None:
    answer = toy("storm", fast_disk, kills=50, seed=1, max_sent=100_000, budget=20_001)
    assert answer["struck"] == 50
    assert answer["middle"]["used"] > 100, "the kills struck before anything was done"
    assert answer["status"] == 0
    assert answer["final"] == answer["whole"]
    assert answer["after"]["lost"] <= 50 * runs_toy.ROWS
    assert answer["asked"] <= answer["after"]["sent"] == 20_001 + answer["after"]["lost"]


def test_the_cap_holds_through_kills_and_what_is_left_is_a_prefix(fast_disk: Path) -> None:
    answer = toy("storm", fast_disk, kills=12, seed=5, max_sent=300, budget=301)
    assert answer["asked"] <= answer["after"]["sent"] <= 300
    assert answer["final"].startswith("prefix ")
    used = answer["after"]["used"]
    prefix = runs_toy.descend(fast_disk / "short", budget=used + 1)
    assert answer["final"].split()[1] == prefix[: 2 * 8 * 3]


def test_a_killed_owner_leaves_no_lock_even_if_its_forked_worker_lives_on(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "from zomirror.runs.directory import RunDirectory\n"
        f"run = RunDirectory.open({str(tmp_path / 'run')!r}, {{}})\n"
        "run.begin(3)\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        run.values([1.0, 2.0, 3.0])\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__, flush=True)\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(60)\n"
        "else:\n"
        "    time.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    refused, worker = owner.stdout.readline().strip(), int(owner.stdout.readline())
    try:
        assert refused == "RunError", "a forked worker must not write for its parent"
        with pytest.raises(RunError, match=f"in use by process {owner.pid} on host"):
            RunDirectory.open(tmp_path / "run", {})
        assert inspect(tmp_path / "run").state == "running"
        owner.kill()
        owner.wait()
        assert inspect(tmp_path / "run").state == "interrupted"
        with RunDirectory.open(tmp_path / "run", {}) as run:
            assert (run.sent, run.used, run.lost) == (3, 0, 3)
    finally:
        os.kill(worker, signal.SIGKILL)
        owner.kill()
        owner.wait()
        owner.stdout.close()


def test_the_second_process_is_refused_at_once(tmp_path: Path) -> None:
    with RunDirectory.open(tmp_path / "run", {}) as run:
        run.begin(1)
        code = (
            "import sys, time\n"
            "from zomirror.errors import RunError\n"
            "from zomirror.runs.directory import RunDirectory\n"
            "start = time.monotonic()\n"
            "try:\n"
            "    RunDirectory.open(sys.argv[1], {})\n"
            "except RunError as error:\n"
            "    print(time.monotonic() - start, error)\n"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "run")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert f"in use by process {os.getpid()} on host" in said
        assert float(said.split()[0]) < 1.0
        run.values([2.0])
    assert (inspect(tmp_path / "run").used, inspect(tmp_path / "run").sent) == (1, 1)


def test_a_dead_owner_that_nobody_has_collected_yet_is_dead(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from zomirror.runs.directory import RunDirectory\n"
        f"run = RunDirectory.open({str(tmp_path / 'run')!r}, {{}})\n"
        "run.begin(2)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while Path(f"/proc/{owner.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    while inspect(tmp_path / "run").state != "interrupted":  # until its other threads are gone too
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        with RunDirectory.open(tmp_path / "run", {}) as run:
            assert run.lost == 2
    finally:
        owner.wait()
