"""Runs tasks, each as a durable run, and keeps what they leave; it never draws."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from zomirror.checks import positive_integer
from zomirror.contrast.loss import is_valid
from zomirror.engine.black_box import BlackBox, checked_values
from zomirror.engine.driver import drive_many
from zomirror.engine.interrupt import stop_on_signal
from zomirror.engine.request import Job, Search
from zomirror.errors import ArgumentError, ZomirrorError
from zomirror.minimization import durable_minimization
from zomirror.numerics.arrays import Values
from zomirror.optimizer import Optimizer
from zomirror.paper.cases import Case, case
from zomirror.paper.grid import Task
from zomirror.paper.images import SCALING, image, opened
from zomirror.paper.outcome import RunOutcome, outcome
from zomirror.paper.reference import replayed
from zomirror.paper.settings import QUERIES, SETTINGS, Algorithm
from zomirror.paper.store import Store
from zomirror.parallel import spread
from zomirror.result import Result, Status

MERGED = 200
"""The files of the studies are rewritten after each 200 runs; a finished run is on the disk before that."""
Tell = Callable[[int, int], object]
"""Told how many of how many runs are finished."""


@dataclass(frozen=True, slots=True)
class RunJob:
    """A task and the folder in which it runs: all that a worker needs to know."""

    task: Task
    folder: Path


@dataclass(frozen=True, slots=True)
class Finished:
    """What a call of `run` did."""

    found: int
    """Runs that were finished before."""
    computed: int
    left: int
    signal: int | None = None
    """The signal that ended it early."""


def run_together(jobs: Sequence[RunJob]) -> list[RunOutcome | None]:
    """Run tasks of one model to their ends, its batches shared; None for those that a signal stopped."""
    stores = [Store(job.folder) for job in jobs]
    known = [store.find(job.task) for store, job in zip(stores, jobs, strict=True)]
    todo = [i for i, found in enumerate(known) if found is None]
    if not todo:
        return known
    model = opened(jobs[0].task.model)
    posed = {i: _Posed.of(jobs[i].task) for i in todo}
    started = time.thread_time()
    with stop_on_signal() as stop:
        searches = [posed[i].job(stores[i].run_dir(jobs[i].task)) for i in todo]
        results = drive_many(searches, BlackBox(model, "the model"), lockstep=len(todo), stop=lambda: bool(stop))
    seconds = (time.thread_time() - started) / len(todo)
    for i, result in zip(todo, results, strict=True):
        task = jobs[i].task
        if isinstance(result, ZomirrorError):
            continue
        if result.status is Status.INTERRUPTED:
            continue
        if result.status is not Status.BUDGET:
            raise ZomirrorError(f"the run {task.key} ({task.kind} of image {task.image}) ended early: {result.message}")
        valid = bool(is_valid(posed[i].case.margins(model, result.x[None]))[0])
        known[i] = found = outcome(task, posed[i].case.label, result, valid=valid, seconds=seconds)
        stores[i].keep(task, found)
    if failures := [result for result in results if isinstance(result, ZomirrorError)]:
        raise failures[0]
    return known


def _guarded(search: Search[Result]) -> Search[Result | ZomirrorError]:
    """The search, or the error that ended it: the others that share its batches go on."""
    try:
        return (yield from search)
    except ZomirrorError as error:
        return error


@dataclass(frozen=True, slots=True, eq=False)
class _Posed:
    """A task as an optimisation problem with the method that solves it."""

    task: Task
    case: Case
    optimizer: Optimizer

    @classmethod
    def of(cls, task: Task) -> _Posed:
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
        method, start = settings.method(Algorithm.named(task.algorithm)), posed.start
        if task.replayed:
            if method is None:
                raise ArgumentError("expected a method of the paper to replay, got the recommended one")
            # In the reference's precision too: beside a kink the last digit of float32 leads elsewhere.
            method, start = replayed(method, task.seed), posed.start.astype(np.float64)
        weight, bounds = posed.weight, (posed.lower, posed.upper)
        return cls(task, posed, Optimizer(start, l1=weight, l2=weight, bounds=bounds, method=method, rng=task.seed))

    def job(self, run_dir: Path) -> Job[Result | ZomirrorError]:
        """The run, ready to be driven before the model."""
        budget = QUERIES * self.task.iterations + 1
        cap = 2 * QUERIES * self.task.iterations  # the model is ours: a batch lost to a kill may be asked again
        settings = {"task": "minimize", "target": None, "nonfinite": "stop", "budget": budget}
        how: dict[str, Any] = {"inputs": self.case.seen, "keep": self._keep}
        job = durable_minimization(self.optimizer, run_dir, settings, budget, cap, **how)
        return Job(_guarded(job.search), job.ledger)

    def _keep(self, scores: Any, rows: int) -> Values:
        return checked_values(self.case.loss(self.case.margin(scores)), rows)


def run(
    tasks: Sequence[Task],
    folder: Path,
    *,
    workers: Any = None,
    lockstep: int = 1,
    tell: Tell = lambda *_: None,
) -> Finished:
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
        units = [[RunJob(task, folder) for task in some] for some in _side_by_side(todo, lockstep)]
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
    return Finished(found, done, len(todo) - done, stop.requested)


def _side_by_side(tasks: Sequence[Task], most: int) -> Iterator[list[Task]]:
    """Lists of at most `most` tasks whose batches can be one: of one model, in one precision."""
    for _, alike in groupby(tasks, lambda task: (task.model, task.replayed)):
        waiting = list(alike)
        for start in range(0, len(waiting), most):
            yield waiting[start : start + most]
