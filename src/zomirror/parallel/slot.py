"""The two protocols of workers: a slot runs one unit at a time, a pool has slots (local, cluster, executor)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from zomirror.parallel.unit import Outcome, Unit


class Slot(Protocol):
    """One worker, or one thread of it: runs one unit at a time."""

    @property
    def process(self) -> str | None:
        """The only process that may run the units of this slot; None: any."""
        ...

    @property
    def start_time(self) -> float:
        """Seconds that its worker may take to start."""
        ...

    def submit(self, unit: Unit) -> Future[Outcome]:
        """Start a unit; an exception means that it was not started."""
        ...

    def has_begun(self) -> bool:
        """Whether the unit is known to be running; its deadline counts from then."""
        ...

    def lost(self) -> str | None:
        """Why the worker counts as lost, or None; called about twice a second."""
        ...

    def interrupt(self) -> bool:
        """Ask the running unit to stop after its batch; False if it cannot be asked."""
        ...

    def end(self) -> None:
        """Kill what runs there; the slot takes no further unit."""
        ...

    def leave(self) -> None:
        """Cancel what has not begun; the slot takes no further unit, and the worker goes on."""
        ...


class Pool(Protocol):
    """The slots of one kind of workers."""

    def slots(self, wanted: int) -> Sequence[Slot]:
        """The slots that take units, busy ones included; at least `wanted` of them if possible."""
        ...

    def close(self) -> None:
        """End the processes that the pool started; leave all others as they were."""
        ...
