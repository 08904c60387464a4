"""Processes of this machine by loky, one executor each, so that a process that dies does not break the others."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from zomirror.errors import ArgumentError
from zomirror.parallel.unit import Outcome, Unit, run_unit
from zomirror.runs.lock import process_fields

TICK = 0.5  # seconds between two checks of the workers


class LocalSlot:
    """One process."""

    process = None
    start_time = 60.0

    def __init__(self, silence: float) -> None:
        from loky import ProcessPoolExecutor

        self._executor = ProcessPoolExecutor(1, timeout=None, initializer=_begin, initargs=(os.getpid(),))
        self._who: Future[int] = self._executor.submit(os.getpid)
        self._running: Future[Outcome] | None = None
        self._patience = silence / TICK  # in checks
        self._checks_stopped = 0
        self._checks_starting = 0
        self.ended = False

    def submit(self, unit: Unit) -> Future[Outcome]:
        """Start a unit."""
        running: Future[Outcome] = self._executor.submit(run_unit, unit)
        self._running = running
        return running

    def has_begun(self) -> bool:
        """Whether the process has started."""
        return self._who.done()

    def lost(self) -> str | None:
        """Whether the process did not start, or was found stopped for `silence`; a dead one breaks its executor.

        Checks are counted, not seconds: if this process was stopped too (a laptop that slept), no worker is lost.
        """
        if not self._who.done():
            self._checks_starting += 1
            late = self._checks_starting > max(self._patience, self.start_time / TICK)
            return "its worker has not started" if late else None
        self._checks_stopped = self._checks_stopped + 1 if _stopped(self._process()) else 0
        return "its worker was stopped" if self._checks_stopped > self._patience else None

    def interrupt(self) -> bool:
        """Send SIGTERM, at which a durable run stops cleanly; a process that has not started is ended."""
        pid = self._process()
        if pid is None:
            self.end()
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        return True

    def end(self) -> None:
        """Kill the process and its children."""
        if not self.ended:
            self.ended = True
            self._executor.shutdown(wait=True, kill_workers=True)

    def leave(self) -> None:
        """Let an idle process end by itself, so that it closes its files; kill a busy one."""
        if self._running is not None and not self._running.done():
            self.end()
        elif not self.ended:
            self.ended = True
            self._executor.shutdown(wait=True)

    def _process(self) -> int | None:
        done = self._who.done() and self._who.exception() is None
        return self._who.result() if done else None


class LocalPool:
    """`count` processes; lost ones are replaced."""

    def __init__(self, count: int, silence: float) -> None:
        try:
            import loky  # noqa: F401
        except ImportError:
            raise ArgumentError(
                f"expected loky for workers={count}, found none: pip install 'zomirror[dask]', or give an executor"
            ) from None
        self._count = count
        self._silence = silence
        self._slots: list[LocalSlot] = []

    def slots(self, wanted: int) -> Sequence[LocalSlot]:
        """At most `wanted` processes, started as needed."""
        self._slots = [slot for slot in self._slots if not slot.ended]
        self._slots += [LocalSlot(self._silence) for _ in range(min(self._count, wanted) - len(self._slots))]
        return self._slots

    def close(self) -> None:
        """End all processes, in parallel because each takes a moment."""
        threads = [threading.Thread(target=slot.leave) for slot in self._slots]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _begin(parent: int) -> None:
    """Run first in a new process: ignore Ctrl-C, which the parent handles, and exit when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _stopped(pid: int | None) -> bool:
    """Whether the process is stopped (SIGSTOP, a debugger); False where the system has no /proc."""
    fields = [] if pid is None else process_fields(pid)
    return bool(fields) and fields[0] in "Tt"
