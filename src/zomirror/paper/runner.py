"""Runs tasks, each as a durable run, and keeps what they leave; it never draws."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from zomirror.checks import positive_integer
from zomirror.contrast.loss import is_valid
from zomirror.engine.interrupt import stop_on_signal
from zomirror.errors import ArgumentError, ZomirrorError
from zomirror.minimization import minimize
from zomirror.paper.cases import case
from zomirror.paper.grid import Task
from zomirror.paper.images import SCALING, image, opened
from zomirror.paper.joint import Joint, Model
from zomirror.paper.outcome import Outcome, outcome
from zomirror.paper.reference import replayed
from zomirror.paper.settings import QUERIES, SETTINGS, Algorithm
from zomirror.paper.store import Store
from zomirror.parallel import spread
from zomirror.result import Status

MERGED = 200
"""After so many runs the files of the studies are written; what is finished is on the disk before that."""
Tell = Callable[[int, int], object]
"""Told how many of how many runs are finished."""


@dataclass(frozen=True, slots=True)
class Job:
    """A task and the folder in which it runs: all that a worker needs to know."""

    task: Task
    folder: Path


@dataclass(frozen=True, slots=True)
class Work:
    """What a call of `run` did."""

    found: int
    """Runs that were finished before."""
    computed: int
    left: int
    signal: int | None = None
    """The signal that ended it early."""


def run_together(jobs: Sequence[Job]) -> list[Outcome | None]:
    """Run tasks of one model side by side, such that it sees their batches as one; what `run_one` gives of each."""
    if len(jobs) == 1:
        return [run_one(jobs[0])]
    joint = Joint(opened(jobs[0].task.model), len(jobs))
    for job in jobs:
        image(job.task.data, job.task.image)  # a data set is read once, not by each thread

    def seated(i: int) -> Outcome | None:
        with joint.seat(i) as model:
            return run_one(jobs[i], model)

    with stop_on_signal(), ThreadPoolExecutor(len(jobs)) as threads:
        return list(threads.map(seated, range(len(jobs))))


def run_one(job: Job, model: Model | None = None) -> Outcome | None:
    """Run a task to its end, or go on with it; None when a signal stopped it. `model` is asked in place of its own."""
    task, store = job.task, Store(job.folder)
    if (known := store.find(task)) is not None:
        return known
    settings = SETTINGS[task.settings]
    mean, std = SCALING[task.data]
    pixels, label = image(task.data, task.image)
    posed = case(
        settings,
        task.data,
        task.kind,
        pixels,
        label,
        mean=mean,
        std=std,
        upscale=task.upscale,
        shared=task.shared,
    )
    model = opened(task.model) if model is None else model
    method, start = settings.method(Algorithm.named(task.algorithm)), posed.start
    if task.replayed:
        if method is None:
            raise ArgumentError("expected a method of the paper to replay, got the recommended one")
        # In the reference's precision too: beside a kink the last digit of float32 leads elsewhere.
        method, start = replayed(method, task.seed), posed.start.astype(np.float64)
    started = time.thread_time()
    result = minimize(
        posed.f(model),
        start,
        l1=posed.weight,
        l2=posed.weight,
        bounds=(posed.lower, posed.upper),
        budget=QUERIES * task.iterations + 1,
        max_sent=2 * QUERIES * task.iterations,  # the model is ours: a batch lost to a kill may be asked again
        method=method,
        rng=task.seed,
        run_dir=store.run_dir(task),
    )
    if result.status is Status.INTERRUPTED:
        return None
    if result.status is not Status.BUDGET:
        raise ZomirrorError(f"the run {task.key} ({task.kind} of image {task.image}) ended early: {result.message}")
    valid = bool(is_valid(posed.margins(model, result.x[None]))[0])
    found = outcome(task, label, result, valid=valid, seconds=time.thread_time() - started)
    store.keep(task, found)
    return found


def run(
    tasks: Sequence[Task],
    folder: Path,
    *,
    workers: Any = None,
    lockstep: int = 1,
    tell: Tell = lambda *_: None,
) -> Work:
    """Finish the tasks; those finished before are not run again, and an interrupted one goes on where it was.

    `workers` are those of `zomirror.parallel`, and each of them does `lockstep` runs at a time, whose batches the model
    is shown as one. A run that fails stops the rest, after those under way.
    """
    positive_integer("lockstep", lockstep)
    store = Store(folder)
    todo = [task for task in tasks if store.find(task) is None]
    found, done = len(tasks) - len(todo), 0
    failures: list[Exception] = []
    tell(found, len(tasks))
    with stop_on_signal() as stop:
        units = [[Job(task, folder) for task in some] for some in _side_by_side(todo, lockstep)]
        for _, several in spread(run_together, units, workers=workers, again=True, stop=lambda: bool(stop or failures)):
            before = done
            if isinstance(several, Exception):
                failures.append(several)
            else:
                done += sum(one is not None for one in several)
                tell(found + done, len(tasks))
            if done // MERGED > before // MERGED:
                store.merge(tasks)
    store.merge(tasks)
    if failures:
        raise failures[0]
    return Work(found, done, len(todo) - done, stop.requested)


def _side_by_side(tasks: Sequence[Task], most: int) -> Iterator[list[Task]]:
    """At most so many tasks whose batches can be one: of one model, in one precision."""
    for _, alike in groupby(tasks, lambda task: (task.model, task.replayed)):
        waiting = list(alike)
        for start in range(0, len(waiting), most):
            yield waiting[start : start + most]
