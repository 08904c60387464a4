"""A run directory: created, compared, resumed, inspected; faults F15 to F18, F20 and the asides."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import runs_toy
from zomirror import runs
from zomirror.errors import ArgumentError, ArgumentTypeError, BudgetError, RunError
from zomirror.runs import checkpoint, npz
from zomirror.runs import journal as journals
from zomirror.runs.directory import RunDirectory
from zomirror.runs.folder import Folder

SETTINGS: dict[str, Any] = {"l1": 0.1, "method": {"type": "Ada", "batch": 3}, "budget": 100}
ARRAYS = {"x0": np.arange(4.0), "lower": np.zeros(4)}


def open_run(path: Path, *, max_sent: int | None = 1_000, **changes: Any) -> RunDirectory:
    return RunDirectory.open(path, {**SETTINGS, **changes}, arrays=ARRAYS, max_sent=max_sent)


def spend(run: RunDirectory, batches: int, rows: int = 3) -> None:
    for _ in range(batches):
        run.begin(rows)
        run.values(run.position + np.arange(float(rows)))


def kill(run: RunDirectory) -> None:
    """Let go of a run as a kill would: nothing more is written. (The real thing is in test_kill.py.)"""
    run._journal.abandon()
    run._lock._forget()
    run._folder.close()


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some" / "run"


def test_a_run_is_created_and_holds_what_it_was_asked(path: Path) -> None:
    with open_run(path) as run:
        assert (run.position, run.used, run.sent, run.lost, run.replaying) == (0, 0, 0, 0, False)
        assert run.settings == SETTINGS
        assert {k: v.tolist() for k, v in run.arrays().items()} == {k: v.tolist() for k, v in ARRAYS.items()}
        assert run.result() is None
        assert run.restore() is None
        assert len(run.take(5)) == 0
        spend(run, 2)
        assert (run.position, run.used, run.sent, run.lost) == (6, 6, 6, 0)
    assert names(path) == ["arrays.npz", "config.json", "journal.bin", "lock"]
    with RunDirectory.open(path) as run:  # with the stored settings
        assert run.settings == SETTINGS
        assert run.take(100).tolist() == [0, 1, 2, 3, 4, 5]
        assert run.notes == []


def test_what_is_paid_for_is_not_sent_again(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 2)
    with open_run(path) as run:
        assert run.replaying
        with pytest.raises(RunError, match="6 recorded values are left to take: nothing is sent"):
            run.begin(3)
        assert run.take(4).tolist() == [0, 1, 2, 3]
        assert run.position == 4
        assert run.take(4).tolist() == [4, 5]
        spend(run, 1)
        assert run.position == 9


FREE: dict[str, Any] = {"budget": 7, "max_sent": 3, "max_time": 1.5, "maxiter": 2, "workers": os, "callback": print}


def test_free_settings_may_differ_and_are_stored(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 1)
    with open_run(path, **FREE) as run:
        assert run.take(3).tolist() == [0, 1, 2]
    stored = runs.inspect(path).configuration
    assert stored is not None
    assert (stored["budget"], stored["workers"], stored["callback"]) == (7, "module", "builtin_function_or_method")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"l1": 0.2}, "l1 was 0.1 and is now 0.2"),
        ({"l1": np.float64(0.1)}, None),
        ({"method": {"type": "Ada", "batch": 4}}, "method.batch was 3 and is now 4"),
        ({"method": {"type": "Ada", "batch": 3.0}}, "method.batch was 3 and is now 3.0"),
        ({"rng": 3}, "rng was nothing and is now 3"),
    ],
)
def test_any_other_difference_is_refused_by_name(path: Path, change: dict[str, Any], sentence: str | None) -> None:
    with open_run(path) as run:
        spend(run, 1)
    before = {name: (path / name).read_bytes() for name in ("config.json", "journal.bin", "arrays.npz")}
    if sentence is None:
        open_run(path, **change).close()
    else:
        with pytest.raises(RunError, match="another configuration: ") as caught:
            open_run(path, **change)
        assert sentence in str(caught.value)
        assert str(path) in str(caught.value)
        assert str(caught.value).endswith("Use the stored values, or another run_dir")
    assert before == {name: (path / name).read_bytes() for name in before}
    open_run(path).close()  # the refusal has let go of the lock


def test_other_arrays_are_refused_by_name(path: Path) -> None:
    open_run(path).close()
    other = np.arange(4.0)
    other[1] = np.nextafter(1.0, 2.0)
    with pytest.raises(RunError, match=r"another configuration: x0\.sha256 was"):
        RunDirectory.open(path, SETTINGS, arrays={**ARRAYS, "x0": other})
    with pytest.raises(RunError, match=r"lower was .* and is now nothing"):
        RunDirectory.open(path, SETTINGS, arrays={"x0": ARRAYS["x0"]})


def test_settings_that_cannot_be_stored_are_refused_by_name(path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="rng is a Generator, which cannot be written"):
        open_run(path, rng=np.random.default_rng(0))
    with pytest.raises(ArgumentTypeError, match="expected x0 to be an array of plain numbers"):
        RunDirectory.open(path, SETTINGS, arrays={"x0": np.array([None])})
    assert not path.exists() or names(path) == ["lock"]


def test_a_finished_run_gives_its_result_and_is_left_untouched(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 3)
        run.finish({"fun": 0.1 + 0.2, "status": "done"}, {"x": np.array([1.0, np.nan])})
        with pytest.raises(RunError, match="is closed"):
            run.begin(1)
    before = {name: (path / name).read_bytes() for name in names(path)}
    with open_run(path) as run:
        stored = run.result()
        assert stored is not None
        assert stored.summary == {"fun": 0.1 + 0.2, "status": "done"}
        np.testing.assert_array_equal(stored.arrays["x"], [1.0, np.nan])
    assert before == {name: (path / name).read_bytes() for name in names(path)}
    with open_run(path, budget=200) as run:  # another budget may end elsewhere
        assert run.result() is None
        assert len(run.take(9)) == 9
        spend(run, 1)
        kill(run)
    with open_run(path) as run:  # and now the journal has gone on
        assert run.result() is None


def test_a_result_that_is_damaged_is_made_again(path: Path) -> None:
    for name in ("result.json", "result.npz"):
        with open_run(path) as run:
            run.take(100)
            run.finish({"fun": 1.0}, {"x": np.zeros(3)})
        data = bytearray((path / name).read_bytes())
        data[len(data) // 2] ^= 0xFF
        (path / name).write_bytes(data)
        with open_run(path) as run:
            assert run.result() is None
            assert any("the stored result cannot be used" in note for note in run.notes)


def test_rows_beside_the_trajectory_are_found_at_their_place_only(path: Path) -> None:
    """The last measurement at one budget is not a step of the trajectory at a larger one."""
    with open_run(path) as run:
        spend(run, 2)
        assert run.aside(1) is None
        run.begin(1, aside=True)
        run.values([-1.0])
        assert (run.position, run.used, run.sent) == (6, 7, 7)
    with open_run(path) as run:
        assert run.take(3).tolist() == [0, 1, 2]
        assert run.aside(1) is None
        run.begin(1, aside=True)  # a smaller budget ends here, and measures here
        run.values([-2.0])
        assert run.position == 3
    with open_run(path) as run:
        assert run.take(3).tolist() == [0, 1, 2]
        assert run.aside(1) == [-2.0]
        assert run.take(3).tolist() == [3, 4, 5]
        assert run.aside(1) == [-1.0]
        assert run.aside(1) is None
        spend(run, 1)
        assert (run.position, run.used) == (9, 11)


def test_the_state_of_a_checkpoint_comes_back_at_its_place(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 2)
        assert run.checkpoint({"x": np.arange(3.0), "t": 2})
        spend(run, 2)
        kill(run)
    with open_run(path) as run:
        state = run.restore()
        assert state is not None
        assert state["x"].tolist() == [0, 1, 2]
        assert state["t"] == 2
        assert run.position == 6
        assert not run.checkpoint({"x": np.zeros(1)}), "there is nothing new to keep while values are replayed"
        assert run.take(100).tolist() == [6, 7, 8, 9, 10, 11]
        run.begin(1)
        assert not run.checkpoint({"x": np.zeros(1)}), "the state with a batch in flight is not at a place"
        run.lose("test")


def test_the_journal_is_on_the_disk_before_a_checkpoint_of_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a machine that goes down could leave a checkpoint that knows more than the journal."""
    rename, done = os.rename, []

    def noted(*args: Any, **options: Any) -> None:
        done.append("checkpoint")
        rename(*args, **options)

    with open_run(path) as run:
        spend(run, 1)
        monkeypatch.setattr(journals, "_sync", lambda fd: done.append("journal"))
        monkeypatch.setattr(os, "rename", noted)
        assert run.checkpoint({"x": np.zeros(1)})
        assert done == ["journal", "checkpoint"]


def test_checkpoints_are_due_seldom(path: Path) -> None:
    with open_run(path) as run:
        due = [run.checkpoint_due]
        run._checkpointed -= 6.0
        due.append(run.checkpoint_due)
        run.checkpoint({})
        due.append(run.checkpoint_due)
        run._cost, run._checkpointed = 1.0, run._checkpointed - 40.0
        due.append(run.checkpoint_due)
    assert due == [False, True, False, False]


def spoil(path: Path, how: str) -> None:
    file = path / "checkpoint.npz"
    data = file.read_bytes()
    if how == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "flipped":
        file.write_bytes(data[:900] + bytes([data[900] ^ 0xFF]) + data[901:])
    elif how == "garbage":
        file.write_bytes(os.urandom(1000))
    elif how in {"newer", "older"}:
        text = data.replace(b'"format": 2', b'"format": 3' if how == "newer" else b'"format": 1')
        with file.open("rb") as f:
            note = npz.Reader(f, "x").load("about").tobytes()
        changed = np.frombuffer(note.replace(b'"format": 2', text[text.index(b'"format"') :][:11]), np.uint8)
        file.unlink()
        with file.open("w+b") as f:
            npz.write(f, {"about": changed, "x": np.zeros(1)})
    elif how == "of another run":
        with open_run(path.with_name("other")) as run:
            spend(run, 4)
            run.checkpoint({"x": np.full(3, 9.0)})
        shutil.copy(path.with_name("other") / "checkpoint.npz", file)
    elif how == "of another past":
        known = checkpoint.glance(Folder.open(path))
        assert known is not None
        folder = Folder.open(path)
        other = replace(known.place, tally=replace(known.place.tally, crc=known.place.tally.crc ^ 1))
        checkpoint.Checkpoint(known.run_id, other).save(folder, {"x": np.zeros(1)})
        folder.close()
    elif how == "a link":
        file.rename(path.parent / "elsewhere.npz")
        file.symlink_to(path.parent / "elsewhere.npz")
    elif how == "a directory":
        file.unlink()
        file.mkdir()


SPOILT = ["cut", "empty", "flipped", "garbage", "newer", "older", "of another run", "of another past", "a link"]


@pytest.mark.parametrize("how", [*SPOILT, "a directory"])
def test_a_checkpoint_that_cannot_be_used_costs_only_time(path: Path, how: str) -> None:
    with open_run(path) as run:
        spend(run, 2)
        run.checkpoint({"x": np.zeros(100)})
        spend(run, 1)
    spoil(path, how)
    info = runs.inspect(path)
    assert info.state == "interrupted"
    with open_run(path) as run:
        assert run.restore() is None
        assert any("the checkpoint is not used, all values are replayed: " in note for note in run.notes)
        assert run.take(100).tolist() == list(range(9))
        assert run.checkpoint({"x": np.ones(1)}) == (how != "a directory")


def test_any_byte_of_a_checkpoint_flipped_is_found_or_harmless(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 2)
        run.checkpoint({"x": np.arange(5.0), "t": 1})
    good = (path / "checkpoint.npz").read_bytes()
    used = 0
    for at in range(len(good)):
        (path / "checkpoint.npz").write_bytes(good[:at] + bytes([good[at] ^ (1 << at % 8)]) + good[at + 1 :])
        folder = Folder.open(path)
        try:
            known = checkpoint.glance(folder)
            assert known is not None
            state = known.load(folder)
        except RunError:
            continue
        finally:
            folder.close()
        used += 1
        assert known.place.tally.position == 6
        assert {k: v.tolist() for k, v in state.items()} == {"x": [0, 1, 2, 3, 4], "t": 1}
    assert used < len(good) // 4


def test_a_journal_shorter_than_the_checkpoint_knows_is_refused(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 2)
        run.checkpoint({"x": np.zeros(1)})
    os.truncate(path / "journal.bin", (path / "journal.bin").stat().st_size - 200)
    with pytest.raises(RunError, match=r"journal.bin' ends at byte .* but a checkpoint was made at byte"):
        open_run(path)
    info = runs.inspect(path)
    assert info.state == "damaged"
    assert "a checkpoint was made at byte" in info.damage[-1]


def test_a_missing_or_foreign_journal_is_refused(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 1)
    journal = path / "journal.bin"
    good = journal.read_bytes()
    journal.unlink()
    with pytest.raises(RunError, match=r"journal\.bin' does not exist"):
        open_run(path)
    assert runs.inspect(path).state == "damaged"
    open_run(path.with_name("other")).close()
    shutil.copy(path.with_name("other") / "journal.bin", journal)
    with pytest.raises(RunError, match="belongs to another run"):
        open_run(path)
    journal.write_bytes(good[:200] + b"\xff" + good[201:])
    with pytest.raises(RunError, match="damaged at byte"):
        open_run(path)
    info = runs.inspect(path)
    assert info.state == "damaged"
    assert "damaged at byte" in str(info)


def test_a_lost_configuration_does_not_throw_away_what_was_paid_for(path: Path) -> None:
    with open_run(path) as run:
        spend(run, 1)
    before = (path / "journal.bin").read_bytes()
    (path / "config.json").unlink()
    with pytest.raises(RunError, match=r"config\.json' is missing beside a journal with records"):
        open_run(path)
    assert (path / "journal.bin").read_bytes() == before


def test_an_error_in_the_run_is_told_before_one_in_its_closing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    def spend_and_fail(error: Exception | None) -> None:
        with open_run(path) as run:
            run.take(3)
            spend(run, 1)
            monkeypatch.setattr(journals, "_sync", fail)
            if error is not None:
                raise error

    with pytest.raises(ZeroDivisionError) as caught:
        spend_and_fail(ZeroDivisionError())
    assert "could not be closed" in caught.value.__notes__[0]
    monkeypatch.undo()
    with pytest.raises(RunError, match="Input/output error"):
        spend_and_fail(None)
    monkeypatch.undo()
    assert runs.inspect(path).used == 6


def test_a_directory_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(RunError, match=r"holds other files \(thesis.tex\) and no run: use an empty run_dir"):
        open_run(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "all of it"
    with pytest.raises(RunError, match=r"is in the way|is not a directory"):
        open_run(tmp_path / "thesis.tex")
    with pytest.raises(RunError, match="is not a directory"):
        open_run(tmp_path / "thesis.tex" / "run")
    with pytest.raises(RunError, match="holds no run"):
        RunDirectory.open(tmp_path)
    with pytest.raises(RunError, match="does not exist"):
        RunDirectory.open(tmp_path / "nothing")
    with pytest.raises(RunError, match="does not exist"):
        runs.inspect(tmp_path / "nothing")
    with pytest.raises(RunError, match=r"holds no run: it has no config.json"):
        runs.inspect(tmp_path)


@pytest.mark.parametrize("place", ["/proc/zomirror-run", "/sys/zomirror-run", "/dev/null/run"])
def test_places_that_hold_no_files_are_refused_before_the_first_query(place: str) -> None:
    with pytest.raises(RunError, match="run directory"):
        open_run(Path(place))


UNPRIVILEGED = """
import os, sys
from zomirror.errors import RunError
from zomirror.runs.directory import RunDirectory
if os.getuid() == 0:  # the superuser may write everywhere
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    with RunDirectory.open(sys.argv[1], {}) as run:
        run.begin(1)
        print("sent")
except RunError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("fresh", [True, False])
def test_a_read_only_directory_is_refused_before_the_first_query(fresh: bool) -> None:
    with TemporaryDirectory() as name:
        root = Path(name)
        if not fresh:
            with RunDirectory.open(root / "run", {}) as run:
                spend(run, 1)
        files = [*root.rglob("*"), root]
        for file in files:
            file.chmod(0o555 if file.is_dir() else 0o444)
        command = [sys.executable, "-c", UNPRIVILEGED, str(root / "run")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for file in files:
            file.chmod(0o755)
    what = "run directory " if fresh else ""
    assert done.stdout.startswith(f"refused: {what}'{root / 'run'}")
    assert "may not be written or read by this user: choose a directory of yours" in done.stdout


def test_a_full_disk_is_refused_before_the_first_query(tmp_path: Path) -> None:
    """RLIMIT_FSIZE from 0 up: whatever does not fit is met before anything is sent, and works once there is room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    asked = 0
    refused = 0
    for size in (0, 10, 40, 100, 300, 700, 1_500, 4_096, 9_000, 12_288, 20_000):
        path = tmp_path / f"run{size}"
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            with open_run(path) as run:
                run.begin(3)
                asked += 1
                run.values([0.0, 1.0, 2.0])
        except RunError as error:
            assert "raise `ulimit -f`" in str(error)  # noqa: PT017 - some sizes are enough
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        with open_run(path) as run:
            assert run.take(3).tolist() == ([] if run.used == 0 else [0, 1, 2])
            assert run.sent == run.used
            spend(run, 1)
    assert asked >= 2
    assert refused >= 7


def test_a_checkpoint_that_does_not_fit_is_noted_and_the_run_goes_on(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_run(path) as run:
        spend(run, 1)
        assert run.checkpoint({"x": np.zeros(3)})
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        try:
            assert not run.checkpoint({"x": np.zeros(100_000)})
            spend(run, 1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "no checkpoint was written: " in run.notes[-1]
    assert ".checkpoint.npz.tmp" not in names(path)
    with open_run(path) as run:
        state = run.restore()
        assert state is not None
        assert state["x"].tolist() == [0, 0, 0]


def test_resume_at_every_k_is_bitwise_equal(tmp_path: Path) -> None:
    """F20, with the state held in a checkpoint, in the journal, or in both."""
    whole = runs_toy.descend(tmp_path / "whole", budget=61)
    for every in (1, 4, 1_000):
        for k in range(1, 61, 5):
            path = tmp_path / f"run{every}-{k}"
            runs_toy.descend(path, budget=61, max_sent=k - 1, every=every)
            assert runs.inspect(path).sent <= k - 1
            assert runs_toy.descend(path, budget=61, every=every) == whole
            assert runs_toy.count_calls(path) == runs.inspect(path).sent == 61


@settings(max_examples=40)
@given(cap=st.integers(0, 30), rows=st.integers(1, 12), sessions=st.integers(1, 4))
def test_the_other_side_never_counts_more_than_the_cap(
    tmp_path_factory: pytest.TempPathFactory, cap: int, rows: int, sessions: int
) -> None:
    path = tmp_path_factory.mktemp("cap") / "run"
    asked = 0
    for _ in range(sessions):
        run = open_run(path, max_sent=cap)
        run.take(1_000)
        for _ in range(3):
            try:
                run.begin(rows)
            except BudgetError:
                assert run.sent + rows > cap
                break
            asked += rows
            run.values(np.zeros(rows))
        else:
            try:
                run.begin(rows)
                asked += rows
            except BudgetError:
                pass
        kill(run)
        assert asked <= runs.inspect(path).sent <= cap


def test_a_closed_run_can_neither_send_nor_record(path: Path) -> None:
    run = open_run(path)
    run.close()
    run.close()
    for action, argument in {
        "begin": 1,
        "resend": 1,
        "values": [1.0],
        "lose": "x",
        "checkpoint": {},
        "finish": {},
    }.items():
        with pytest.raises(RunError, match="is closed here"):
            getattr(run, action)(argument)


def test_losses_are_kept_with_their_reason(path: Path) -> None:
    with open_run(path) as run:
        run.begin(3)
        run.resend(2)
        run.lose("TimeoutError")
        assert (run.sent, run.used, run.lost) == (5, 0, 5)
        spend(run, 1)
    assert b"TimeoutError" in (path / "journal.bin").read_bytes()
    assert json.loads((path / "config.json").read_text())["settings"] == SETTINGS


def test_a_home_that_nobody_has_is_refused() -> None:
    with pytest.raises(ArgumentError, match="home directory"):
        runs.inspect("~nobody-of-this-name/run")


def flip(path: Path, at: int) -> None:
    data = bytearray((path / "journal.bin").read_bytes())
    data[at] ^= 1
    (path / "journal.bin").write_bytes(data)


def test_what_lies_before_a_checkpoint_is_read_only_when_it_is_needed(path: Path) -> None:
    """A flipped byte there harms no run that does not read it; without the checkpoint it is found, before a query."""
    with open_run(path) as run:
        spend(run, 20)
        run.checkpoint({"x": np.zeros(1)})
        spend(run, 2)
    flip(path, 600)
    info = runs.inspect(path)
    assert (info.state, info.used, info.damage) == ("interrupted", 66, ())
    assert runs.inspect(path, whole=True).state == "damaged"
    with open_run(path) as run:
        assert run.restore() is not None
        assert run.take(100).tolist() == [60, 61, 62, 63, 64, 65]
    with open_run(path) as run:

        def refused(state: object) -> None:
            raise RunError("it does not fit")

        assert run.restore(refused) is None
        with pytest.raises(RunError, match=r"damaged at byte 5[0-9][0-9]"):
            run.take(100)
    (path / "checkpoint.npz").unlink()
    assert runs.inspect(path).state == "damaged"
    with pytest.raises(RunError, match="damaged at byte"):
        open_run(path)


STEPS = st.sampled_from(["batch", "lost", "again", "aside", "open", "checkpoint", "kill", "close"])


@settings(max_examples=25)
@given(steps=st.lists(STEPS, max_size=25))
def test_a_journal_read_from_a_checkpoint_is_the_journal_read_whole(steps: list[str]) -> None:
    with TemporaryDirectory() as root:
        path = Path(root) / "run"
        run = open_run(path)
        try:
            for step in steps:
                if step in {"kill", "close"}:
                    kill(run) if step == "kill" else run.close()
                    run = open_run(path)
                    run.restore()
                    run.take(1_000)
                elif step == "checkpoint":
                    run.checkpoint({"x": np.zeros(1)})
                elif run._journal.tally.open:
                    run.lose("test")
                else:
                    run.begin(3, aside=step == "aside")
                    if step == "again":
                        run.resend(2)
                    if step == "lost":
                        run.lose("test")
                    elif step != "open":
                        run.values(run.position + np.arange(3.0))
            short, whole = runs.inspect(path), runs.inspect(path, whole=True)
            assert short == whole
            where = (path / "checkpoint.npz").exists()
            kill(run)
            with open_run(path) as run:
                assert not run.notes
                totals = (run.used, run.sent, run.lost, run._replay._asides)
                assert (run.restore() is not None) == where
                rest = run.take(1_000)
                assert rest.tolist() == list(range(run.position - len(rest), run.position))
                kill(run)
            (path / "checkpoint.npz").unlink(missing_ok=True)
            with open_run(path) as run:
                assert (run.used, run.sent, run.lost, run._replay._asides) == totals
                assert run.take(1_000).tolist() == list(range(run.position))
        finally:
            run.close()


def test_room_is_made_for_values_as_wide_as_those_that_are_replayed(path: Path) -> None:
    """F16: the first batch of a resumed run is not sent if the disk has no room for its 600 numbers a row."""
    with open_run(path) as run:
        run.begin(2)
        run.values(np.ones((2, 600)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    try:
        with open_run(path) as run:
            assert run.take(2).shape == (2, 600)
            with pytest.raises(RunError, match="the room for the next answers"):
                run.begin(20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with open_run(path) as run:
        assert (run.sent, run.lost) == (2, 0)
