"""The runs of the experiments: the history is kept, durable, never repeated, and the same side by side."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.experiments import small
from zomirror.errors import ArgumentError, DataError, ZomirrorError
from zomirror.paper import images as pictures
from zomirror.paper import runner
from zomirror.paper.cases import case
from zomirror.paper.runner import RunJob, run, run_together
from zomirror.paper.settings import PRINTED, Algorithm
from zomirror.paper.store import Store, read_study, write_study

ROOT = Path(__file__).resolve().parents[2]


def test_an_outcome_is_the_history_of_the_run(lenet: pictures.BundledNetwork, images: Any, tmp_path: Path) -> None:
    for task in small(lenet, images, count=3):
        [found] = run_together([RunJob(task, tmp_path)])
        assert found is not None
        pixels, label = pictures.image("mnist", task.image)
        posed = case(PRINTED, "mnist", task.kind, pixels, label, mean=(0.0,), std=(1.0,))
        result = zm.minimize(
            lambda points, posed=posed: posed.loss(posed.margins(pictures.opened(lenet.path), points)),
            posed.start,
            l1=0.1,
            l2=0.1,
            bounds=(posed.lower, posed.upper),
            budget=604,
            method=PRINTED.method(Algorithm.named(task.algorithm)),
            rng=task.image,
        )
        assert found.fun[0] == pytest.approx(result.history.fun[0], rel=1e-4)
        assert found.queries == result.nfev <= 604
        assert found.nnz == np.count_nonzero(result.x)
        if task.algorithm != "recommended":
            np.testing.assert_allclose(found.fun, result.history.fun, rtol=1e-4)
        else:  # its iterations are short: what counts is the last point that was reached with so many queries
            reached = np.concatenate([[0], result.history.nfev[:-1]])
            known = [result.history.fun[np.flatnonzero(reached <= 201 * t)[-1]] for t in range(4)]
            np.testing.assert_allclose(found.fun, known, rtol=1e-4)


def kept(folder: Path) -> list[Any]:
    """What a study's file says, without the time it took."""
    return [one.to_dict() | {"seconds": 0} for one in read_study(folder / "mnist-printed.json")]


def test_finishing_twice_computes_nothing_new(lenet: pictures.BundledNetwork, images: Any, tmp_path: Path) -> None:
    tasks, told = small(lenet, images), []
    work = run(tasks, tmp_path, tell=lambda done, total: told.append((done, total)))
    assert work == runner.Finished(found=0, computed=4, left=0)
    assert told == [(i, 4) for i in range(5)]
    assert list((tmp_path / "runs").iterdir()) == [], "the journals of finished runs are dropped"
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.rglob("*.json")}
    assert run(tasks, tmp_path) == runner.Finished(found=4, computed=0, left=0)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.rglob("*.json")} == before
    # The file of results alone is enough.
    other = tmp_path / "other"
    other.mkdir()
    (other / "mnist-printed.json").write_bytes((tmp_path / "mnist-printed.json").read_bytes())
    assert run(tasks, other) == runner.Finished(found=4, computed=0, left=0)


CHILD = """
import sys
from pathlib import Path
from tests.support.experiments import small
from zomirror.paper import images as pictures
from zomirror.paper.runner import run
lenet = pictures.network("mnist")
tasks = small(lenet, pictures.chosen("mnist", lenet, 2), iterations=40)
run(tasks, Path(sys.argv[1]), lockstep=int(sys.argv[2]), tell=lambda done, total: print(done, flush=True))
"""


def begun(folder: Path, lockstep: int = 1) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(folder), str(lockstep)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str], folder: Path, finished: int) -> None:
    """Until so many runs are finished and the next one has asked something."""
    assert process.stdout is not None
    while int(process.stdout.readline()) < finished:
        pass
    end = time.monotonic() + 60
    while not any(answered(path.parent) for path in folder.glob("runs/*/journal.bin")):
        assert time.monotonic() < end
        time.sleep(0.002)


def answered(run_dir: Path) -> int:
    """Queries of a run that are in its journal; none while it is being made."""
    try:
        return zm.runs.inspect(run_dir).used
    except ZomirrorError:
        return 0


def test_killed_in_the_middle_it_goes_on_where_it_was(
    lenet: pictures.BundledNetwork, images: Any, tmp_path: Path
) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    tasks = small(lenet, images, iterations=40)
    with begun(killed) as process:
        wait_for(process, killed, finished=1)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    [left] = (killed / "runs").iterdir()
    used = zm.runs.inspect(left).used
    assert 0 < used < 40 * 201, "it was killed within a run"
    asked = 0
    real = pictures.opened(lenet.path)

    def counted(batch: Any) -> Any:
        nonlocal asked
        asked += len(batch)
        return real(batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "opened", lambda _: counted)
        work = run(tasks, killed)
    assert (work.left, work.signal) == (0, None)
    assert work.found >= 1
    full = sum(one.queries for task in tasks[work.found :] if (one := Store(killed).find(task)) is not None)
    assert asked <= full - used + 2 * 201, "what was answered before the kill is not asked again"
    run(tasks, whole)
    assert kept(killed) == kept(whole)
    assert (killed / "runs").is_dir()
    assert not list((killed / "runs").iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ended_side_by_side_they_go_on_where_they_were(
    lenet: pictures.BundledNetwork, images: Any, number: signal.Signals, tmp_path: Path
) -> None:
    ended, whole, tasks = tmp_path / "ended", tmp_path / "whole", small(lenet, images, iterations=40)
    with begun(ended, lockstep=4) as process:
        wait_for(process, ended, finished=0)
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == (0 if number == signal.SIGTERM else -number)
    left = list((ended / "runs").iterdir())
    assert left, "in the middle of them"
    assert run(tasks, ended, lockstep=2).left == 0
    run(tasks, whole)
    assert kept(ended) == kept(whole)


def test_a_signal_ends_it_cleanly(lenet: pictures.BundledNetwork, images: Any, tmp_path: Path) -> None:
    with begun(tmp_path) as process:
        wait_for(process, tmp_path, finished=1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0, "run() came back by itself"
    assert 1 <= len(list(read_study(tmp_path / "mnist-printed.json"))) < 4, "what was finished is in the file"
    assert run(small(lenet, images, iterations=40), tmp_path).left == 0


@pytest.mark.parametrize("lockstep", [2, 3, 10])
def test_side_by_side_they_give_the_same(
    lenet: pictures.BundledNetwork, images: Any, lockstep: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, sizes, told = small(lenet, images, count=6), [], []
    real = pictures.opened(lenet.path)

    def counted(batch: Any) -> Any:
        sizes.append(len(batch))
        return real(batch)

    run(tasks, tmp_path / "one")
    monkeypatch.setattr(runner, "opened", lambda _: counted)
    work = run(tasks, tmp_path / "many", lockstep=lockstep, tell=lambda done, total: told.append(done))
    assert work == runner.Finished(found=0, computed=6, left=0)
    assert told == [0, *range(lockstep, 6, lockstep), 6]
    assert kept(tmp_path / "many") == kept(tmp_path / "one")
    assert sum(sizes) == 6 * (3 * 201 + 1) + 6, "every query, and a look at whether the end is valid"
    assert max(sizes) >= min(lockstep, 4) * 201, "of the runs of one method all batches are one"


def test_side_by_side_in_two_processes(lenet: pictures.BundledNetwork, images: Any, tmp_path: Path) -> None:
    tasks = small(lenet, images)
    assert run(tasks, tmp_path / "both", workers=2, lockstep=2).computed == 4
    run(tasks, tmp_path / "one")
    assert kept(tmp_path / "both") == kept(tmp_path / "one")


def test_only_what_can_be_one_batch_runs_side_by_side(
    lenet: pictures.BundledNetwork, images: Any, tmp_path: Path
) -> None:
    tasks = small(lenet, images, count=4)
    other = [replace(tasks[0], replayed=True), replace(tasks[1], replayed=True, algorithm="expmd-1")]
    units = list(runner._side_by_side([*tasks, *other, tasks[0]], 3))
    assert units == [tasks[:3], tasks[3:], other, tasks[:1]]
    with pytest.raises(ArgumentError, match="lockstep"):
        run(tasks, tmp_path, lockstep=0)


def test_a_run_that_fails_side_by_side_leaves_the_others_alone(
    lenet: pictures.BundledNetwork, images: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, real, calls = small(lenet, images, count=3), pictures.opened(lenet.path), []

    def failing(batch: Any) -> Any:
        calls.append(len(batch))
        if len(calls) > 2 and len(batch) > 201:  # from some batch on it takes no joint ones
            raise RuntimeError("too large")
        if len(calls) == 4:
            raise RuntimeError("not you")
        return real(batch)

    monkeypatch.setattr(runner, "opened", lambda _: failing)
    with pytest.raises(ZomirrorError, match="not you"):
        run(tasks, tmp_path, lockstep=3)
    monkeypatch.undo()
    assert run(tasks, tmp_path, lockstep=3) == runner.Finished(found=2, computed=1, left=0)
    run(tasks, tmp_path / "whole")
    assert kept(tmp_path) == kept(tmp_path / "whole")


def test_workers_give_the_same(lenet: pictures.BundledNetwork, images: Any, tmp_path: Path) -> None:
    tasks = small(lenet, images)
    assert run(tasks, tmp_path / "two", workers=2).computed == 4
    run(tasks, tmp_path / "one")
    assert kept(tmp_path / "two") == kept(tmp_path / "one")


def test_a_run_that_fails_is_told_and_the_finished_ones_are_kept(
    lenet: pictures.BundledNetwork, images: Any, tmp_path: Path
) -> None:
    tasks = small(lenet, images)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(ZomirrorError, match="broken"):
        run([tasks[0], replace(tasks[1], model=broken), tasks[2]], tmp_path)
    assert len(list(read_study(tmp_path / "mnist-printed.json"))) == 1
    assert run(tasks, tmp_path).found == 1


def test_a_damaged_outcome_is_refused_with_what_to_do(
    lenet: pictures.BundledNetwork, images: Any, tmp_path: Path
) -> None:
    [task] = small(lenet, images, count=1)
    path = tmp_path / "done" / f"{task.key}.json"
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(DataError, match="remove it"):
        run([task], tmp_path)
    path.write_text(json.dumps({"key": 3}))
    with pytest.raises(DataError, match="expected the outcome"):
        run([task], tmp_path)


def test_a_run_with_another_key_takes_the_place_of_the_old_one(
    lenet: pictures.BundledNetwork, images: Any, tmp_path: Path
) -> None:
    """The recommended method gets better, and with it the key of its runs: a study must not hold both."""
    [task] = small(lenet, images, count=1)
    run([task], tmp_path)
    path = tmp_path / f"{task.study}.json"
    [now] = read_study(path)
    write_study(path, [now, replace(now, key="0" * 20, fun=tuple(2 * value for value in now.fun))])
    run([task], tmp_path)
    assert list(read_study(path)) == [now]
