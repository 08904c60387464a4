"""What is told of run directories without touching them, groups of runs, and directories of strangers."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs.test_directory import ARRAYS, SETTINGS, kill, names, open_run, spend
from zomirror import runs
from zomirror.cli.commands.runs import write_command
from zomirror.errors import ArgumentError, RunError
from zomirror.runs import lock, npz
from zomirror.runs.directory import RunDirectory
from zomirror.runs.group import RunGroup
from zomirror.runs.journal import Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_inspect_tells_the_state_and_writes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("inspect wrote, locked or began something")

    def look() -> runs.RunInfo:
        with monkeypatch.context() as patch:
            for name in ("pwrite", "rename", "unlink", "mkdir", "ftruncate", "fsync"):
                patch.setattr(os, name, forbidden)
            patch.setattr(fcntl, "flock", forbidden)
            patch.setattr(Journal, "__init__", forbidden)
            return runs.inspect(path)

    with open_run(path) as run:
        info = look()
        assert (info.state, info.progress, info.owner.split(" since ")[0]) == (
            "running",
            0.0,
            str(run._lock.owner).split(" since ")[0],
        )
        spend(run, 5)
        run.begin(3)
        assert (look().used, look().sent, look().lost) == (15, 18, 0)  # the batch is in flight, not lost
        kill(run)
    monkeypatch.setattr(lock.Owner, "alive", lambda self: False)
    info = look()
    assert (info.state, info.used, info.sent, info.lost, info.position) == ("interrupted", 15, 18, 3, 15)
    assert info.progress == pytest.approx(0.15)
    assert info.configuration == SETTINGS
    assert info.sessions == 1
    assert info.damage == ()
    assert str(info) == "run: interrupted, 15%, used 15, sent 18, lost 3"
    with open_run(path) as run:
        run.take(100)
        run.finish({})
    assert look().state == "finished"
    assert look().progress == 1.0
    open_run(path.with_name("fresh")).close()
    assert [info.state for info in runs.list_runs(path.parent)] == ["fresh", "finished"]


def test_a_torn_tail_is_told_and_cleared_by_the_next_session(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 2)
        kill(run)
    data = (path / "journal.bin").read_bytes()
    at = data.index(np.arange(3.0, 6.0).tobytes())
    (path / "journal.bin").write_bytes(data[: at + 8] + bytes(len(data) - at - 8))  # the kill came inside this write
    with open_run(path) as run:
        assert (run.used, run.sent, run.lost) == (3, 6, 3)
        assert "bytes of an unfinished write" in run.notes[0]
        run._lock.release()  # told also without an owner
        assert "bytes of an unfinished write lie at the end" in runs.inspect(path).damage[0]
    assert runs.inspect(path).state == "interrupted"
    with open_run(path) as run:
        assert run.take(9).tolist() == [0, 1, 2]
        spend(run, 1)
    info = runs.inspect(path)
    assert (info.damage, info.used, info.sent, info.lost) == ((), 6, 9, 3)


WRITER = """
import sys, time
import numpy as np
from zomirror.runs.directory import RunDirectory
with RunDirectory.open(sys.argv[1], {"budget": 10**9}) as run:
    run.begin(1), run.values([0.0])
    print("ready", flush=True)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        run.begin(700)
        run.values(np.zeros(700))
        time.sleep(0.004)
"""


def test_a_run_can_be_looked_at_while_it_is_written(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            seen, deadline = [runs.inspect(path) for _ in range(25)], time.monotonic() + 60
            while seen[-1].used == seen[0].used and time.monotonic() < deadline:  # the writer has had no turn yet
                seen.append(runs.inspect(path))
        finally:
            writer.kill()
    assert {(info.state, info.damage, info.lost) for info in seen} == {("running", (), 0)}
    used = [info.used for info in seen]
    assert used == sorted(used)
    assert used[0] < used[-1] <= runs.inspect(path).used
    assert runs.inspect(path).state == "interrupted"


def test_damage_is_told_while_the_run_is_written(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 4)
        data = (path / "journal.bin").read_bytes()
        at = data.index(np.arange(3.0).tobytes())
        with (path / "journal.bin").open("r+b") as file:
            os.pwrite(file.fileno(), b"\xff", at)
            info = runs.inspect(path)
            os.pwrite(file.fileno(), data[at : at + 1], at)
        assert info.state == "damaged"
        assert f"damaged at byte {at - 40:,}" in info.damage[0]
        assert runs.inspect(path).state == "running"


def test_list_runs_passes_over_what_is_not_a_run(tmp_path: Path) -> None:
    open_run(tmp_path / "a").close()
    (tmp_path / "b").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "a")
    (tmp_path / "d").write_text("x")
    (tmp_path / ".e").mkdir()
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "config.json").write_text("[" * 1_000_000)
    assert [(info.path.name, info.state) for info in runs.list_runs(tmp_path)] == [("a", "fresh"), ("f", "damaged")]


HOSTILE_CONFIGS = {
    "deep": "[" * 1_000_000,
    "list": "[]",
    "newer": '{"format": 2}',
    "no run": '{"format": 1, "kind": "run", "run": "../..", "settings": {}, "arrays": {}}',
    "wrong kinds": '{"format": 1, "kind": [], "run": 3, "settings": [], "arrays": 1}',
}


@pytest.mark.parametrize("what", HOSTILE_CONFIGS)
def test_hostile_configurations_are_refused(path: Path, what: str) -> None:
    open_run(path).close()
    (path / "config.json").write_text(HOSTILE_CONFIGS[what])
    with pytest.raises(RunError, match=r"config\.json"):
        open_run(path)
    assert runs.inspect(path).state == "damaged"


@pytest.mark.parametrize("name", ["config.json", "journal.bin", "arrays.npz", "lock", "result.json"])
def test_links_in_a_run_directory_are_refused(path: Path, name: str) -> None:
    with open_run(path) as run:
        spend(run, 1)
        run.finish({}, {})
    secret = path.parent / "secret"
    (path / name).rename(secret)
    (path / name).symlink_to(secret)
    before = secret.read_bytes()
    info = runs.inspect(path)
    if name in {"arrays.npz", "result.json"}:  # read when they are asked for
        with open_run(path) as run:
            assert run.result() is None or name == "arrays.npz"
            if name == "arrays.npz":
                with pytest.raises(RunError, match=r"arrays.npz' is a symbolic link"):
                    run.arrays()
    else:
        assert info.damage
        with pytest.raises(RunError, match=f"{name}' is a symbolic link"):
            open_run(path)
    assert secret.read_bytes() == before


def test_arrays_that_were_exchanged_are_found(path: Path) -> None:
    open_run(path).close()
    with (path / "arrays.npz").open("w+b") as file:
        npz.write(file, {**ARRAYS, "x0": np.arange(4.0) + 1})
    with open_run(path) as run, pytest.raises(RunError, match="array 'x0' is not the one that"):
        run.arrays()


def test_a_group_holds_runs_by_name(tmp_path: Path) -> None:
    common = {"kind": "PN", "members": 4, "workers": 2}
    with RunGroup.open(tmp_path / "group", common, arrays={"X": np.zeros((3, 2))}) as group:
        assert runs.inspect(group.path).state == "running"
        for i in range(3):
            with group.member(f"input-{i}", SETTINGS, arrays=ARRAYS, max_sent=50) as run:
                spend(run, i + 1)
                if i < 2:
                    run.finish({"i": i})
        assert group.names() == ["input-0", "input-1", "input-2"]
        for bad in ("../x", "a/b", ".."):
            with pytest.raises(ArgumentError, match="one path component"):
                group.member(bad, SETTINGS)
        (tmp_path / "elsewhere").mkdir()
        (group.path / "link").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(RunError, match="is not a directory"):
            group.member("link", SETTINGS)
        assert names(tmp_path / "elsewhere") == []
        with pytest.raises(RunError, match=f"in use by process {os.getpid()}"):
            RunGroup.open(group.path, common, arrays={"X": np.zeros((3, 2))})
    info = runs.inspect(tmp_path / "group")
    assert (info.kind, info.state, info.used, info.sent, info.progress) == ("group", "interrupted", 18, 18, 0.5)
    assert [member.state for member in info.members] == ["finished", "finished", "interrupted"]
    with pytest.raises(RunError, match="holds a group, this call makes a run"):
        RunDirectory.open(tmp_path / "group", common)
    with pytest.raises(RunError, match="kind was"):
        RunGroup.open(tmp_path / "group", {**common, "kind": "PP"}, arrays={"X": np.zeros((3, 2))})
    with RunGroup.open(tmp_path / "group", common, arrays={"X": np.zeros((3, 2))}) as group:
        assert group.result() is None
        group.finish({"valid": 2}, {"nnz": np.arange(3)})
        stored = group.result()
        assert stored is not None
        assert stored.summary == {"valid": 2}
    assert runs.inspect(tmp_path / "group").state == "finished"
    with pytest.raises(RunError, match="is closed here"):
        group.member("input-0", SETTINGS)
    (tmp_path / "group" / "input-1" / "journal.bin").write_bytes(b"")
    info = runs.inspect(tmp_path / "group")
    assert info.state == "damaged"
    assert "input-1: " in info.damage[0]


@pytest.mark.parametrize("kinds", [["PP"], ["PP", "PN"]])
def test_a_command_is_finished_when_all_its_runs_are(tmp_path: Path, kinds: list[str]) -> None:
    """The command line begins its PN after its PP: with only the first one done, it is not finished."""
    write_command(tmp_path / "cli", ["explain", "model.onnx", "a.png"], members=2)
    assert runs.inspect(tmp_path / "cli").state == "fresh"
    for kind in kinds:
        with RunGroup.open(tmp_path / "cli" / kind, {"members": 1}) as group:
            with group.member("a", SETTINGS) as run:
                run.begin(1)
                run.values([1.0])
                run.finish({})
            group.finish({})
    [info] = runs.list_runs(tmp_path)
    assert info.state == ("finished" if len(kinds) == 2 else "interrupted")
    assert info.progress == len(kinds) / 2
    assert info.created == info.members[0].created != ""
