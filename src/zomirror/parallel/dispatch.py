"""One round of units over a crew: who is free gets the next one, and nothing waits for ever."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from zomirror.errors import ArgumentError, ArgumentTypeError, BusyError, WorkerError
from zomirror.parallel.local import TICK
from zomirror.parallel.slot import Crew, Slot
from zomirror.parallel.unit import Outcome, Unit
from zomirror.parallel.workers import Workers


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


class Round:
    """One round of units over a crew."""

    def __init__(self, crew: Crew, plan: Workers, units: list[Unit], *, again: bool, stop: Callable[[], bool]) -> None:
        self._crew, self._plan, self._again, self._stop = crew, plan, again, stop
        self._waiting = deque(_Flight(i, unit) for i, unit in enumerate(units))
        self._flying: dict[Future[Outcome], _Flight] = {}
        self._done: list[tuple[int, Any]] = []
        self._stopped = False
        self._alone_since: float | None = None
        self._moved = time.monotonic()  # when a unit last began or ended

    def outcomes(self) -> Iterator[tuple[int, Any]]:
        """Yield as they finish."""
        checked = time.monotonic()
        while self._waiting or self._flying:
            if not self._stopped and self._stop():
                self._stopped = True
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
            unit = replace(flight.unit, ticket=uuid.uuid4().hex, process=slot.process)
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
        self._moved = time.monotonic()
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
            if not self._stopped:
                flight.starts -= 1  # it was refused before it began
                self._waiting.append(flight)  # whoever holds its journal is dying, or finishes it
        else:
            self._done.append((flight.i, outcome.result))

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
            if flight.since is None and flight.slot.has_begun():
                flight.since = self._moved = now
            if (late := self._late(flight, flight.slot, now)) is not None:
                del self._flying[future]
                _end(flight)
                self._fail(flight, late)
            elif (reason := flight.slot.lost()) is not None:
                del self._flying[future]
                self._lose(flight, reason)

    def _late(self, flight: _Flight, slot: Slot, now: float) -> str | None:
        """Why a unit has had its time; one that waits for its turn has it as long as others move."""
        patience = self._plan.patience
        if patience is None:
            return None
        if flight.since is None:
            waited = now - self._moved > max(patience, self._plan.silence, slot.start_time)
            return "its worker has not begun it" if waited else None
        return f"it took longer than its deadline of {patience:g} s" if now - flight.since > patience else None

    def _lose(self, flight: _Flight, reason: str, cause: BaseException | None = None) -> None:
        """A unit was begun, and its worker is lost."""
        _end(flight)
        if self._again:
            self._start_again(flight, reason, cause)
        else:
            self._fail(flight, f"{reason}, and without a journal nobody knows what it has spent", cause)

    def _start_again(self, flight: _Flight, reason: str, cause: BaseException | None = None) -> None:
        _end(flight)
        if self._stopped:
            return
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
