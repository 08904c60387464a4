"""Searches over workers: an input is a unit, and its run directory, if it has one, goes where it goes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from zomirror.classifiers import Classifier
from zomirror.contrast.durable import Shelf
from zomirror.contrast.explanation import Explanation
from zomirror.contrast.options import Wanted
from zomirror.contrast.searches import EXPLAIN, Failed, Task, account, explain_all, given_up, unbegun
from zomirror.engine.interrupt import stop_on_signal
from zomirror.errors import WorkerError
from zomirror.features.vector import Setting
from zomirror.parallel import Workers, spread

Given = tuple[int, Setting, int]


@dataclass(frozen=True, slots=True, eq=False)
class Explaining:
    """Explains one input, in whatever process it is called."""

    task: Task
    classifier: Classifier
    wanted: Wanted
    max_sent: int | None
    runs: Path | None
    """The directory of the runs' directories, as an absolute path that every worker can reach."""

    def __call__(self, given: Given) -> tuple[Explanation | Failed, int]:
        """The explanation, and whether it is stored."""
        i, place, seed = given
        shelf = None if self.runs is None else Shelf(self.runs / f"{i:06}")
        [explained] = explain_all(
            [place],
            self.classifier,
            self.wanted,
            [seed],
            task=self.task,
            lockstep=1,
            max_sent=self.max_sent,
            shelf=shelf,
        )
        return explained, 0 if shelf is None else shelf.full


def explain_spread(
    places: list[Setting],
    classifier: Classifier,
    wanted: Wanted,
    seeds: list[int],
    workers: Workers,
    advance: Callable[[], None],
    *,
    task: Task = EXPLAIN,
    max_sent: int | None = None,
    shelf: Shelf | None = None,
) -> list[Explanation | Failed]:
    """One explanation a place; the worker's trouble is that of its input alone."""
    for place in places:
        wanted.refuse_misnamed(place)
    given = [(i, place, seed) for i, (place, seed) in enumerate(zip(places, seeds, strict=True))]
    explained: dict[int, Explanation | Failed] = {}
    explaining = Explaining(task, classifier, wanted, max_sent, None if shelf is None else shelf.runs)
    fault: Exception | None = None
    with nullcontext() if shelf is None else stop_on_signal() as signalled:
        outcomes = spread(explaining, given, workers=workers, again=shelf is not None, stop=lambda: bool(signalled))
        for i, outcome in outcomes:
            advance()
            if isinstance(outcome, WorkerError):
                explained[i] = given_up(*given[i][1:], classifier, wanted, account(shelf, i), outcome)
            elif isinstance(outcome, Exception):
                fault = fault or outcome  # a run that cannot be used, say; the others are worth finishing
            else:
                explained[i], stored = outcome
                if shelf is not None:
                    shelf.full += stored
    if fault is not None:
        raise fault
    for i in range(len(given)):
        if i not in explained:  # it was not begun, or goes on where nobody reaches it
            explained[i] = unbegun(*given[i][1:], classifier, wanted, account(shelf, i))
    return [explained[i] for i in range(len(given))]
