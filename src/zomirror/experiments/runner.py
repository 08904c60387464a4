"""Runs tasks, each as a durable run, and keeps what they leave; it never draws."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zomirror.errors import ArgumentError, ZomirrorError
from zomirror.experiments.grid import Task
from zomirror.experiments.outcome import Outcome, outcome
from zomirror.experiments.pictures import SCALING, image, opened
from zomirror.experiments.problems import case
from zomirror.experiments.replay import replayed
from zomirror.experiments.settings import QUERIES, SETTINGS, Algorithm
from zomirror.experiments.store import Store
from zomirror.losses import is_valid
from zomirror.minimize import minimize
from zomirror.parallel import spread
from zomirror.result import Status
from zomirror.runs.interrupt import stop_on_signal

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


def run_one(job: Job) -> Outcome | None:
    """Run a task to its end, or go on with it; None when a signal stopped it."""
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
    model = opened(task.model)
    method, start = settings.method(Algorithm.named(task.algorithm)), posed.start
    if task.replayed:
        if method is None:
            raise ArgumentError("expected a method of the paper to replay, got the recommended one")
        # In the reference's precision too: beside a kink the last digit of float32 leads elsewhere.
        method, start = replayed(method, task.seed), posed.start.astype(np.float64)
    started = time.process_time()
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
    found = outcome(task, label, result, valid=valid, seconds=time.process_time() - started)
    store.keep(task, found)
    return found


def run(tasks: Sequence[Task], folder: Path, *, workers: Any = None, tell: Tell = lambda *_: None) -> Work:
    """Finish the tasks; those finished before are not run again, and an interrupted one goes on where it was.

    `workers` are those of `zomirror.parallel`. A run that fails stops the rest, after those under way.
    """
    store = Store(folder)
    todo = [task for task in tasks if store.find(task) is None]
    found, done = len(tasks) - len(todo), 0
    failures: list[Exception] = []
    tell(found, len(tasks))
    with stop_on_signal() as stop:
        jobs = [Job(task, folder) for task in todo]
        for _, one in spread(run_one, jobs, workers=workers, again=True, stop=lambda: bool(stop or failures)):
            if isinstance(one, Exception):
                failures.append(one)
            elif one is not None:
                done += 1
                tell(found + done, len(tasks))
            if done % MERGED == 0:
                store.merge(tasks)
    store.merge(tasks)
    if failures:
        raise failures[0]
    return Work(found, done, len(todo) - done, stop.requested)
