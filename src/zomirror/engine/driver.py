"""The loop: searches that yield requests, and one black box that answers them.

A search is a generator. It yields a Request and is sent its answer. If the request fails, the error is thrown into the
search, which returns what it has or passes the error on. The rows of a batch are independent, so the result of a search
does not depend on the searches that share its batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TypeVar

from zomirror.engine.black_box import BlackBox
from zomirror.engine.joint_batch import answer, ask_alone
from zomirror.engine.request import Interrupted, Job

T = TypeVar("T")


def drive(job: Job[T], box: BlackBox, *, stop: Callable[[], bool] = lambda: False) -> T:
    """Run one search to its end; once `stop()` is true, Interrupted is thrown into it."""
    try:
        job.start()
        while job.request is not None:
            if stop():
                job.throw(Interrupted())
            else:
                ask_alone(job, box)
    finally:
        job.search.close()  # closes a run directory that it holds open
    return job.outcome  # type: ignore[return-value]


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
                answer(asking, box)
            for i in [i for i in active if jobs[i].request is None]:
                active.remove(i)
                done(i, jobs[i].outcome)  # type: ignore[arg-type]
    finally:
        with ExitStack() as closing:
            for job in jobs:
                closing.callback(job.search.close)  # closes a run directory that it holds open
    return [job.outcome for job in jobs]  # type: ignore[misc]
