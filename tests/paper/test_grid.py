"""The grid of runs: every image, kind and algorithm once, known by what decides the outcome."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from zomirror.paper import dimension
from zomirror.paper import images as pictures
from zomirror.paper.grid import TELLING, Task, grid


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
