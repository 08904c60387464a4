"""Searches from their settings to their explanations: together in this process, each with its own ledger."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from zomirror.checks import positive_integer
from zomirror.classifiers import Classifier, radius_hint
from zomirror.contrast.answer import answer
from zomirror.contrast.driver import Interrupted, Search, run_many
from zomirror.contrast.durable import ReplyLedger, Shelf, configuration
from zomirror.contrast.explanation import Explanation
from zomirror.contrast.options import Wanted
from zomirror.contrast.progress import Callback, Found, Progress
from zomirror.contrast.search.explain_search import found
from zomirror.contrast.search.explain_search import search as search_for
from zomirror.engine.interrupt import stop_on_signal
from zomirror.engine.oracle import Ledger, MemoryLedger
from zomirror.errors import ArgumentError, ArgumentTypeError, BudgetError, OracleError, ZomirrorError
from zomirror.features.vector import Setting
from zomirror.result import Status


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """An input whose search ended with an error, and what it had found by then."""

    error: ZomirrorError
    result: Explanation


@dataclass(frozen=True, slots=True)
class Task:
    """What is done with each input: its name in run directories, what a progress bar says, and the search."""

    name: str
    doing: str
    search: Callable[[Progress], Search[Found]]
    revision: int = 0
    """Raised whenever a search of its own asks other points for the same scores."""


EXPLAIN = Task("explain", "explaining", search_for)


def explain_all(
    places: list[Setting],
    classifier: Classifier,
    wanted: Wanted,
    seeds: list[int],
    *,
    task: Task = EXPLAIN,
    lockstep: int,
    advance: Callable[[], None] = lambda: None,
    callback: Callback | None = None,
    max_sent: int | None = None,
    shelf: Shelf | None = None,
) -> list[Explanation | Failed]:
    """One explanation a place."""
    for place in places:
        wanted.refuse_misnamed(place)
    cap = wanted.budget if max_sent is None else positive_integer("max_sent", max_sent)
    searches: list[Search[Explanation | Failed]] = []
    ledgers: list[Ledger] = []
    under_way: list[Progress] = []
    for i, (place, seed) in enumerate(zip(places, seeds, strict=True)):
        radius = _radius(classifier, place)
        under_way.append(Progress(place, wanted.aim(seed, radius), callback))
        if shelf is None:
            ledgers.append(MemoryLedger(cap))
            searches.append(_guarded(under_way[i], task, wanted, ledgers[i]))
        else:
            settings, arrays = configuration(task.name, task.revision, place, wanted, classifier, seed, radius, cap)
            ledgers.append(ledger := ReplyLedger())
            searches.append(_durable(under_way[i], task, wanted, ledger, shelf, i, settings, arrays))

    with nullcontext() if shelf is None else stop_on_signal() as signalled:
        return run_many(
            searches,
            classifier,
            ledgers,
            lockstep=lockstep,
            done=lambda *_: advance(),
            stop=lambda: bool(signalled),
            unbegun=lambda i: answer(under_way[i], _interrupted(under_way[i]), wanted, account(shelf, i)),
        )


def account(shelf: Shelf | None, i: int) -> Ledger:
    """What has been spent on input i, as far as it is known here."""
    return MemoryLedger() if shelf is None else shelf.account(i)


def unbegun(place: Setting, seed: int, classifier: Classifier, wanted: Wanted, spent: Ledger) -> Explanation:
    """The answer for an input that nobody here has begun to explain, or been told of."""
    progress = Progress(place, wanted.aim(seed, _radius(classifier, place)))
    return answer(progress, _interrupted(progress), wanted, spent)


def given_up(
    place: Setting, seed: int, classifier: Classifier, wanted: Wanted, spent: Ledger, error: ZomirrorError
) -> Failed:
    """The answer for an input whose worker cannot say how far it came."""
    progress = Progress(place, wanted.aim(seed, _radius(classifier, place)))
    ended = found(progress, Status.ERROR, np.full_like(progress.scores, np.nan), str(error))
    return Failed(error, answer(progress, ended, wanted, spent))


def _durable(
    progress: Progress,
    task: Task,
    wanted: Wanted,
    ledger: ReplyLedger,
    shelf: Shelf,
    i: int,
    settings: dict[str, Any],
    arrays: dict[str, Any],
) -> Search[Explanation | Failed]:
    """The search in its run directory, which is open as long as it lasts."""
    with shelf.open(i, settings, arrays) as run:
        if (before := shelf.find(run, wanted)) is not None:
            return before
        ledger.attach(run)
        return (yield from _guarded(progress, task, wanted, ledger, lambda explanation: shelf.keep(run, explanation)))


def _guarded(
    progress: Progress,
    task: Task,
    wanted: Wanted,
    ledger: Ledger,
    ended_well: Callable[[Explanation], None] = lambda _: None,
) -> Search[Explanation | Failed]:
    """The search, which a failing model ends with what was found so far."""
    try:
        ended = yield from task.search(progress)
    except Interrupted:
        return answer(progress, _interrupted(progress), wanted, ledger)
    except (BudgetError, OracleError, ArgumentError, ArgumentTypeError) as error:
        status = Status.MAX_SENT if isinstance(error, BudgetError) else Status.ERROR
        ended = found(progress, status, np.full_like(progress.scores, np.nan), str(error))
        partial = answer(progress, ended, wanted, ledger)
        if status is Status.MAX_SENT:
            return partial
        if isinstance(error, OracleError):
            error.result = partial
        return Failed(error, partial)
    explanation = answer(progress, ended, wanted, ledger)
    ended_well(explanation)
    return explanation


def _interrupted(progress: Progress) -> Found:
    return found(progress, Status.INTERRUPTED, np.full_like(progress.scores, np.nan))


def _radius(classifier: Classifier, place: Setting) -> float | None:
    """How far to look in units of w: scores that jump are flat between their steps, and some must be crossed."""
    hint = radius_hint(classifier, place.x0)
    return None if hint is None else float(np.median(hint.ravel() / place.scale))
