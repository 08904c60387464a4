"""A slot runs one unit at a time; a crew has slots. One file for each kind: local, cluster, given."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from zomirror.parallel.unit import Outcome, Unit


class Slot(Protocol):
    """A place where one unit runs at a time."""

    @property
    def process(self) -> str | None:
        """The only process that may run the units of this slot, where the engine would choose others."""
        ...

    @property
    def start_time(self) -> float:
        """Seconds that its worker may take to start."""
        ...

    def submit(self, unit: Unit) -> Future[Outcome]:
        """Start a unit; whatever is raised says that it was not started."""
        ...

    def has_begun(self) -> bool:
        """Whether the unit is being run, as far as one can tell; its time counts from then."""
        ...

    def lost(self) -> str | None:
        """Why the worker behind the slot must be given up, if it must; called about twice a second."""
        ...

    def interrupt(self) -> bool:
        """Ask the running unit to stop after its batch; False when it cannot be reached."""
        ...

    def end(self) -> None:
        """End what runs there and use the slot no more."""
        ...

    def leave(self) -> None:
        """Use the slot no more, and do the worker no harm."""
        ...


class Crew(Protocol):
    """The slots there are."""

    def slots(self, wanted: int) -> Sequence[Slot]:
        """Those that take units, the busy ones included, at least `wanted` of them if there can be so many."""
        ...

    def close(self) -> None:
        """Let go of the workers: ours end, others are left as they were."""
        ...
