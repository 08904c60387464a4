"""What a search yields, and the job that a search is while the engine drives it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from zomirror.engine.black_box import PointBuffer
from zomirror.engine.interrupt import Interrupted, computing
from zomirror.engine.ledger import Answer, Ledger, MemoryLedger
from zomirror.errors import ArgumentError
from zomirror.methods.query import GivenPoints, Query
from zomirror.numerics.arrays import Array

__all__ = ["Interrupted", "Job", "Request", "Search"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Points to be asked, and what is kept of the answer."""

    query: Query | GivenPoints
    keep: Callable[[Any, int], Answer]
    """From the answer and the number of its rows to the numbers that the search needs; OracleError if it is wrong."""
    inputs: Callable[[Array], Any] | None = None
    """From points to what the black box takes; None: the points themselves."""
    aside: bool = False
    """Not part of the trajectory: a longer run would not have asked it here."""


Search = Generator[Request, Answer, T]
_NO_ROWS = "expected a method to ask for at least one row, got none: end the search instead"


@dataclass(eq=False)
class Job(Generic[T]):
    """A search under way: its ledger, the request that waits, and the outcome once there is one."""

    search: Search[T]
    ledger: Ledger = field(default_factory=MemoryLedger)
    request: Request | None = None
    outcome: T | None = None
    points: int = 0
    """The checksum of the points of the request, where the ledger keeps it."""
    buffer: PointBuffer = field(default_factory=PointBuffer)

    def start(self) -> None:
        """Run to the first request."""
        self._advance(next, self.search)

    def send(self, answer: Answer) -> None:
        """Give the answer and run to the next request."""
        self._advance(self.search.send, answer)

    def throw(self, error: Exception) -> None:
        """Tell the search that its request failed."""
        self._advance(self.search.throw, error)

    def _advance(self, move: Callable[[Any], Request], given: Any) -> None:
        try:
            with computing:
                self.request = move(given)
            if not len(self.request.query):  # no count would ever end a search that asks for nothing
                self.request = self.search.throw(ArgumentError(_NO_ROWS))
                if not len(self.request.query):
                    raise ArgumentError(_NO_ROWS)
        except StopIteration as stop:
            self.request, self.outcome = None, stop.value
        except Interrupted:  # the search was not there to take it: its run was being opened or closed
            raise KeyboardInterrupt("a signal asked to stop: the same call resumes the run") from None
        else:
            self.points = self.request.query.checksum() if self.ledger.keeps_points else 0

    @property
    def waiting(self) -> Request:
        """The request."""
        if self.request is None:
            raise AssertionError("a job without a request was asked for one")
        return self.request

    def recalled(self, rows: int) -> Answer | None:
        """What an earlier process was answered to the next rows of the request."""
        return self.ledger.recall(rows, self.points, aside=self.waiting.aside)

    def inputs(self, points: Array) -> Any:
        """The points as the black box takes them."""
        make = self.waiting.inputs
        return points if make is None else make(points)
