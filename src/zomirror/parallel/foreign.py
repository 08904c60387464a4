"""An executor that somebody else made: threads, processes, or any engine that speaks concurrent.futures."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from zomirror.errors import ArgumentTypeError
from zomirror.parallel.unit import Outcome, Unit, run_unit


class GivenSlot:
    """One of the units that the executor may have under way."""

    process = None
    start_time = 0.0

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._running: Future[Outcome] | None = None
        self.ended = False

    def submit(self, unit: Unit) -> Future[Outcome]:
        """Start a unit, or put it in the executor's queue."""
        running = self._executor.submit(run_unit, unit)
        if not isinstance(running, Future):
            raise ArgumentTypeError(
                f"expected an executor whose submit() returns a concurrent.futures.Future, got "
                f"{type(running).__name__}: give one that does, or a function like map"
            )
        self._running = running
        return running

    def has_begun(self) -> bool:
        """Once the executor says so."""
        return self._running is not None and self._running.running()

    def lost(self) -> None:
        """A foreign worker tells nothing of itself."""

    def interrupt(self) -> bool:
        """Threads share our signals, and processes get those of the terminal: wait for them."""
        return True

    def end(self) -> None:
        """What runs cannot be reached."""
        self.leave()

    def leave(self) -> None:
        """Take back what has not begun."""
        self.ended = True
        if self._running is not None:
            self._running.cancel()


class GivenCrew:
    """As many units at a time as the executor has workers, or all where it does not say."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        most = getattr(executor, "_max_workers", None)
        self._most = most if isinstance(most, int) else None
        self._slots: list[GivenSlot] = []

    def slots(self, wanted: int) -> Sequence[GivenSlot]:
        """Those not lost to a unit that did not come back."""
        count = wanted if self._most is None else min(wanted, self._most)
        self._slots += [GivenSlot(self._executor) for _ in range(count - len(self._slots))]
        return [slot for slot in self._slots if not slot.ended]

    def close(self) -> None:
        """The executor stays open; what waits in its queue is taken back."""
        for slot in self._slots:
            slot.leave()
