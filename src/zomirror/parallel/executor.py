"""An executor made by the caller: threads, processes, or anything with the interface of concurrent.futures."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from zomirror.errors import ArgumentTypeError
from zomirror.parallel.unit import Outcome, Unit, run_unit


class ExecutorSlot:
    """One of the units that the executor may hold at a time."""

    process = None
    start_time = 0.0

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._running: Future[Outcome] | None = None
        self.ended = False

    def submit(self, unit: Unit) -> Future[Outcome]:
        """Submit a unit; it may wait in the executor's queue."""
        running = self._executor.submit(run_unit, unit)
        if not isinstance(running, Future):
            raise ArgumentTypeError(
                f"expected an executor whose submit() returns a concurrent.futures.Future, got "
                f"{type(running).__name__}: give one that does, or a function like map"
            )
        self._running = running
        return running

    def has_begun(self) -> bool:
        """Whether the future says so."""
        return self._running is not None and self._running.running()

    def lost(self) -> None:
        """Never known: an executor does not report on its workers."""

    def interrupt(self) -> bool:
        """True: threads receive our signals, and processes those of the terminal."""
        return True

    def end(self) -> None:
        """The same as `leave`: a running unit cannot be killed."""
        self.leave()

    def leave(self) -> None:
        """Cancel the unit if it has not begun."""
        self.ended = True
        if self._running is not None:
            self._running.cancel()


class ExecutorPool:
    """One slot for each worker of the executor, or for each unit if their number is unknown."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        most = getattr(executor, "_max_workers", None)
        self._most = most if isinstance(most, int) else None
        self._slots: list[ExecutorSlot] = []

    def slots(self, wanted: int) -> Sequence[ExecutorSlot]:
        """The slots whose unit was not given up."""
        count = wanted if self._most is None else min(wanted, self._most)
        self._slots += [ExecutorSlot(self._executor) for _ in range(count - len(self._slots))]
        return [slot for slot in self._slots if not slot.ended]

    def close(self) -> None:
        """Cancel what waits in the queue; the executor stays open."""
        for slot in self._slots:
            slot.leave()
