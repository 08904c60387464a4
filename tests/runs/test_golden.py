"""Run directories of format 2, kept as they were written: they load for ever, and format 2 does not change.

python -m tests.runs.test_golden writes them anew, which only a new format is a reason for.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

import numpy as np
import pytest

from zomirror import runs
from zomirror.runs import configuration as config
from zomirror.runs import lock, npz
from zomirror.runs import stored_result as result
from zomirror.runs.directory import RunDirectory
from zomirror.runs.journal import Pace

GOLDEN = Path(__file__).parents[1] / "golden" / "runs"
SETTINGS = {"l1": 0.1, "method": {"type": "MirrorDescent", "batch_size": 4}, "bounds": [0.0, "inf"], "budget": 14}
ARRAYS = {"x0": np.array([0.1, -0.0, np.pi]), "fixed": np.array([True, False, True])}
VALUES = np.array([0.1, -1e-300, 5e-324, 1.7976931348623157e308])


def make(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the golden directories anew, with everything that differs from run to run held fixed."""
    owner = lock.Owner(4711, "golden", "00000000-0000-0000-0000-000000000000", "12345", "2026-01-01T00:00:00Z")
    monkeypatch.setattr(lock.Owner, "here", classmethod(lambda cls: owner))
    monkeypatch.setattr(lock, "boot_id", lambda: owner.boot)
    for module in (config, result):
        monkeypatch.setattr(module, "now", lambda: owner.since)
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0123456789abcdef" * (size // 8))
    monkeypatch.setattr("zomirror.runs.configuration.__version__", "0.1.0")
    monkeypatch.setattr(Pace, "interval", 0.0)
    for name in ("finished", "killed"):
        with RunDirectory.open(root / name, SETTINGS, arrays=ARRAYS, max_sent=24) as run:
            run.begin(4)
            run.values(VALUES)
            run.begin(4)
            run.lose("OracleError")
            run.checkpoint({"x": np.array([0.25, 0.5]), "t": 1})
            run.begin(4)
            run.resend(2)
            run.values(VALUES[:1])
            run.values(2 * VALUES[1:3])
            run.values([np.inf], 0xDEADBEEF)
            run.begin(2)
            run.values(np.array([[1.5, -2.5, 0.0], [1e-9, 1e9, -0.0]]), 17)
            if name == "killed":
                run.begin(4)
                run._journal.abandon()
                run._lock._forget()
            else:
                run.begin(1, aside=True)
                run.values([0.5])
                run.finish({"fun": 0.5, "status": "done"}, {"x": np.array([1.0, 2.0])})
    monkeypatch.undo()


def contents(path: Path) -> dict[str, bytes]:
    """The bytes of every file; of zip files those of the members, for zip headers may differ between Pythons."""
    found: dict[str, bytes] = {}
    for file in path.iterdir():
        if file.suffix == ".npz":
            with file.open("rb") as f:
                reader = npz.Reader(f, file.name)
                found |= {f"{file.name}/{name}": reader.load(name).tobytes() for name in reader.names}
        else:
            found[file.name] = file.read_bytes()
    return found


@pytest.mark.parametrize("name", ["finished", "killed"])
def test_what_is_written_today_is_format_2_byte_for_byte(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, monkeypatch)
    written, kept = contents(tmp_path / name), contents(GOLDEN / name)
    assert written.keys() == kept.keys()
    for file, data in kept.items():
        assert written[file] == data, f"{file} changed: give it a new format number, and keep reading this one"


def test_the_finished_run_loads(tmp_path: Path) -> None:
    info = runs.inspect(GOLDEN / "finished")
    assert (info.state, info.used, info.sent, info.lost, info.sessions) == ("finished", 11, 17, 6, 1)
    assert info.configuration == SETTINGS
    assert info.damage == ()
    shutil.copytree(GOLDEN / "finished", tmp_path / "run")
    with RunDirectory.open(tmp_path / "run", SETTINGS, arrays=ARRAYS, max_sent=24) as run:
        stored = run.result()
        assert stored is not None
        assert stored.summary == {"fun": 0.5, "status": "done"}
        assert stored.arrays["x"].tolist() == [1.0, 2.0]
        assert {k: v.tobytes() for k, v in run.arrays().items()} == {k: v.tobytes() for k, v in ARRAYS.items()}
        assert run.take(8).tobytes() == np.array([*VALUES, VALUES[0], *2 * VALUES[1:3], np.inf]).tobytes()
        assert run.take(2, 17).tolist() == [[1.5, -2.5, 0.0], [1e-9, 1e9, -0.0]]
        assert run.aside(1) == [0.5]


def test_the_killed_run_is_resumed(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "killed", tmp_path / "run")
    assert runs.inspect(tmp_path / "run").state == "interrupted"
    with RunDirectory.open(tmp_path / "run", SETTINGS, arrays=ARRAYS, max_sent=26) as run:
        assert (run.used, run.sent, run.lost) == (10, 20, 10)
        state = run.restore()
        assert state is not None
        assert state["x"].tolist() == [0.25, 0.5]
        assert state["t"] == 1
        assert run.position == 4
        assert run.take(4).tobytes() == np.array([VALUES[0], *2 * VALUES[1:3], np.inf]).tobytes()
        assert run.take(9).tolist() == [[1.5, -2.5, 0.0], [1e-9, 1e9, -0.0]]
        run.begin(4)
        run.values(VALUES)
        run.finish({"fun": 0.1})
    assert str(runs.inspect(tmp_path / "run")) == "run: finished, 100%, used 14, sent 24, lost 10"


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        make(GOLDEN, patch)
