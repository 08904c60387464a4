"""Run directories that this version wrote, kept as they were: they load for ever, and an interrupted one goes on.

python -m tests.engine.test_durable_golden writes them anew, which only a new format is a reason for.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.runs import inspect, lock

GOLDEN = Path(__file__).parents[1] / "golden" / "durable"
X0 = np.full(6, 0.25)
OWNER = lock.Owner(4711, "golden", "00000000-0000-0000-0000-000000000000", "12345", "2026-01-01T00:00:00Z")
WEIGHTS = np.array([[1.0, -1.0], [0.5, -0.25], [-1.0, 2.0], [0.0, 0.125], [2.0, 0.0], [-0.5, 0.5]])


class Box:
    """A black box that counts, and may kill its process."""

    def __init__(self, fun: Any, kill_at: int = 0) -> None:
        self.fun, self.kill_at = fun, kill_at
        self.rows = self.calls = 0

    def __call__(self, batch: Any) -> Any:
        self.rows += len(batch)
        self.calls += 1
        if self.calls == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.fun(batch)


def f(points: Any) -> Any:
    return np.square(points - 0.5).sum(axis=1)


def scores(batch: Any) -> Any:
    return (batch[:, :, None] * WEIGHTS).sum(axis=1)


def minimised(fun: Any, max_sent: int = 200, **durable: Any) -> zm.Result:
    method = zm.methods.MirrorDescent(zm.methods.Entropy(), zm.methods.TwoPoint(10), zm.methods.Adaptive())
    return zm.minimize(fun, X0, l1=0.1, bounds=(0, 1), budget=78, max_sent=max_sent, method=method, rng=0, **durable)


def explained(model: Any, **durable: Any) -> zm.Explanation:
    method = zm.methods.MirrorDescent(zm.methods.Entropy(), zm.methods.TwoPoint(10), zm.methods.Adaptive())
    options: dict[str, Any] = {"kind": "PN", "signed": True, "budget": 150, "max_sent": 300, "method": method, "rng": 0}
    found: zm.Explanation = zm.explain(model, X0, **options, **durable)
    return found


def write(root: Path) -> None:
    """Every directory, with nothing of this machine in it."""
    lock.Owner.here = classmethod(lambda cls: OWNER)  # type: ignore[assignment]
    minimised(f, run_dir=root / "minimized")
    explained(scores, run_dir=root / "explained")
    pid = os.fork()
    if pid == 0:
        minimised(Box(f, 5), run_dir=root / "killed")
    os.waitpid(pid, 0)
    (root / "killed" / "lock").write_bytes(b"")


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "golden"))


def test_a_finished_minimisation_loads(golden: Path) -> None:
    info = inspect(golden / "minimized")
    assert (info.state, info.used, info.sent, info.lost, info.damage) == ("finished", 78, 78, 0, ())
    never = Box(f)
    result = minimised(never, run_dir=golden / "minimized")
    assert never.rows == 0
    assert (result.status, result.nfev, result.nit, result.seed) == (zm.Status.BUDGET, 78, 7, 0)
    assert result.x.shape == (6,)
    assert len(result.history) == 8
    np.testing.assert_allclose(result.x, minimised(f).x, rtol=1e-9)


def test_a_finished_explanation_loads(golden: Path) -> None:
    info = inspect(golden / "explained")
    assert (info.state, info.used, info.damage) == ("finished", info.sent, ())
    never = Box(scores)
    one = explained(never, run_dir=golden / "explained")
    assert never.rows == 0
    assert (one.kind, one.label, one.valid, one.nfev, one.seed) == ("PN", 0, True, info.used, 0)
    assert int(np.argmax(scores(one.perturbed[None])[0])) == one.contrast_label != one.label


def test_a_killed_minimisation_goes_on(golden: Path) -> None:
    info = inspect(golden / "killed")
    assert (info.state, info.used) == ("interrupted", 44)
    counted, whole = Box(f), minimised(f)
    # The machine that wrote it is gone, so all that was reserved counts as sent: a larger cap is needed to go on.
    result = minimised(counted, run_dir=golden / "killed", max_sent=1_000)
    assert counted.rows == 78 - 44
    assert (result.status, result.nfev) == (zm.Status.BUDGET, 78)
    assert 11 <= result.lost <= 200 - 44
    # The first values are the recorded ones; the last bits of others may be those of another processor.
    np.testing.assert_allclose(result.history.fun, whole.history.fun, rtol=1e-9)
    np.testing.assert_allclose(result.x, whole.x, rtol=1e-9)


@pytest.mark.parametrize("name", ["minimized", "explained", "killed"])
def test_a_run_of_the_first_format_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    place, never = Path(shutil.copytree(GOLDEN.parent / "format1" / name, tmp_path / "run")), Box(f)
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    with pytest.raises(
        zm.errors.RunError, match="has format 1, this version reads format 2: use the version that wrote"
    ):
        minimised(never, run_dir=place)
    assert never.rows == 0
    assert inspect(place).state == "damaged"
    assert "use the version that wrote it" in inspect(place).damage[0]
    assert {file.name: file.read_bytes() for file in place.iterdir() if file.name != "lock"}.items() <= before.items()


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN)
