"""One answer to each of several searches, in one batch where that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from zomirror.engine.black_box import BlackBox
from zomirror.engine.interrupt import in_flight
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Job
from zomirror.engine.retry import Again, accounted, ask_block
from zomirror.methods.query import MAX_BLOCK_BYTES, GivenPoints, Query


def answer(jobs: list[Job[Any]], box: BlackBox) -> None:
    """One answer to each waiting job, in one batch where that is possible."""
    if len(jobs) > 1:
        # Answers are recorded by blocks and recalled in the same ones, so requests of several blocks are asked alone.
        small = [job for job in jobs if _is_joinable(job.waiting.query)]
        if len(small) > 1 and sum(_bytes(job.waiting.query) for job in small) <= MAX_BLOCK_BYTES:
            recalled = [job for job in small if _recall(job, box)]
            # A job that may send no more fails alone: nothing is written down for the others that does not leave.
            able = [job for job in small if job not in recalled and job.ledger.affords(len(job.waiting.query))]
            asked = able if len(able) > 1 and _ask_together(able, box) else []
            jobs = [job for job in jobs if job not in recalled and job not in asked]
    for job in jobs:
        ask_alone(job, box)


def _is_joinable(query: Query | GivenPoints) -> bool:
    return not query.stochastic and len(query.blocks()) == 1


def _bytes(query: Query | GivenPoints) -> int:
    return len(query) * query.d * query.dtype.itemsize


def _recall(job: Job[Any], box: BlackBox) -> bool:
    """Answer from the ledger what was answered in an earlier life of the run."""
    rows = len(job.waiting.query)
    try:
        recorded = job.recalled(rows)
        if recorded is not None and len(recorded) < rows:
            recorded = _completed(job, box, recorded, 0, rows)
    except Exception as error:  # noqa: BLE001  the search decides what its failure means
        job.throw(error)
        return True
    if recorded is None:
        return False
    job.send(recorded)
    return True


def _completed(job: Job[Any], box: BlackBox, recorded: Answer, start: int, stop: int) -> Answer:
    """The answer to rows start .. stop-1, whose first rows are `recorded`: only the others are asked.

    A large answer is recorded in several parts; the run was killed between two of them.
    """
    return np.concatenate([recorded, ask_block(job, box, start + len(recorded), stop)])


def _ask_together(jobs: list[Job[Any]], box: BlackBox) -> bool:
    """One batch for all; False when it fails, so that each is asked alone and only the culprit suffers.

    Then every row has been sent twice, and both count: a search that may not send its rows again ends with MAX_SENT.
    """
    batches = [job.inputs(job.waiting.query.points()) for job in jobs]
    arrays = all(isinstance(batch, np.ndarray) for batch in batches)
    if not arrays or len({(batch.shape[1:], batch.dtype) for batch in batches}) > 1:
        return False
    rows = [len(job.waiting.query) for job in jobs]
    owners = [(job.ledger, count) for job, count in zip(jobs, rows, strict=True)]
    with in_flight:
        try:
            for job, count in zip(jobs, rows, strict=True):
                job.ledger.begin(count, aside=job.waiting.aside)
            with accounted(Again(owners)):
                answer = box.ask(np.concatenate(batches))
            parts = np.split(np.asarray(answer), np.cumsum(rows)[:-1])
            kept = [job.waiting.keep(part, count) for job, part, count in zip(jobs, parts, rows, strict=True)]
        except Exception:  # noqa: BLE001  whatever a model raises, the others go on
            return False
        # All answers are recorded before any search goes on: an error in one of them must not lose those of the others.
        for job, values in zip(jobs, kept, strict=True):
            job.ledger.record(values, job.points)
    for job, values in zip(jobs, kept, strict=True):
        job.send(values)
    return True


def ask_alone(job: Job[Any], box: BlackBox) -> None:
    """The answer to one job, block by block; a failure is thrown into its search."""
    parts = []
    try:
        for start, stop in job.waiting.query.blocks():
            recorded = job.recalled(stop - start)
            if recorded is None:
                recorded = ask_block(job, box, start, stop)
            elif len(recorded) < stop - start:
                recorded = _completed(job, box, recorded, start, stop)
            parts.append(recorded)
    except Exception as error:  # noqa: BLE001  the search decides what its failure means
        job.throw(error)
        return
    job.send(parts[0] if len(parts) == 1 else np.concatenate(parts))
