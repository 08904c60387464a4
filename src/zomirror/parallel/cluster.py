"""The workers of a Dask cluster; each unit is bound to one of them.

Dask silently runs the tasks of a lost worker again, and takes minutes to notice a stopped one. Here a missing
heartbeat shows that a worker is lost, and the unit is started again if it has a journal, else given up.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from zomirror.errors import ArgumentError, ArgumentTypeError, WorkerError
from zomirror.parallel.unit import Outcome, Unit, run_unit, this_process

_POLL = 1.0  # seconds between two looks at the heartbeats
_SOON = 5.0  # seconds for the first answer of the scheduler, and for a client to close
_RESTART = 60.0
"""Seconds for a nanny to end its worker, 4 of them before it kills it. Dask closes a nanny that takes longer, and its
worker never comes back: on a busy machine 5 s were too few."""


class ClusterSlot:
    """One thread of one Dask worker."""

    start_time = 0.0

    def __init__(self, pool: ClusterPool, address: str) -> None:
        self._pool = pool
        self.address = address
        self._executor = pool.client.get_executor(pure=False, retries=0, workers=[address], allow_other_workers=False)
        self._who: Future[str] = self._executor.submit(this_process)
        self._running: Future[Outcome] | None = None
        self.ended = False

    @property
    def process(self) -> str | None:
        """The process of the worker, once known."""
        return self._who.result() if self.ready else None

    @property
    def ready(self) -> bool:
        """Whether the worker has answered."""
        return self._who.done() and not self._who.cancelled() and self._who.exception() is None

    def submit(self, unit: Unit) -> Future[Outcome]:
        """Start a unit."""
        running: Future[Outcome] = self._executor.submit(run_unit, unit)
        self._running = running
        return running

    def has_begun(self) -> bool:
        """True: units go only to workers that have answered."""
        return True

    def lost(self) -> str | None:
        """Whether the worker has left or sends no heartbeats."""
        return self._pool.fault(self.address)

    def interrupt(self) -> bool:
        """False: a unit on another machine runs to its end."""
        return False

    def end(self) -> None:
        """Restart the worker by its nanny, which frees the locks that its process holds."""
        if not self.ended:
            self.leave()
            self._pool.restart(self.address)

    def leave(self) -> None:
        """Cancel what has not begun."""
        self.ended = True
        for future in (self._who, self._running):
            if future is not None and not future.done():
                future.cancel()


class ClusterPool:
    """The workers of a cluster, which may join and leave."""

    def __init__(self, client: Any, silence: float) -> None:
        if getattr(client, "asynchronous", False):
            raise ArgumentTypeError("expected a Dask client that is not asynchronous, got one that is: make another")
        self.client = client
        self._silence = silence
        self._own = False
        self._slots: dict[str, list[ClusterSlot]] = {}
        self._beats: dict[str, tuple[float, float]] = {}  # last heartbeat by the scheduler's clock, and by ours
        self._workers: dict[str, Any] = {}
        self._doomed: set[str] = set()
        self._seen = time.monotonic()
        self._closed = threading.Event()
        self._first = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    @classmethod
    def connect(cls, address: str, silence: float) -> ClusterPool:
        """A pool at the address of a scheduler; it owns its client."""
        try:
            from distributed import Client
        except ImportError:
            raise ArgumentError(
                "expected Dask for workers='dask://...', found none: pip install 'zomirror[dask]'"
            ) from None
        try:
            client: Any = Client(address, set_as_default=False, timeout=min(silence, 30.0))
        except OSError as error:
            raise WorkerError(
                f"expected a Dask scheduler at {address}, got {error}: start it, or correct the address"
            ) from error
        pool = cls(client, silence)
        pool._own = True
        return pool

    def slots(self, wanted: int) -> Sequence[ClusterSlot]:
        """One slot for each thread of each worker that has answered."""
        self._first.wait(_SOON)
        if time.monotonic() - self._seen > self._silence:
            raise WorkerError(f"the Dask scheduler has been silent for {self._silence:g} s: see whether it runs")
        workers = self._workers
        self._doomed &= workers.keys()
        for address, about in workers.items():
            slots = self._slots.get(address, [])
            if address not in self._doomed and all(
                slot.ended for slot in slots
            ):  # a new worker, perhaps at an old address
                self._slots[address] = [ClusterSlot(self, address) for _ in range(int(about["nthreads"]))]
        return [slot for slots in self._slots.values() for slot in slots if slot.ready and not slot.ended]

    def fault(self, address: str) -> str | None:
        """Why a worker counts as lost, or None; if the scheduler is silent, all do."""
        if (silent := time.monotonic() - self._seen) > self._silence:
            return f"the Dask scheduler has been silent for {silent:.0f} s"
        if address not in self._workers:
            return "its worker has left the cluster"
        silent = self._seen - self._beats[address][1]
        return f"its worker has been silent for {silent:.0f} s" if silent > self._silence else None

    def restart(self, address: str) -> None:
        """Restart a worker by its nanny, without waiting; a worker without a nanny goes on."""
        for slot in self._slots.get(address, []):
            slot.leave()
        if address in self._workers and address not in self._doomed:
            self._doomed.add(address)
            arguments = {"workers": [address], "timeout": _RESTART, "raise_for_error": False}
            threading.Thread(target=_quietly, args=(self.client.restart_workers, arguments), daemon=True).start()

    def close(self) -> None:
        """Cancel what waits; a running unit goes on to its end."""
        self._closed.set()
        for slots in self._slots.values():
            for slot in slots:
                slot.leave()
        if self._own:
            self.client.close(timeout=_SOON)

    def _watch(self) -> None:
        """Poll the heartbeats in a thread of its own: a scheduler that is gone may never answer."""
        while not self._closed.is_set():
            try:
                workers = self.client.scheduler_info(n_workers=-1)["workers"]
            except Exception:  # noqa: BLE001  the duration of the silence decides, not its cause
                workers = None
            if workers is not None:
                self._seen = now = time.monotonic()
                for address, about in workers.items():
                    beat = float(about["last_seen"])
                    if self._beats.get(address, (0.0, 0.0))[0] != beat:
                        self._beats[address] = (beat, now)
                self._workers = dict(workers)
                self._first.set()
            self._closed.wait(_POLL)


def _quietly(call: Any, arguments: dict[str, Any]) -> None:
    with contextlib.suppress(Exception):  # a worker without a nanny cannot be restarted; its lock protects its run
        call(**arguments)
