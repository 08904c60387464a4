"""Run a function on many tasks by workers.

The outcome of a unit depends on its task alone, not on which worker ran it, when, or how many workers there were.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from zomirror.errors import WorkerError
from zomirror.parallel.cluster import ClusterPool
from zomirror.parallel.dispatch import Round
from zomirror.parallel.executor import ExecutorPool
from zomirror.parallel.local import LocalPool
from zomirror.parallel.slot import Pool
from zomirror.parallel.unit import Unit, Work, run_unit
from zomirror.parallel.workers import Workers

Task = TypeVar("Task")
Value = TypeVar("Value")


def spread(
    function: Callable[[Task], Value],
    tasks: Iterable[Task],
    *,
    workers: Any = None,
    again: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, Value | Exception]]:
    """Yield (i, function(tasks[i])) or (i, the exception) as the units finish, every i once.

    `workers`: see Workers. `again=True` lets a unit start again when its worker is lost; its journal must hold what
    it has spent, and its lock must keep two starts apart. With `again=False` such a unit yields a WorkerError.
    Once `stop()` is true no unit is started, running ones are asked to stop, and the rest is not yielded.
    """
    team = Team(workers)

    def outcomes() -> Iterator[tuple[int, Value | Exception]]:
        with team:
            yield from team.spread(function, tasks, again=again, stop=stop)

    return outcomes()


class Team:
    """Workers for several rounds of units; leaving its `with` block ends them."""

    def __init__(self, workers: Any) -> None:
        self.plan = Workers.of(workers)
        self._pool: Pool | None = None
        self._works: tuple[Callable[[Any], Any], Work] | None = None

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def spread(
        self,
        function: Callable[[Task], Value],
        tasks: Iterable[Task],
        *,
        again: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[int, Value | Exception]]:
        """One round of units; see the function `spread`."""
        if self._works is None or self._works[0] is not function:
            self._works = (function, Work(function))
        units = [Unit(self._works[1], task, uuid.uuid4().hex) for task in tasks]
        if self.plan.serial:
            return _serially(units, stop)
        if self.plan.is_map:
            return _mapped(self.plan, units)
        if not self.plan.is_foreign:
            self._works[1].packed()  # fails before any worker is started if the function cannot be pickled
        if self._pool is None:
            self._pool = _pool(self.plan)
        return Round(self._pool, self.plan, units, again=again, stop=stop).outcomes()


def _pool(plan: Workers) -> Pool:
    if plan.scheduler is not None:
        return ClusterPool.connect(plan.scheduler, plan.silence)
    if plan.dask_client is not None:
        return ClusterPool(plan.dask_client, plan.silence)
    if plan.count is not None:
        return LocalPool(plan.count, plan.silence)
    return ExecutorPool(plan.where)


def _serially(units: list[Unit], stop: Callable[[], bool]) -> Iterator[tuple[int, Any]]:
    for i, unit in enumerate(units):
        if stop():
            return
        yield i, run_unit(unit).result


def _mapped(plan: Workers, units: list[Unit]) -> Iterator[tuple[int, Any]]:
    """All units by one call of a function like map, in a thread of its own because it may never return."""
    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def call() -> None:
        try:
            for outcome in plan.where(run_unit, units):
                arrived.put(outcome)
        except Exception as error:  # noqa: BLE001  reported below
            arrived.put(error)

    threading.Thread(target=call, daemon=True).start()
    until = time.monotonic() + len(units) * plan.patience
    for i in range(len(units)):
        try:
            outcome = arrived.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            outcome = TimeoutError(f"no result within {plan.patience:g} s per unit")
        if isinstance(outcome, Exception):
            error = WorkerError(f"the function like map given as workers failed ({outcome}): see its own messages")
            error.__cause__ = outcome
            yield from ((k, error) for k in range(i, len(units)))
            return
        yield i, outcome.result
