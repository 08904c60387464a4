"""The argument `workers=`: its forms, and how long a worker is waited for."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from zomirror.checks import positive, positive_integer, reading, shown
from zomirror.errors import ArgumentError, ArgumentTypeError

_FORMS = (
    "give a number of processes, an executor with submit(), a function like map, a Dask client or 'dask://host:port'"
)


_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers, and how long they are waited for.

    Parameters
    ----------
    where
        A number of processes on this machine (-1: one per core; 1: this process), an executor with submit(), a
        function like map, a Dask client, or "dask://host:port" of a Dask scheduler.
    deadline
        Seconds that one unit (an input of explain_many, a block of rows of minimize) may take; its process is then
        killed if it is a local process or a Dask worker with a nanny. None: one day. A worker that hangs cannot be told
        from a slow one otherwise, so give a few times what a unit usually takes.
    silence
        Seconds after which a stopped process, or a Dask worker without heartbeats, counts as lost.
    attempts
        How often a unit is started in all when its worker is lost. Only units with a journal are started again.
    """

    where: Any = None
    deadline: float | None = None
    silence: float = 120.0
    attempts: int = 3

    def __post_init__(self) -> None:
        if self.deadline is not None:
            positive("deadline", self.deadline)
        positive("silence", self.silence)
        positive_integer("attempts", self.attempts)
        with reading("workers", self.where):
            known = not self.is_foreign or self.where is None or self.is_executor or callable(self.where)
        if not known:
            raise ArgumentTypeError(f"expected workers, got {shown(self.where)}: {_FORMS}")

    @classmethod
    def of(cls, workers: Any) -> Workers:
        """`workers` itself, or `Workers(workers)`."""
        return workers if isinstance(workers, Workers) else cls(workers)

    @property
    def count(self) -> int | None:
        """The number of local processes, or None."""
        if isinstance(self.where, bool) or not hasattr(self.where, "__index__"):
            return None
        count = self.where.__index__()
        if count == -1:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return positive_integer("workers", count)

    @property
    def scheduler(self) -> str | None:
        """The address of a Dask scheduler, or None."""
        if not isinstance(self.where, str):
            return None
        kind, _, place = self.where.partition("://")
        if kind != "dask" or not place:
            raise ArgumentError(f"expected workers 'dask://host:port', got {self.where!r}: {_FORMS}")
        return f"tcp://{place}"

    @property
    def dask_client(self) -> Any:
        """The Dask client, or that of a Dask executor, or None."""
        for kind in type(self.where).__mro__:
            if kind.__module__.startswith("distributed."):
                if kind.__name__ == "Client":
                    return self.where
                if kind.__name__ == "ClientExecutor":
                    return self.where._client
        return None

    @property
    def is_executor(self) -> bool:
        """Whether it has submit()."""
        return isinstance(self.where, Executor) or callable(getattr(self.where, "submit", None))

    @property
    def is_foreign(self) -> bool:
        """Whether it is an executor or a map of the caller, which reports nothing on its workers."""
        return self.count is None and self.scheduler is None and self.dask_client is None

    @property
    def is_map(self) -> bool:
        """Whether it is a function like map, which takes all units in one call."""
        return self.is_foreign and not self.is_executor and callable(self.where)

    @property
    def serial(self) -> bool:
        """Whether this process runs the units itself."""
        return self.where is None or self.count == 1

    @property
    def patience(self) -> float:
        """Seconds that a unit may take: the deadline, or one day."""
        return _DAY if self.deadline is None else self.deadline
