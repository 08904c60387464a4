"""Many searches, one model: each search is a generator that asks and is told; the model sees joint batches.

A search yields a Request and is sent what it asked of the scores. The engine puts the rows of all waiting
searches into one batch, because models like large batches, and gives each its part. Nothing that a search
computes depends on who shares its batch: rows of a batch are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from zomirror.classifiers import Classifier
from zomirror.engine.oracle import Again, Ledger, MemoryLedger
from zomirror.engine.resend import accounted
from zomirror.errors import ArgumentError, ArgumentTypeError, BudgetError, OracleError, RunError
from zomirror.features.vector import Setting
from zomirror.methods.query import MAX_BLOCK_BYTES, Query
from zomirror.numerics.arrays import Array

Scores = NDArray[np.floating[Any]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Rows to be shown to the model, and what is kept of their scores."""

    query: Query
    setting: Setting
    keep: Callable[[Scores], NDArray[np.float64]]
    """From scores (n, classes) to the (n, k) numbers that the search needs."""


class Interrupted(Exception):  # noqa: N818 - not an error
    """Thrown into a search that somebody asked to stop."""


Reply = NDArray[np.float64]
Search = Generator[Request, Reply, T]


@dataclass(eq=False)
class Job(Generic[T]):
    """A search under way: its ledger, the request that waits, and the outcome once there is one."""

    search: Search[T]
    ledger: Ledger
    request: Request | None = None
    outcome: T | None = None

    def start(self) -> None:
        """Run to the first request."""
        self._advance(lambda: next(self.search))

    def send(self, reply: Reply) -> None:
        """Give the reply and run to the next request."""
        self._advance(lambda: self.search.send(reply))

    def throw(self, error: Exception) -> None:
        """Tell the search that its request failed; it ends with what it has, or passes the error on."""
        self._advance(lambda: self.search.throw(error))

    def _advance(self, move: Callable[[], Request]) -> None:
        try:
            self.request = move()
        except StopIteration as stop:
            self.request, self.outcome = None, stop.value


def run(search: Search[T], classifier: Classifier, ledger: Ledger | None = None) -> T:
    """Drive one search to its end."""
    return run_many([search], classifier, [MemoryLedger() if ledger is None else ledger], lockstep=1)[0]


def run_many(
    searches: Sequence[Search[T]],
    classifier: Classifier,
    ledgers: Sequence[Ledger],
    *,
    lockstep: int = 8,
    done: Callable[[int, T], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    unbegun: Callable[[int], T] | None = None,
) -> list[T]:
    """Drive searches to their ends, at most `lockstep` at a time; `done(i, outcome)` is called as each ends.

    Once `stop()` is true, those under way are thrown Interrupted, and the others have the outcome `unbegun(i)`.
    """
    jobs = [Job(search, ledger) for search, ledger in zip(searches, ledgers, strict=True)]
    waiting = list(range(len(jobs)))[::-1]
    active: list[int] = []
    try:
        while waiting or active:
            if unbegun is not None and stop():
                for i in waiting:
                    jobs[i].outcome = unbegun(i)
                for i in active:
                    jobs[i].throw(Interrupted())
                break
            while waiting and len(active) < lockstep:
                active.append(waiting.pop())
                jobs[active[-1]].start()
            _round([jobs[i] for i in active if jobs[i].request is not None], classifier)
            for i in [i for i in active if jobs[i].request is None]:
                active.remove(i)
                if done is not None:
                    done(i, jobs[i].outcome)  # type: ignore[arg-type]
    finally:
        for job in jobs:
            job.search.close()  # whatever it holds open
    return [job.outcome for job in jobs]  # type: ignore[misc]


def _round(jobs: list[Job[T]], model: Classifier) -> None:
    """One reply to each waiting job."""
    # what is recorded in several blocks is recalled in the same ones
    small = [job for job in jobs if len(list(_request(job).query.blocks())) == 1]
    if len(small) > 1 and sum(_bytes(job) for job in small) <= MAX_BLOCK_BYTES:
        recalled = [job for job in small if _recalled(job)]
        # who may send no more is told so alone: nothing is written down for the others that then does not leave
        able = [j for j in small if j not in recalled and j.ledger.affords(len(_request(j).query))]
        asked = able if len(able) > 1 and _joint(able, model) else []
        jobs = [job for job in jobs if job not in recalled and job not in asked]
    for job in jobs:
        _alone(job, model)


def _joint(jobs: list[Job[T]], model: Classifier) -> bool:
    """One batch for all; False when it fails, so that each is asked alone and only the culprit suffers."""
    batches = [_inputs(job, 0, len(_request(job).query)) for job in jobs]
    if len({(batch.shape[1:], batch.dtype) for batch in batches}) > 1:
        return False
    try:
        for job, batch in zip(jobs, batches, strict=True):
            job.ledger.begin(len(batch))
        owners = [(job.ledger, len(batch)) for job, batch in zip(jobs, batches, strict=True)]
        with accounted(Again(owners)):
            scores = model(np.concatenate(batches))
    except Exception:  # noqa: BLE001  whatever a model raises, the others go on
        return False
    end = 0
    for job, batch in zip(jobs, batches, strict=True):
        start, end = end, end + len(batch)
        _deliver(job, _request(job).keep(scores[start:end]))
    return True


def _alone(job: Job[T], model: Classifier) -> None:
    request, parts = _request(job), []
    try:
        for start, stop in request.query.blocks():
            recorded = job.ledger.recall(stop - start)
            if recorded is None:
                batch = _inputs(job, start, stop)
                job.ledger.begin(stop - start)
                recorded = request.keep(_ask(model, batch, job.ledger))
                job.ledger.record(recorded)
            parts.append(recorded)
    except Exception as error:  # noqa: BLE001  the search decides what its failure means
        job.throw(error)
        return
    job.send(np.concatenate(parts))


def _ask(model: Classifier, batch: Array, ledger: Ledger) -> Scores:
    try:
        with accounted(Again([(ledger, len(batch))])):
            return model(batch)
    except (ArgumentError, ArgumentTypeError, BudgetError, RunError):
        raise  # an input that the model cannot take, or a retry that may not be sent
    except Exception as error:
        rows = range(ledger.used, ledger.used + len(batch))
        if isinstance(error, OracleError):
            error.rows = error.rows or rows
            raise
        raise OracleError(
            f"the model raised {type(error).__name__}: {error} (queries {rows.start} to {rows.stop - 1})", rows=rows
        ) from error


def _recalled(job: Job[T]) -> bool:
    """Answer from the ledger what was answered in an earlier life of the run."""
    recorded = job.ledger.recall(len(_request(job).query))
    if recorded is None:
        return False
    job.send(recorded)
    return True


def _deliver(job: Job[T], reply: Reply) -> None:
    job.ledger.record(reply)
    job.send(reply)


def _request(job: Job[T]) -> Request:
    if job.request is None:
        raise AssertionError("a job without a request was asked for one")
    return job.request


def _inputs(job: Job[T], start: int, stop: int) -> Array:
    request = _request(job)
    return request.setting.to_input(request.query.points(start, stop))


def _bytes(job: Job[T]) -> int:
    query = _request(job).query
    return len(query) * query.d * query.dtype.itemsize
