"""One round of units on a pool: each free slot gets the next unit, and every wait has a limit."""

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
from zomirror.parallel.slot import Pool, Slot
from zomirror.parallel.unit import Outcome, Unit
from zomirror.parallel.workers import Workers


@dataclass(eq=False)
class _Job:
    """A unit that runs or waits, and its history."""

    i: int
    unit: Unit
    starts: int = 0
    slot: Slot | None = None
    since: float | None = None  # when it was first seen running
    not_before: float = 0.0
    busy_since: float | None = None


class Round:
    """One round of units on a pool."""

    def __init__(self, pool: Pool, plan: Workers, units: list[Unit], *, again: bool, stop: Callable[[], bool]) -> None:
        self._pool, self._plan, self._again, self._stop = pool, plan, again, stop
        self._waiting = deque(_Job(i, unit) for i, unit in enumerate(units))
        self._running: dict[Future[Outcome], _Job] = {}
        self._done: list[tuple[int, Any]] = []
        self._stopped = False
        self._without_workers_since: float | None = None
        self._moved = time.monotonic()  # when a unit last began or ended; others may wait as long as this moves

    def outcomes(self) -> Iterator[tuple[int, Any]]:
        """Yield (i, value or exception) as the units finish."""
        checked = time.monotonic()
        while self._waiting or self._running:
            if not self._stopped and self._stop():
                self._stopped = True
                self._interrupt()
            self._start_waiting()
            if not self._running:
                time.sleep(0.05 if self._waiting else 0.0)
            for future in wait(self._running, timeout=TICK, return_when=FIRST_COMPLETED).done:
                self._collect(future, self._running.pop(future))
            if time.monotonic() - checked >= TICK:
                checked = time.monotonic()
                self._check(checked)
            done, self._done = self._done, []
            yield from done

    def _interrupt(self) -> None:
        """Start nothing more; wait for the units that could be asked to stop, leave the others."""
        self._waiting.clear()
        for future, job in list(self._running.items()):
            if job.slot is not None and not job.slot.interrupt():
                del self._running[future]

    def _start_waiting(self) -> None:
        """Give waiting units to free slots."""
        if not self._waiting:
            return
        try:
            slots = self._pool.slots(len(self._waiting) + len(self._running))
        except WorkerError as error:
            self._give_up_waiting(str(error))
            return
        now = time.monotonic()
        self._wait_for_workers(now, there=len(slots))
        busy = {id(job.slot) for job in self._running.values()}
        for slot in slots:
            if id(slot) in busy:
                continue
            job = next((one for one in self._waiting if one.not_before <= now), None)
            if job is None:
                return
            self._waiting.remove(job)
            job.slot, job.since = slot, None
            job.starts += 1
            unit = replace(job.unit, ticket=uuid.uuid4().hex, process=slot.process)
            try:
                self._running[slot.submit(unit)] = job
            except (ArgumentError, ArgumentTypeError):
                raise
            except Exception as error:  # noqa: BLE001  a broken executor; nothing was started
                self._start_again(job, f"its worker took nothing: {type(error).__name__}: {error}")

    def _wait_for_workers(self, now: float, *, there: int) -> None:
        """Give up if there has been no worker for `silence` seconds."""
        if there or self._running:
            self._without_workers_since = None
        elif self._without_workers_since is None:
            self._without_workers_since = now
        elif now - self._without_workers_since > self._plan.silence:
            self._give_up_waiting(f"there has been no worker for {self._plan.silence:g} s")

    def _give_up_waiting(self, reason: str) -> None:
        while self._waiting:
            self._fail(self._waiting.popleft(), reason)

    def _collect(self, future: Future[Outcome], job: _Job) -> None:
        """Take the outcome of a unit, or start it again."""
        self._moved = time.monotonic()
        error = None if future.cancelled() else future.exception()
        if future.cancelled():
            self._lose(job, "its worker gave it back")
        elif isinstance(error, BrokenExecutor) or type(error).__module__.startswith("distributed."):
            self._lose(job, f"its worker was lost ({type(error).__name__})", error)
        elif error is not None:
            self._fail(
                job,
                f"its task could not be sent, or its result could not be received: {type(error).__name__}: {error}",
                error,
            )
        elif (outcome := future.result()).refused:
            if job.slot is not None:
                job.slot.leave()
            self._lose(job, "its worker was replaced")
        elif self._again and isinstance(outcome.error, BusyError) and self._may_wait(job):
            if not self._stopped:
                job.starts -= 1  # the lock of its run refused it before it began
                self._waiting.append(job)  # the process that holds the lock is dying, or finishes the run
        else:
            self._done.append((job.i, outcome.result))

    def _may_wait(self, job: _Job) -> bool:
        now = time.monotonic()
        job.busy_since = now if job.busy_since is None else job.busy_since
        job.not_before = now + TICK
        return now - job.busy_since <= max(self._plan.silence, self._plan.deadline or 0.0)

    def _check(self, now: float) -> None:
        """Give up units past their deadline and workers that are lost."""
        for future, job in list(self._running.items()):
            if job.slot is None or future.done():
                continue
            if job.since is None and job.slot.has_begun():
                job.since = self._moved = now
            if (late := self._late(job, job.slot, now)) is not None:
                del self._running[future]
                _end(job)
                self._fail(job, late)
            elif (reason := job.slot.lost()) is not None:
                del self._running[future]
                self._lose(job, reason)

    def _late(self, job: _Job, slot: Slot, now: float) -> str | None:
        """Why a unit is past its deadline, or None; a queued unit may wait as long as others begin or end."""
        patience = self._plan.patience
        if job.since is None:
            waited = now - self._moved > max(patience, self._plan.silence, slot.start_time)
            return "its worker has not begun it" if waited else None
        return f"it took longer than its deadline of {patience:g} s" if now - job.since > patience else None

    def _lose(self, job: _Job, reason: str, cause: BaseException | None = None) -> None:
        """The worker of a running unit is lost: start the unit again if it has a journal, else give it up."""
        _end(job)
        if self._again:
            self._start_again(job, reason, cause)
        else:
            self._fail(job, f"{reason}, and without a journal the queries that it has spent are unknown", cause)

    def _start_again(self, job: _Job, reason: str, cause: BaseException | None = None) -> None:
        _end(job)
        if self._stopped:
            return
        if job.starts < self._plan.attempts:
            self._waiting.appendleft(job)
        else:
            self._fail(job, f"{reason} (start {job.starts} of {self._plan.attempts})", cause)

    def _fail(self, job: _Job, reason: str, cause: BaseException | None = None) -> None:
        error = WorkerError(f"unit {job.i} was given up: {reason}")
        error.__cause__ = cause
        self._done.append((job.i, error))


def _end(job: _Job) -> None:
    if job.slot is not None:
        with contextlib.suppress(Exception):  # closing a broken executor may raise
            job.slot.end()
