"""The loop: searches that yield requests, one black box that answers them, joint batches where several wait.

A search is a generator. It yields a Request and is sent its answer; when the request fails, the error is thrown into
it, and it ends with what it has or passes the error on. Nothing that a search computes depends on which other searches
share its batch: the rows of a batch are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Generic, TypeVar

import numpy as np

from zomirror.engine.black_box import BlackBox, PointBuffer
from zomirror.engine.ledger import Answer, Ledger, MemoryLedger
from zomirror.engine.resend import accounted
from zomirror.errors import OracleError, RunError, ZomirrorError
from zomirror.methods.query import MAX_BLOCK_BYTES, Query
from zomirror.numerics.arrays import Array

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Points to be asked, and what is kept of the answer."""

    query: Query
    keep: Callable[[Any, int], Answer]
    """From the answer and the number of its rows to the numbers that the search needs; OracleError if it is wrong."""
    inputs: Callable[[Array], Any] | None = None
    """From points to what the black box takes; None: the points themselves."""
    aside: bool = False
    """Not part of the trajectory: a longer run would not have asked it here."""


Search = Generator[Request, Answer, T]


class Interrupted(Exception):  # noqa: N818 - not an error
    """Thrown into a search that a signal asked to stop."""


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
        self._advance(lambda: next(self.search))

    def send(self, answer: Answer) -> None:
        """Give the answer and run to the next request."""
        self._advance(lambda: self.search.send(answer))

    def throw(self, error: Exception) -> None:
        """Tell the search that its request failed."""
        self._advance(lambda: self.search.throw(error))

    def _advance(self, move: Callable[[], Request]) -> None:
        try:
            self.request = move()
        except StopIteration as stop:
            self.request, self.outcome = None, stop.value
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


def drive(job: Job[T], box: BlackBox, *, stop: Callable[[], bool] = lambda: False) -> T:
    """Drive one search to its end; once `stop()` is true it is thrown Interrupted."""
    return drive_many([job], box, stop=stop)[0]


def drive_many(
    jobs: Sequence[Job[T]],
    box: BlackBox,
    *,
    lockstep: int = 1,
    done: Callable[[int, T], object] = lambda *_: None,
    stop: Callable[[], bool] = lambda: False,
    unbegun: Callable[[int], T] | None = None,
) -> list[T]:
    """Drive searches to their ends, at most `lockstep` at a time; `done(i, outcome)` is called as each ends.

    Once `stop()` is true, those under way are thrown Interrupted, and the others have the outcome `unbegun(i)`, or are
    begun and interrupted at their first request.
    """
    waiting, active = list(range(len(jobs)))[::-1], list[int]()
    try:
        while waiting or active:
            if unbegun is not None and waiting and stop():
                for i in waiting:
                    jobs[i].outcome = unbegun(i)
                waiting = []
            while waiting and len(active) < lockstep:
                active.append(waiting.pop())
                jobs[active[-1]].start()
            asking = [jobs[i] for i in active if jobs[i].request is not None]
            if asking and stop():
                for job in asking:
                    job.throw(Interrupted())
            else:
                _answer(asking, box)
            for i in [i for i in active if jobs[i].request is None]:
                active.remove(i)
                done(i, jobs[i].outcome)  # type: ignore[arg-type]
    finally:
        for job in jobs:
            job.search.close()  # closes a run directory that it holds open
    return [job.outcome for job in jobs]  # type: ignore[misc]


def _answer(jobs: list[Job[Any]], box: BlackBox) -> None:
    """One answer to each waiting job, in one batch where that is possible."""
    if len(jobs) > 1:
        # Answers are recorded by blocks and recalled in the same ones, so requests of several blocks are asked alone.
        small = [job for job in jobs if _is_joinable(job.waiting.query)]
        if len(small) > 1 and sum(_bytes(job.waiting.query) for job in small) <= MAX_BLOCK_BYTES:
            recalled = [job for job in small if _recall(job)]
            # A job that may send no more fails alone: nothing is written down for the others that does not leave.
            able = [job for job in small if job not in recalled and job.ledger.affords(len(job.waiting.query))]
            asked = able if len(able) > 1 and _ask_together(able, box) else []
            jobs = [job for job in jobs if job not in recalled and job not in asked]
    for job in jobs:
        _ask_alone(job, box)


def _is_joinable(query: Query) -> bool:
    return not query.stochastic and len(query.blocks()) == 1


def _bytes(query: Query) -> int:
    return len(query) * query.d * query.dtype.itemsize


def _recall(job: Job[Any]) -> bool:
    """Answer from the ledger what was answered in an earlier life of the run."""
    try:
        recorded = job.recalled(len(job.waiting.query))
    except RunError as error:
        job.throw(error)
        return True
    if recorded is None:
        return False
    job.send(recorded)
    return True


def _ask_together(jobs: list[Job[Any]], box: BlackBox) -> bool:
    """One batch for all; False when it fails, so that each is asked alone and only the culprit suffers."""
    batches = [_inputs(job.waiting, job.waiting.query.points()) for job in jobs]
    arrays = all(isinstance(batch, np.ndarray) for batch in batches)
    if not arrays or len({(batch.shape[1:], batch.dtype) for batch in batches}) > 1:
        return False
    rows = [len(job.waiting.query) for job in jobs]
    owners = [(job.ledger, count) for job, count in zip(jobs, rows, strict=True)]
    try:
        for job, count in zip(jobs, rows, strict=True):
            job.ledger.begin(count, aside=job.waiting.aside)
        with accounted(Again(owners)):
            answer = box.ask(np.concatenate(batches))
        parts = np.split(np.asarray(answer), np.cumsum(rows)[:-1])
        kept = [job.waiting.keep(part, count) for job, part, count in zip(jobs, parts, rows, strict=True)]
    except Exception:  # noqa: BLE001  whatever a model raises, the others go on
        return False
    for job, values in zip(jobs, kept, strict=True):
        job.ledger.record(values, job.points)
        job.send(values)
    return True


def _ask_alone(job: Job[Any], box: BlackBox) -> None:
    """The answer to one job, block by block; a failure is thrown into its search."""
    parts = []
    try:
        for start, stop in job.waiting.query.blocks():
            recorded = job.recalled(stop - start)
            parts.append(_ask_block(job, box, start, stop) if recorded is None else recorded)
    except Exception as error:  # noqa: BLE001  the search decides what its failure means
        job.throw(error)
        return
    job.send(parts[0] if len(parts) == 1 else np.concatenate(parts))


def _ask_block(job: Job[Any], box: BlackBox, start: int, stop: int) -> Answer:
    """Ask rows start .. stop-1, again after a failure as often as allowed; every attempt is in the ledger."""
    request, ledger, rows = job.waiting, job.ledger, stop - start
    # Made before they count as sent: a kill may come at any moment.
    inputs = _inputs(request, job.buffer.view(request.query, start, stop))
    samples = (request.query.samples(start, stop),) if request.query.stochastic else ()
    where = range(ledger.used, ledger.used + rows)
    for attempt in range(1, box.attempts + 1):
        ledger.begin(rows, aside=request.aside)
        again = Again([(ledger, rows)])
        try:
            with accounted(again):
                answer = box.ask(inputs, *samples)
        except Exception as error:
            passed = error is again.refused or isinstance(error, box.passes)
            if attempt < box.attempts and not passed:
                continue
            ledger.lose(type(error).__name__)
            if passed:
                raise
            if isinstance(error, OracleError):
                error.rows = error.rows or where
                raise
            raise OracleError(
                f"{box.name} raised {type(error).__name__}: {_said(error)} (queries {where.start} to {where.stop - 1} "
                f"of the run, attempt {attempt} of {box.attempts})",
                rows=where,
            ) from error
        try:
            values = request.keep(answer, rows)
        except OracleError as error:
            error.rows = where
            ledger.lose("an answer that is not one number, or one row of scores, for each row")
            raise
        ledger.record(values, job.points)
        return values
    raise AssertionError("unreachable")


def _inputs(request: Request, points: Array) -> Any:
    return points if request.inputs is None else request.inputs(points)


def _said(error: Exception) -> str:
    """What an exception says, whatever its __str__ does."""
    try:
        return str(error)
    except Exception as trouble:  # noqa: BLE001  a foreign class may do anything
        return f"(its message cannot be read: {type(trouble).__name__})"


class Again:
    """Charges rows that are sent once more to the ledgers whose batch they are of, each with its number of rows.

    Which rows of a joint batch they were is not known: they are dealt out from the first ledger on.
    """

    def __init__(self, owners: Sequence[tuple[Ledger, int]]) -> None:
        self._owners = owners
        self.refused: ZomirrorError | None = None
        """Why they were not allowed to leave."""

    def __call__(self, rows: int) -> None:
        """Write them down before they leave."""
        try:
            for ledger, most in cycle(self._owners):
                if rows <= 0:
                    return
                ledger.begin(min(rows, most))
                rows -= most
        except ZomirrorError as error:
            self.refused = error
            raise
