"""Whole units of work over workers.

The outcome of a unit is what the function makes of its task alone, so it does not matter which worker did it,
when, or how many there were.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from zomirror.errors import WorkerError
from zomirror.parallel.cluster import ClusterCrew
from zomirror.parallel.dispatch import Round
from zomirror.parallel.foreign import GivenCrew
from zomirror.parallel.local import LocalCrew
from zomirror.parallel.slot import Crew
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
    """Yield (i, function(tasks[i])) as they finish, or (i, the exception); every i once, in any order.

    `workers`: see Workers. `again` says that a unit may run a second time when its worker is lost, because what the
    first one spent is in a journal that the second goes on from, and whose lock keeps the two apart. Otherwise a
    lost worker's unit has the outcome WorkerError. Once `stop()` is true no unit is begun, those under way are
    asked to stop, and the rest is not yielded.
    """
    team = Team(workers)

    def outcomes() -> Iterator[tuple[int, Value | Exception]]:
        with team:
            yield from team.spread(function, tasks, again=again, stop=stop)

    return outcomes()


class Team:
    """Workers that stay for several rounds of units; a context manager that lets them go."""

    def __init__(self, workers: Any) -> None:
        self.plan = Workers.of(workers)
        self._crew: Crew | None = None
        self._works: tuple[Callable[[Any], Any], Work] | None = None

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        if self._crew is not None:
            self._crew.close()
            self._crew = None

    def spread(
        self,
        function: Callable[[Task], Value],
        tasks: Iterable[Task],
        *,
        again: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[int, Value | Exception]]:
        """One round of units, as the function spread."""
        if self._works is None or self._works[0] is not function:
            self._works = (function, Work(function))
        units = [Unit(self._works[1], task, uuid.uuid4().hex) for task in tasks]
        if self.plan.serial:
            return _serially(units, stop)
        if self.plan.is_map:
            return _mapped(self.plan, units)
        if not self.plan.is_foreign:
            self._works[1].packed()  # a function that cannot travel is told before anybody is started
        if self._crew is None:
            self._crew = _crew(self.plan)
        return Round(self._crew, self.plan, units, again=again, stop=stop).outcomes()


def _crew(plan: Workers) -> Crew:
    if plan.scheduler is not None:
        return ClusterCrew.connect(plan.scheduler, plan.silence)
    if plan.dask_client is not None:
        return ClusterCrew(plan.dask_client, plan.silence)
    if plan.count is not None:
        return LocalCrew(plan.count, plan.silence)
    return GivenCrew(plan.where)


def _serially(units: list[Unit], stop: Callable[[], bool]) -> Iterator[tuple[int, Any]]:
    for i, unit in enumerate(units):
        if stop():
            return
        yield i, run_unit(unit).result


def _mapped(plan: Workers, units: list[Unit]) -> Iterator[tuple[int, Any]]:
    """All units by one call of a function like map, in a thread of its own, as it may never come back."""
    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def call() -> None:
        try:
            for outcome in plan.where(run_unit, units):
                arrived.put(outcome)
        except Exception as error:  # noqa: BLE001  the workers' trouble, told below
            arrived.put(error)

    threading.Thread(target=call, daemon=True).start()
    until = time.monotonic() + len(units) * (plan.patience or 0.0)
    for i in range(len(units)):
        try:
            outcome = arrived.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            outcome = TimeoutError(f"nothing came back in {plan.patience:g} s a unit")
        if isinstance(outcome, Exception):
            error = WorkerError(f"the function like map given as workers failed ({outcome}): see what became of it")
            error.__cause__ = outcome
            yield from ((k, error) for k in range(i, len(units)))
            return
        yield i, outcome.result
