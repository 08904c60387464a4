"""Units over workers: who is free gets the next one, and nothing waits for ever.

The outcome of a unit is what the function makes of its task alone, so it does not matter which worker did it,
when, or how many there were.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from zomirror.errors import ArgumentError, ArgumentTypeError, BusyError, WorkerError
from zomirror.parallel.cluster import ClusterCrew
from zomirror.parallel.given import GivenCrew
from zomirror.parallel.local import TICK, LocalCrew
from zomirror.parallel.slot import Crew, Slot
from zomirror.parallel.unit import Outcome, Unit, Work, run_unit
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
        if self._crew is None:
            self._crew = _crew(self.plan)
        return _Round(self._crew, self.plan, units, again=again, stop=stop).outcomes()


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
        yield i, _opened(run_unit(unit))


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
        yield i, _opened(outcome)


@dataclass(eq=False)
class _Flight:
    """A unit under way, or waiting for its next start."""

    i: int
    unit: Unit
    starts: int = 0
    slot: Slot | None = None
    since: float | None = None
    not_before: float = 0.0
    busy_since: float | None = None


class _Round:
    """One round of units over a crew."""

    def __init__(self, crew: Crew, plan: Workers, units: list[Unit], *, again: bool, stop: Callable[[], bool]) -> None:
        self._crew, self._plan, self._again, self._stop = crew, plan, again, stop
        self._waiting = deque(_Flight(i, unit) for i, unit in enumerate(units))
        self._flying: dict[Future[Outcome], _Flight] = {}
        self._done: list[tuple[int, Any]] = []
        self._alone_since: float | None = None

    def outcomes(self) -> Iterator[tuple[int, Any]]:
        """Yield as they finish."""
        stopped, checked = False, time.monotonic()
        while self._waiting or self._flying:
            if not stopped and self._stop():
                stopped = True
                self._interrupt()
            self._launch()
            if not self._flying:
                time.sleep(0.05 if self._waiting else 0.0)
            for future in wait(self._flying, timeout=TICK, return_when=FIRST_COMPLETED).done:
                self._land(future, self._flying.pop(future))
            if time.monotonic() - checked >= TICK:
                checked = time.monotonic()
                self._check(checked)
            yield from self._taken()

    def _taken(self) -> list[tuple[int, Any]]:
        taken, self._done = self._done, []
        return taken

    def _interrupt(self) -> None:
        """Begin nothing more; wait for those that were reached, and leave those that were not."""
        self._waiting.clear()
        for future, flight in list(self._flying.items()):
            if flight.slot is not None and not flight.slot.interrupt():
                del self._flying[future]

    def _launch(self) -> None:
        """Give waiting units to free slots."""
        if not self._waiting:
            return
        try:
            slots = self._crew.slots(len(self._waiting) + len(self._flying))
        except WorkerError as error:
            self._give_up_waiting(str(error))
            return
        now = time.monotonic()
        self._look_for_company(now, there=len(slots))
        busy = {id(flight.slot) for flight in self._flying.values()}
        for slot in slots:
            if id(slot) in busy:
                continue
            flight = next((one for one in self._waiting if one.not_before <= now), None)
            if flight is None:
                return
            self._waiting.remove(flight)
            flight.slot, flight.since = slot, None
            flight.starts += 1
            unit = replace(flight.unit, ticket=uuid.uuid4().hex, pid=slot.pid)
            try:
                self._flying[slot.submit(unit)] = flight
            except (ArgumentError, ArgumentTypeError):
                raise
            except Exception as error:  # noqa: BLE001  a broken pool; nothing was begun
                self._start_again(flight, f"its worker took nothing: {type(error).__name__}: {error}")

    def _look_for_company(self, now: float, *, there: int) -> None:
        """Wait for workers to come, but not for ever."""
        if there or self._flying:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since > self._plan.silence:
            self._give_up_waiting(f"there has been no worker for {self._plan.silence:g} s")

    def _give_up_waiting(self, reason: str) -> None:
        while self._waiting:
            self._fail(self._waiting.popleft(), reason)

    def _land(self, future: Future[Outcome], flight: _Flight) -> None:
        """Take the outcome of a unit, or start it again."""
        error = None if future.cancelled() else future.exception()
        if future.cancelled():
            self._lose(flight, "its worker gave it back")
        elif isinstance(error, BrokenExecutor) or type(error).__module__.startswith("distributed."):
            self._lose(flight, f"its worker was lost ({type(error).__name__})", error)
        elif error is not None:
            self._fail(flight, f"it could not be sent, or not be brought back: {type(error).__name__}: {error}", error)
        elif (outcome := future.result()).refused:
            if flight.slot is not None:
                flight.slot.leave()
            self._lose(flight, "its worker was replaced")
        elif self._again and isinstance(outcome.error, BusyError) and self._may_wait(flight):
            self._waiting.append(flight)  # whoever holds its journal is dying, or finishes it
        else:
            self._done.append((flight.i, _opened(outcome)))

    def _may_wait(self, flight: _Flight) -> bool:
        now = time.monotonic()
        flight.busy_since = now if flight.busy_since is None else flight.busy_since
        flight.not_before = now + TICK
        return now - flight.busy_since <= max(self._plan.silence, self._plan.patience or 0.0)

    def _check(self, now: float) -> None:
        """Look for units past their deadline and for workers that are lost."""
        for future, flight in list(self._flying.items()):
            if flight.slot is None or future.done():
                continue
            if flight.since is None and (future.running() or flight.slot.pid is not None):
                flight.since = now
            if (
                self._plan.patience is not None
                and flight.since is not None
                and now - flight.since > self._plan.patience
            ):
                del self._flying[future]
                _end(flight)
                self._fail(flight, f"it took longer than its deadline of {self._plan.patience:g} s")
            elif (reason := flight.slot.lost()) is not None:
                del self._flying[future]
                self._lose(flight, reason)

    def _lose(self, flight: _Flight, reason: str, cause: BaseException | None = None) -> None:
        """A unit was begun, and its worker is lost."""
        _end(flight)
        if self._again:
            self._start_again(flight, reason, cause)
        else:
            self._fail(flight, f"{reason}, and without a journal nobody knows what it has spent", cause)

    def _start_again(self, flight: _Flight, reason: str, cause: BaseException | None = None) -> None:
        _end(flight)
        if flight.starts < self._plan.attempts:
            self._waiting.appendleft(flight)
        else:
            self._fail(flight, f"{reason} (start {flight.starts} of {self._plan.attempts})", cause)

    def _fail(self, flight: _Flight, reason: str, cause: BaseException | None = None) -> None:
        error = WorkerError(f"unit {flight.i} was given up: {reason}")
        error.__cause__ = cause
        self._done.append((flight.i, error))


def _end(flight: _Flight) -> None:
    if flight.slot is not None:
        with contextlib.suppress(Exception):  # a broken pool may complain about being closed
            flight.slot.end()


def _opened(outcome: Outcome) -> Any:
    return outcome.value if outcome.error is None else outcome.error
