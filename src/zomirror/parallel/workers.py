"""Who does the work: `workers=` in its forms."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from zomirror.checks import positive, positive_integer
from zomirror.errors import ArgumentError, ArgumentTypeError

_FORMS = (
    "give a number of processes, an executor with submit(), a function like map, a Dask client or 'dask://host:port'"
)
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers, and how long they are waited for.

    `where` is a number of processes on this machine (-1: one a core; 1: this process), any executor with submit(),
    a function like map, a Dask client, or "dask://host:port" of a Dask scheduler.

    `deadline` is what one unit may take, in seconds; the process that runs it is then ended, where it is one of
    ours or a Dask worker with a nanny. Without one, only dead workers and workers that are stopped or silent for
    `silence` seconds are given up. Nobody can tell a stopped worker of another executor from a slow one, so that a
    day is the deadline there. A unit that loses its worker goes to another one, `attempts` times at most, if what
    it has spent is in a journal; otherwise it fails.
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
        if self.is_foreign and not (self.where is None or self.is_executor or callable(self.where)):
            raise ArgumentTypeError(f"expected workers, got {self.where!r}: {_FORMS}")

    @classmethod
    def of(cls, workers: Any) -> Workers:
        """`workers` as it was given, with the usual patience unless that was given too."""
        return workers if isinstance(workers, Workers) else cls(workers)

    @property
    def count(self) -> int | None:
        """How many processes of this machine, when that was given."""
        if isinstance(self.where, bool) or not hasattr(self.where, "__index__"):
            return None
        count = self.where.__index__()
        if count == -1:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return positive_integer("workers", count)

    @property
    def scheduler(self) -> str | None:
        """The address of a Dask scheduler, when that was given."""
        if not isinstance(self.where, str):
            return None
        kind, _, place = self.where.partition("://")
        if kind != "dask" or not place:
            raise ArgumentError(f"expected workers 'dask://host:port', got {self.where!r}: {_FORMS}")
        return f"tcp://{place}"

    @property
    def dask_client(self) -> Any:
        """The Dask client, when one was given, or an executor made of one."""
        for kind in type(self.where).__mro__:
            if kind.__module__.startswith("distributed."):
                if kind.__name__ == "Client":
                    return self.where
                if kind.__name__ == "ClientExecutor":
                    return self.where._client
        return None

    @property
    def is_executor(self) -> bool:
        """Whether units can be submitted one by one."""
        return isinstance(self.where, Executor) or callable(getattr(self.where, "submit", None))

    @property
    def is_foreign(self) -> bool:
        """Whether somebody else's executor or map does the work, of which nothing is known."""
        return self.count is None and self.scheduler is None and self.dask_client is None

    @property
    def is_map(self) -> bool:
        """Whether all units are given away by one call."""
        return self.is_foreign and not self.is_executor and callable(self.where)

    @property
    def serial(self) -> bool:
        """Whether this process does the work itself."""
        return self.where is None or self.count == 1

    @property
    def patience(self) -> float | None:
        """What a unit may take: the deadline, or a day where a silence would not be noticed."""
        return _DAY if self.is_foreign and self.deadline is None else self.deadline
