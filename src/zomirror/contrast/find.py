"""Run searches: for one input or many, in this process or on workers, in memory or in run directories."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.classifiers import Classifier, FrameModel, radius_hint
from zomirror.contrast.answer import answer
from zomirror.contrast.candidate import Glimpse
from zomirror.contrast.explanation import Explanation
from zomirror.contrast.options import Options
from zomirror.contrast.progress import Callback, Progress
from zomirror.contrast.search import attack_search, explain_search
from zomirror.contrast.search.presence_search import part_search
from zomirror.contrast.search.table_search import column_search
from zomirror.engine.black_box import BlackBox
from zomirror.engine.driver import drive, drive_many
from zomirror.engine.durable import TRAJECTORY, durably
from zomirror.engine.interrupt import SIGNALS, stop_on_signal
from zomirror.engine.ledger import JournalLedger, Ledger, MemoryLedger
from zomirror.engine.request import Interrupted, Job, Search
from zomirror.errors import (
    ArgumentError,
    ArgumentTypeError,
    BudgetError,
    DataError,
    OracleError,
    RunError,
    WorkerError,
    ZomirrorError,
)
from zomirror.features.place import Place
from zomirror.features.tabular.table_place import TablePlace
from zomirror.features.vector import VectorPlace
from zomirror.methods.group_memory import GroupMemory
from zomirror.numerics.random import fingerprint
from zomirror.parallel import Workers, spread
from zomirror.result import Status
from zomirror.runs.directory import RunDirectory
from zomirror.runs.group import RunGroup
from zomirror.runs.inspection import inspect

REVISIONS = {"explain": 4, "attack": 3}
"""Revision of each search. Raise it when the same scores lead to other queries: stored runs cannot be resumed then."""
_SEARCHES = {
    "vector": {"explain": explain_search.search, "attack": attack_search.search},
    "table": {"explain": column_search.search, "attack": column_search.search},
    "graded": {"explain": explain_search.search, "attack": explain_search.search},
    "parts": {"explain": part_search.search, "attack": part_search.search},
}
"""The search of each feature space and task."""
_RESUMABLE = (Status.INTERRUPTED, Status.MAX_SENT)


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """The error of a search, and what it had found by then."""

    error: ZomirrorError
    result: Explanation


Outcome = Explanation | Failed


@dataclass(frozen=True, slots=True, eq=False)
class InputCase:
    """One input and everything that determines its search, so that any process can run it."""

    place: Place
    options: Options
    seed: int
    classifier: Classifier
    attempts: int = 1
    max_sent: int | None = None
    """None: the budget."""
    run_dir: Path | None = None

    def __call__(self, callback: Callback | None = None) -> Outcome:
        """Run the search in this process."""
        with _signals(durable=self.run_dir is not None) as stop:
            return drive(self.job(callback), self.box, stop=stop)

    @property
    def box(self) -> BlackBox:
        """The model. Argument errors that it raises are passed on, not reported as failures of the model."""
        return BlackBox(self.classifier, "the model", self.attempts, (ArgumentError, ArgumentTypeError))

    def progress(self, callback: Callback | None = None) -> Progress:
        """The state of the search before its first query."""
        return Progress(self.place, self.options, self.seed, self._radius(), callback)

    def _radius(self) -> float | None:
        """The step of finite differences. Scores of trees are constant between thresholds, so it must cross some."""
        if not isinstance(self.place, VectorPlace):
            return None
        hint = radius_hint(self.classifier, self.place.x0)
        return None if hint is None else float(np.median(hint.ravel() / self.place.scale))

    def job(self, callback: Callback | None = None, group: RunGroup | None = None) -> Job[Outcome]:
        """The search as a Job; its run is a member of the group, if one is given."""
        progress, cap = self.progress(callback), self.options.budget if self.max_sent is None else self.max_sent
        if self.run_dir is None:
            ledger = MemoryLedger(cap)
            return Job(self._search(progress, ledger), ledger)
        run_dir, journal = self.run_dir, JournalLedger()
        settings, arrays = self._configuration(progress.radius, cap)

        def opened() -> RunDirectory:
            if group is None:
                return RunDirectory.open(run_dir, settings, arrays=arrays, max_sent=cap)
            return group.member(run_dir.name, settings, arrays=arrays, max_sent=cap)

        search = self._search(progress, journal)
        return Job(durably(journal, opened, search, load=self._load, save=_save), journal)

    def _search(self, progress: Progress, ledger: Ledger) -> Search[Outcome]:
        """The search; if it is stopped or the model fails, it returns what was found so far."""
        try:
            ended = yield from _SEARCHES[self.place.space][self.options.task](progress)
        except Interrupted:
            ended = progress.found(Status.INTERRUPTED, note=self._begins_anew)
        except BudgetError as error:
            ended = progress.found(Status.MAX_SENT, note=str(error))
        except (OracleError, ArgumentError, ArgumentTypeError) as error:
            return self._failed(progress, ledger, error)
        return answer(progress, ended, ledger)

    @staticmethod
    def _failed(progress: Progress, ledger: Ledger, error: ZomirrorError) -> Failed:
        partial = answer(progress, progress.found(Status.ERROR, note=str(error)), ledger)
        if isinstance(error, OracleError):
            error.result = partial
        return Failed(error, partial)

    @property
    def _begins_anew(self) -> str:
        return "" if self.run_dir is not None else "it had none, so the same call begins anew"

    def unbegun(self) -> Explanation:
        """The result for an input whose search was not started here: status INTERRUPTED."""
        progress = self.progress()
        return answer(progress, progress.found(Status.INTERRUPTED, note=self._begins_anew), self._spent())

    def given_up(self, error: ZomirrorError) -> Failed:
        """The result for an input whose worker died: status ERROR."""
        return self._failed(self.progress(), self._spent(), error)

    def _spent(self) -> Ledger:
        """The queries counted in the run directory; none without one."""
        ledger = MemoryLedger()
        if self.run_dir is not None:
            with contextlib.suppress(RunError):
                spent = inspect(self.run_dir)
                ledger.used, ledger.sent = spent.used, spent.sent
        return ledger

    def _configuration(self, radius: float | None, cap: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The settings and arrays that determine the search, without the model, which is not stored."""
        settings = {
            "task": self.options.task,
            "seed": self.seed,
            "budget": self.options.budget,
            "max_sent": cap,
            "asked": decided(self.options, self.classifier) | {"radius": radius},
        }
        return settings, self.place.arrays()

    def _load(self, run: RunDirectory) -> Explanation | None:
        """The stored explanation with the names of this call; None if there is none or it cannot be read."""
        stored = run.result()
        if stored is None or "explanation" not in stored.arrays:
            return None
        try:
            found = Explanation.from_json(stored.arrays["explanation"].tobytes().decode())
        except (DataError, UnicodeDecodeError) as error:
            run.notes.append(f"the stored explanation cannot be used: {error}")
            return None
        if isinstance(self.place, TablePlace) and isinstance(found.perturbed, dict):  # in the type that was given
            found = replace(found, x0=self.place.x0, perturbed=self.place.restored(found.perturbed))
        return replace(found, feature_names=self.place.names, class_names=self.options.class_names)


def informed(place: Place, classifier: Classifier) -> Place:
    """The place with what the model's trees tell: the row of a table knows the thresholds of each column."""
    if isinstance(place, TablePlace) and isinstance(classifier, FrameModel):
        return place.stepped(classifier.splits)
    return place


def decided(options: Options, classifier: Classifier) -> dict[str, Any]:
    """What determines a search besides its input and seed; of the model only the type of its adapter."""
    steps = GroupMemory.revision if options.method is None else getattr(options.method, "revision", 0)
    revisions = [TRAJECTORY, REVISIONS[options.task], steps]
    return options.record() | {"search_revision": revisions, "draws": fingerprint(), "model": type(classifier).__name__}


def _save(run: RunDirectory, outcome: Outcome) -> None:
    """Store an explanation if it is final."""
    if isinstance(outcome, Failed) or outcome.status in _RESUMABLE:
        return
    shown = ("kind", "valid", "label", "contrast_label", "nnz", "objective", "nfev", "sent", "message")
    summary = {name: getattr(outcome, name) for name in shown} | {"status": outcome.status.name}
    run.finish(summary, {"explanation": np.frombuffer(outcome.to_json().encode(), np.uint8)})


def is_final(outcome: Outcome) -> bool:
    """Whether the same call would return the stored result instead of resuming the search."""
    return not isinstance(outcome, Failed) and outcome.status not in _RESUMABLE


@contextlib.contextmanager
def _signals(*, durable: bool) -> Iterator[Callable[[], bool]]:
    """A function that says whether a signal asked to stop; without a run directory SIGTERM acts as usual."""
    with stop_on_signal(SIGNALS if durable else (signal.SIGINT,)) as signalled:
        yield lambda: bool(signalled)


def find_together(
    cases: Sequence[InputCase],
    *,
    lockstep: int,
    done: Callable[[int, Outcome], object],
    watch: Callable[[int, Glimpse], object],
    group: RunGroup | None,
) -> list[Outcome]:
    """Search all cases in this process, `lockstep` at a time in joint batches; one outcome each, in order."""
    if not cases:
        return []

    def watched(i: int) -> Callback:
        return lambda glimpse: watch(i, glimpse)

    jobs = [case.job(watched(i), group) for i, case in enumerate(cases)]
    with _signals(durable=group is not None) as stop:
        unbegun = [case.unbegun for case in cases]
        return drive_many(jobs, cases[0].box, lockstep=lockstep, done=done, stop=stop, unbegun=lambda i: unbegun[i]())


def find_spread(
    cases: Sequence[InputCase], workers: Workers, *, done: Callable[[int, Outcome], object], durable: bool
) -> list[Outcome]:
    """Search each case on a worker; one outcome each, in order. A worker's failure concerns only its own case."""
    if not cases:
        return []
    found: dict[int, Outcome] = {}
    fault: Exception | None = None
    with _signals(durable=durable) as stop:
        tasks = [(case.place, case.seed, case.run_dir) for case in cases]
        for i, outcome in spread(_SearchLike(cases[0]), tasks, workers=workers, again=durable, stop=stop):
            if isinstance(outcome, WorkerError):
                found[i] = cases[i].given_up(outcome)
            elif isinstance(outcome, Exception):
                fault = fault or outcome  # for instance a damaged run; the others are finished first
                continue
            else:
                found[i] = outcome
            done(i, found[i])
    if fault is not None:
        raise fault
    # A missing case was not started, or its worker cannot be reached.
    return [found[i] if i in found else cases[i].unbegun() for i in range(len(cases))]


@dataclass(frozen=True, slots=True, eq=False)
class _SearchLike:
    """The search of one case applied to other inputs, so that the model is sent once per worker, not per input."""

    case: InputCase

    def __call__(self, task: tuple[Place, int, Path | None]) -> Outcome:
        place, seed, run_dir = task
        return replace(self.case, place=place, seed=seed, run_dir=run_dir)()
