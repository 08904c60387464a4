"""The loop: searches yield requests, one black box answers them, and requests that wait together share a batch.

A search is a generator. It yields a Request and is sent its answer. If the request fails, the error is thrown into the
search, which returns what it has or passes the error on. The rows of a batch are independent, so the result of a search
does not depend on the searches that share its batches.
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
    """Points to query, and what to keep of the answer."""

    query: Query
    keep: Callable[[Any, int], Answer]
    """Maps the answer and its number of rows to the numbers to keep; OracleError if the answer is wrong."""
    inputs: Callable[[Array], Any] | None = None
    """Maps points to inputs of the black box; None: the points themselves."""
    aside: bool = False
    """Not part of the trajectory: with a larger budget the run would not query these points here."""


Search = Generator[Request, Answer, T]


class Interrupted(Exception):  # noqa: N818 - not an error
    """Thrown into a search that a signal asked to stop."""


@dataclass(eq=False)
class Job(Generic[T]):
    """A search, its ledger, the request that waits for an answer, and the outcome at the end."""

    search: Search[T]
    ledger: Ledger = field(default_factory=MemoryLedger)
    request: Request | None = None
    outcome: T | None = None
    points: int = 0
    """The checksum of the points of the request; 0 if the ledger does not store it."""
    buffer: PointBuffer = field(default_factory=PointBuffer)

    def start(self) -> None:
        """Run to the first request."""
        self._advance(lambda: next(self.search))

    def send(self, answer: Answer) -> None:
        """Give the answer and run to the next request."""
        self._advance(lambda: self.search.send(answer))

    def throw(self, error: Exception) -> None:
        """Throw the error of a failed request into the search."""
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
        """The request that waits for an answer."""
        if self.request is None:
            raise AssertionError("a job without a request was asked for one")
        return self.request

    def recalled(self, rows: int) -> Answer | None:
        """The recorded answer to the next rows of the request; None if there is none."""
        return self.ledger.recall(rows, self.points, aside=self.waiting.aside)


def drive(job: Job[T], box: BlackBox, *, stop: Callable[[], bool] = lambda: False) -> T:
    """Run one search to its end; once `stop()` is true, Interrupted is thrown into it."""
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
    """Run searches to their ends, at most `lockstep` at a time; `done(i, outcome)` is called as each ends.

    Once `stop()` is true, Interrupted is thrown into the running searches. The others get the outcome `unbegun(i)`;
    without it they are started and interrupted at their first request.
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
    """Answer each waiting job, in one joint batch if possible."""
    if len(jobs) > 1:
        # Answers are recorded and recalled block by block, so a request of several blocks is sent alone.
        small = [job for job in jobs if _is_joinable(job.waiting.query)]
        if len(small) > 1 and sum(_bytes(job.waiting.query) for job in small) <= MAX_BLOCK_BYTES:
            recalled = [job for job in small if _recall(job)]
            # A job that has reached max_sent fails alone: no row of the others is counted that is not sent.
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
    """Answer a job from its ledger; False if an earlier process recorded no answer."""
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
    """Send one batch for all jobs; False if it fails: then each is sent alone, and only the cause fails."""
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
    except Exception:  # noqa: BLE001  whatever a model raises, the others continue
        return False
    for job, values in zip(jobs, kept, strict=True):
        job.ledger.record(values, job.points)
        job.send(values)
    return True


def _ask_alone(job: Job[Any], box: BlackBox) -> None:
    """Answer one job, block by block; a failure is thrown into its search."""
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
    """Send rows start .. stop-1, with up to `box.attempts` attempts; the ledger counts each."""
    request, ledger, rows = job.waiting, job.ledger, stop - start
    # Computed before they count as sent, because the process may be killed at any moment.
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
    """The message of an exception, even if its __str__ raises."""
    try:
        return str(error)
    except Exception as trouble:  # noqa: BLE001  a foreign class may do anything
        return f"(its message cannot be read: {type(trouble).__name__})"


class Again:
    """Counts rows that the black box sends again in the ledgers of the batch, each given with its number of rows.

    Which rows of a joint batch were sent again is not known, so they are counted from the first ledger on.
    """

    def __init__(self, owners: Sequence[tuple[Ledger, int]]) -> None:
        self._owners = owners
        self.refused: ZomirrorError | None = None
        """The error of the ledger that refused them."""

    def __call__(self, rows: int) -> None:
        """Count `rows` rows before they are sent."""
        try:
            for ledger, most in cycle(self._owners):
                if rows <= 0:
                    return
                ledger.begin(min(rows, most))
                rows -= most
        except ZomirrorError as error:
            self.refused = error
            raise
