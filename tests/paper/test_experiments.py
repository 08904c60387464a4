"""The experiments of the paper: problems as printed, grids, durable runs that are never repeated, and what is kept."""

from __future__ import annotations

import json
import math
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
from tests.support.experiments import falling, made
from zomirror.contrast.loss import change_margin, keep_margin
from zomirror.errors import ArgumentError, DataError, ZomirrorError
from zomirror.paper import dimension, runner
from zomirror.paper import images as pictures
from zomirror.paper.cases import case
from zomirror.paper.grid import TELLING, Task, grid
from zomirror.paper.outcome import RunOutcome, steps
from zomirror.paper.runner import RunJob, run, run_together
from zomirror.paper.settings import (
    ALGORITHMS,
    AUTHORS,
    PAPER,
    PRINTED,
    RECOMMENDED,
    SETTINGS,
    Algorithm,
    LooseRadius,
)
from zomirror.paper.store import Store, read_study, write_study

ROOT = Path(__file__).resolve().parents[2]
MEAN, STD = pictures.SCALING["cifar"]


@pytest.fixture(scope="module")
def lenet() -> pictures.BundledNetwork:
    return pictures.network("mnist")


@pytest.fixture(scope="module")
def images(lenet: pictures.BundledNetwork) -> tuple[tuple[int, ...], ...]:
    return pictures.chosen("mnist", lenet, 2)


def f_of(posed: Any, model: Any) -> Any:
    """The black box of a case."""
    return lambda points: posed.loss(posed.margins(model, points))


def small(lenet: pictures.BundledNetwork, images: Any, count: int = 4, iterations: int = 3) -> list[Task]:
    """Some runs of a few iterations."""
    algorithms = [Algorithm.named(name) for name in ("adaexpmd", "psgd-10", "recommended")]
    return grid("mnist", "printed", lenet, images, algorithms=algorithms, iterations=iterations)[:count]


# --- settings and problems -----------------------------------------------------------------------------------------


def test_there_are_thirteen_settings_of_the_paper_and_the_recommended_method() -> None:
    assert len(PAPER) == 13
    assert (*PAPER, RECOMMENDED) == ALGORITHMS
    assert [one.eta for one in PAPER if one.family == "psgd"] == [1, 10, 100, 1_000, 10_000, 100_000]
    for one in ALGORITHMS:
        assert Algorithm.named(one.name) == one
    for name in ("adam", "expmd", "adaexpmd-3", ""):
        with pytest.raises(ArgumentError, match="expected an algorithm"):
            Algorithm.named(name)


def test_the_methods_are_those_of_the_page() -> None:
    assert PRINTED.method(Algorithm("adaexpmd")) == zm.methods.zo_ada_expmd(200)
    assert PRINTED.method(Algorithm("expmd", 10.0)) == zm.methods.zo_expmd(10.0, 200)
    # The paper prints eta |x - x_t|^2, its code has half of that: ours has the half written out.
    assert PRINTED.method(Algorithm("psgd", 10.0)) == zm.methods.zo_psgd(20.0, 200)
    assert AUTHORS.method(Algorithm("psgd", 10.0)) == zm.methods.zo_psgd(10.0, 200)
    assert AUTHORS.method(Algorithm("adaexpmd")) == zm.methods.zo_ada_expmd(200, c=1.0, radius=LooseRadius())
    assert LooseRadius()(784, 200) == pytest.approx(math.sqrt(4 * math.e * math.log(783) / 200) / 784)
    assert PRINTED.method(RECOMMENDED) is None


def picture(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, 256, shape, dtype=np.uint8)


def test_pertinent_negatives_of_mnist_live_where_the_settings_say() -> None:
    image = picture(np.random.default_rng(0), (28, 28))
    x0 = (image.astype(np.float32) / np.float32(255)).ravel()
    for settings, lower in ((PRINTED, 0 * x0), (AUTHORS, -x0)):
        posed = case(settings, "mnist", "PN", image, 3, mean=(0.0,), std=(1.0,))
        np.testing.assert_allclose(posed.lower, lower, atol=1e-7)
        np.testing.assert_allclose(posed.upper, 1 - x0, atol=1e-7)
        np.testing.assert_allclose(posed.start, (lower + 1 - x0) / 2, atol=1e-6)
        np.testing.assert_array_equal(posed.base, x0)


def test_pertinent_negatives_of_cifar_live_where_the_settings_say() -> None:
    image = picture(np.random.default_rng(1), (32, 32, 3))
    mean, std = (np.array(side).reshape(3, 1, 1) for side in (MEAN, STD))
    for settings in (PRINTED, AUTHORS):
        posed = case(settings, "cifar", "PN", image, 3, mean=MEAN, std=STD)
        low, high = ((side + posed.base).reshape(3, 32, 32) for side in (posed.lower, posed.upper))
        if settings is PRINTED:
            np.testing.assert_allclose(low * std + mean, 0, atol=1e-6)
            np.testing.assert_allclose(high * std + mean, 1, atol=1e-6)
            centre = (posed.start + posed.base).reshape(3, 32, 32) * std + mean
            np.testing.assert_allclose(centre, 0.5, atol=1e-6)
        else:
            np.testing.assert_allclose(low * std, -1, atol=1e-5)
            np.testing.assert_allclose(high * std, 1, atol=1e-5)
            assert not posed.start.any()
        seen = posed.seen(np.zeros((1, 3072), np.float32))[0]
        np.testing.assert_allclose(seen * std + mean, image.transpose(2, 0, 1) / 255, atol=1e-6)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_pertinent_positives_live_between_nothing_and_the_image(settings: Any) -> None:
    rng = np.random.default_rng(2)
    for data, shape in (("mnist", (28, 28)), ("cifar", (32, 32, 3))):
        mean, std = pictures.SCALING[data]
        posed = case(settings, data, "PP", picture(rng, shape), 3, mean=mean, std=std)
        assert (posed.lower <= 0).all()
        assert (posed.upper >= 0).all()
        np.testing.assert_array_equal(np.where(posed.start > 0, posed.upper, posed.lower), posed.start)
        assert not posed.base.any()


def test_f_is_the_margin_under_the_loss(lenet: pictures.BundledNetwork) -> None:
    model = pictures.opened(lenet.path)
    image, label = pictures.image("mnist", 0)
    points = np.random.default_rng(3).random((5, 784), dtype=np.float32)
    x0 = image.ravel().astype(np.float32) / np.float32(255)
    for kind, scores, margin in (
        ("PN", model((points + x0).reshape(-1, 1, 28, 28)), change_margin),
        ("PP", model(points.reshape(-1, 1, 28, 28)), keep_margin),
    ):
        expected = margin(scores, label)
        hinge, soft = (
            f_of(case(settings, "mnist", kind, image, label, mean=(0.0,), std=(1.0,)), model)(points)
            for settings in (PRINTED, AUTHORS)
        )
        np.testing.assert_array_equal(hinge, np.maximum(expected, 0))
        np.testing.assert_allclose(soft, np.log1p(np.exp(expected)), rtol=1e-5)


@pytest.mark.parametrize("scale", [2, 4])
def test_splitting_pixels_changes_nothing_but_the_dimension(lenet: pictures.BundledNetwork, scale: int) -> None:
    model = pictures.opened(lenet.path)
    image, label = pictures.image("mnist", 1)
    plain, fine = (
        case(PRINTED, "mnist", "PN", image, label, mean=(0.0,), std=(1.0,), upscale=s, shared=True) for s in (1, scale)
    )
    assert fine.start.size == 784 * scale**2
    x = np.random.default_rng(4).random((3, 28, 28), dtype=np.float32) * plain.upper.reshape(28, 28)
    split = np.repeat(np.repeat(x, scale, axis=1), scale, axis=2).reshape(3, -1)
    np.testing.assert_allclose(f_of(fine, model)(split), f_of(plain, model)(x.reshape(3, -1)), atol=1e-4)

    def penalty(posed: Any, rows: Any) -> Any:
        return posed.weight * (np.abs(rows).sum(axis=1) + np.square(rows).sum(axis=1) / 2)

    np.testing.assert_allclose(penalty(fine, split), penalty(plain, x.reshape(3, -1)), rtol=1e-4)


# --- images --------------------------------------------------------------------------------------------------------


def test_images_are_the_first_correct_ones_of_each_class(lenet: pictures.BundledNetwork, images: Any) -> None:
    assert len(images) == 2
    for row in images:
        found = [pictures.image("mnist", index) for index in row]
        assert [label for _, label in found] == list(range(10))
        said = pictures.predicted("mnist", np.stack([pixels for pixels, _ in found]), lenet)
        assert said.tolist() == list(range(10))
    assert all(first < second for first, second in zip(*images, strict=True))
    assert pictures.chosen("mnist", lenet, 1) == images[:1]
    with pytest.raises(ArgumentError, match="at least one image"):
        pictures.chosen("mnist", lenet, 0)


def test_a_network_is_known_by_its_content(lenet: pictures.BundledNetwork, tmp_path: Path) -> None:
    copy = tmp_path / "mine.onnx"
    copy.write_bytes(lenet.path.read_bytes())
    mine = pictures.network("mnist", copy)
    assert (mine.digest, mine.name, lenet.name) == (lenet.digest, "mine", "")
    with pytest.raises(ArgumentError, match="does not exist"):
        pictures.network("mnist", tmp_path / "none.onnx")


# --- the grid ------------------------------------------------------------------------------------------------------


def test_the_grid_is_every_image_kind_and_algorithm(lenet: pictures.BundledNetwork, images: Any) -> None:
    tasks = grid("mnist", "printed", lenet, images)
    assert len(tasks) == 2 * 10 * 2 * 14
    assert len({task.key for task in tasks}) == len(tasks)
    beginning = tasks[: 10 * 2 * len(TELLING)]
    assert {task.algorithm for task in beginning} == set(TELLING)
    assert {task.image for task in beginning} == set(images[0]), "one image of each class comes first"
    assert {task.image for task in tasks[: len(tasks) // 2]} == set(images[0])


def test_a_key_is_the_digest_of_what_decides_the_outcome(lenet: pictures.BundledNetwork) -> None:
    task = Task("mnist", "printed", "PN", "adaexpmd", 3, lenet.path, lenet.digest)
    for same in (replace(task, model=Path("elsewhere.onnx")), replace(task, network="mine")):
        assert same.key == task.key
    others: list[dict[str, Any]] = [
        {"data": "cifar"},
        {"settings": "authors"},
        {"kind": "PP"},
        {"algorithm": "expmd-1"},
        {"image": 4},
        {"digest": "0" * 64},
        {"iterations": 100},
        {"upscale": 2},
        {"upscale": 2, "shared": True},
        {"repeat": 1},
    ]
    keys = {replace(task, **other).key for other in others}
    assert len(keys | {task.key}) == 1 + len(others)


def test_the_dimension_is_studied_on_the_same_images(lenet: pictures.BundledNetwork, images: Any) -> None:
    tasks = dimension.tasks(lenet, images[:1])
    assert len({task.key for task in tasks}) == len(tasks)
    assert {(task.upscale, task.shared) for task in tasks} == {(1, False), (2, True), (2, False), (4, True), (4, False)}
    assert {task.image for task in tasks} == set(images[0])
    # In 784 dimensions they are runs of the main grid, which need not be repeated.
    main = {task.key for task in grid("mnist", "printed", lenet, images)}
    assert all(task.key in main for task in tasks if task.upscale == 1)


# --- outcomes and where they are kept ------------------------------------------------------------------------------


def test_steps_are_dense_first_and_end_with_the_last() -> None:
    assert steps(3) == (0, 1, 2, 3)
    assert steps(200)[:52] == (*range(51), 55)
    assert steps(200)[-1] == 200
    assert {25, 50, 100, 150, 200} <= set(steps(200))


def test_an_outcome_is_the_history_of_the_run(lenet: pictures.BundledNetwork, images: Any, tmp_path: Path) -> None:
    for task in small(lenet, images, count=3):
        [found] = run_together([RunJob(task, tmp_path)])
        assert found is not None
        pixels, label = pictures.image("mnist", task.image)
        posed = case(PRINTED, "mnist", task.kind, pixels, label, mean=(0.0,), std=(1.0,))
        result = zm.minimize(
            f_of(posed, pictures.opened(lenet.path)),
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


def test_outcomes_survive_their_files(tmp_path: Path) -> None:
    path = tmp_path / "mnist-printed.json"
    runs = [made("adaexpmd", falling(0.1), image=i) for i in range(3)]
    runs += [made("psgd-2.5", falling(0.2), upscale=2, shared=True, network="mine")]
    write_study(path, reversed(runs))
    assert sorted(read_study(path), key=lambda one: one.key) == sorted(runs, key=lambda one: one.key)
    first = path.read_bytes()
    write_study(path, runs)
    assert path.read_bytes() == first, "the order of the runs does not matter"
    assert list(read_study(tmp_path / "none.json")) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": "other", "runs": []}',
        '{"format": "zomirror reproduction 1", "runs": 3}',
        '{"format": "zomirror reproduction 1", "runs": [{"key": "a"}]}',
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mnist-printed.json"
    path.write_text(text)
    with pytest.raises(DataError, match="expected"):
        list(read_study(path))


def test_a_short_or_wild_curve_is_refused() -> None:
    whole = made("adaexpmd", falling(0.1)).to_dict()
    for fun in (whole["fun"][:-1], [*whole["fun"][:-1], math.nan], [*whole["fun"][:-1], "x"], None):
        with pytest.raises(DataError, match="expected"):
            RunOutcome.from_dict(whole | {"fun": fun})


# --- runs ----------------------------------------------------------------------------------------------------------


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
from tests.paper.test_experiments import small
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
