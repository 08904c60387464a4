"""Processes of this machine, by loky: each is a pool of its own, so that one that dies takes no other with it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from zomirror.errors import ArgumentError
from zomirror.parallel.unit import Outcome, Unit, run_unit

TICK = 0.5


class LocalSlot:
    """One process."""

    process = None
    start_time = 60.0

    def __init__(self, silence: float) -> None:
        from loky import ProcessPoolExecutor

        self._executor = ProcessPoolExecutor(1, timeout=None, initializer=_begin, initargs=(os.getpid(),))
        self._who: Future[int] = self._executor.submit(os.getpid)
        self._running: Future[Outcome] | None = None
        self._strikes_out = silence / TICK
        self._strikes = 0
        self._looks_before_it_spoke = 0
        self.ended = False

    def submit(self, unit: Unit) -> Future[Outcome]:
        """Start a unit."""
        running: Future[Outcome] = self._executor.submit(run_unit, unit)
        self._running = running
        return running

    def has_begun(self) -> bool:
        """Once the process has started: it may take its time for that."""
        return self._who.done()

    def lost(self) -> str | None:
        """A process that was seen stopped for a while, look after look; one that died says so by itself.

        Looks are counted instead of seconds: when all of us were stopped, none has been silent.
        """
        if not self._who.done():
            self._looks_before_it_spoke += 1
            never = self._looks_before_it_spoke > max(self._strikes_out, self.start_time / TICK)
            return "its worker has not started" if never else None
        self._strikes = self._strikes + 1 if _stopped(self._process()) else 0
        return "its worker was stopped" if self._strikes > self._strikes_out else None

    def interrupt(self) -> bool:
        """SIGTERM, which a durable run takes as the wish to stop cleanly; a process not yet up has begun nothing."""
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
        """Let an idle process end by itself, so that what it holds open is closed in order."""
        if self._running is not None and not self._running.done():
            self.end()
        elif not self.ended:
            self.ended = True
            self._executor.shutdown(wait=True)

    def _process(self) -> int | None:
        done = self._who.done() and self._who.exception() is None
        return self._who.result() if done else None


class LocalCrew:
    """As many processes as asked for, and new ones for those that are lost."""

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
        """Those that run, and new ones as long as they are wanted."""
        self._slots = [slot for slot in self._slots if not slot.ended]
        self._slots += [LocalSlot(self._silence) for _ in range(min(self._count, wanted) - len(self._slots))]
        return self._slots

    def close(self) -> None:
        """End the processes, all at once: each takes a moment."""
        threads = [threading.Thread(target=slot.leave) for slot in self._slots]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _begin(parent: int) -> None:
    """In a new process: Ctrl-C is the parent's to handle, and without a parent there is nobody to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _stopped(pid: int | None) -> bool:
    """Whether the process was stopped (SIGSTOP, a debugger), where the system tells."""
    if pid is None:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):
        return False
