"""Explanations in a run directory: every query in a journal, resumed by the same call.

The configuration holds all that decides the search, but not the model: the caller vouches that it is the same one.
Of the model only the kind of its adapter is stored, never an address, a path or a token.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.classifiers import Classifier
from zomirror.contrast.explanation import Explanation
from zomirror.contrast.options import Wanted
from zomirror.engine.durable import TRAJECTORY, PathLike, RunLedger, stable_repr
from zomirror.engine.oracle import MemoryLedger
from zomirror.errors import DataError, RunError
from zomirror.features.vector import Setting
from zomirror.methods.group_memory import GroupMemory
from zomirror.runs.directory import RunDirectory
from zomirror.runs.group import RunGroup
from zomirror.runs.inspection import inspect
from zomirror.runs.wide import carried

SEARCH = 7
"""Raised whenever the search asks other points for the same scores: then recorded scores cannot be replayed."""


class ReplyLedger:
    """The ledger of one search: replies of one number a row are in the journal, wider ones beside it."""

    _run: RunDirectory
    _ledger: RunLedger

    def attach(self, run: RunDirectory) -> None:
        """The run is opened when its search begins: of ten thousand inputs, few are open at a time."""
        self._run, self._ledger = run, RunLedger(run)

    @property
    def used(self) -> int:
        """Rows answered in this search."""
        return self._ledger.used

    @property
    def sent(self) -> int:
        """Rows ever sent, by every process that worked on the search."""
        return self._ledger.sent

    def recall(self, rows: int, *, aside: bool = False) -> NDArray[np.float64] | None:
        """What an earlier process was answered, (rows, k)."""
        position = self._run.position
        values = self._ledger.recall(rows, aside=aside)
        if values is None:
            return None
        crc = carried(values)
        return values[:, None] if crc is None else self._run.wide.read(position, rows, crc)

    def affords(self, rows: int) -> bool:
        """Whether the cap allows it."""
        return self._ledger.affords(rows)

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """On the disk, with room for the answers, before anything is sent."""
        self._run.wide.reserve(rows)
        self._ledger.begin(rows, aside=aside)

    def record(self, values: NDArray[np.float64]) -> None:
        """The answers, (rows, k)."""
        wide = values.shape[1] > 1
        self._ledger.record(self._run.wide.write(self._run.position, values) if wide else values[:, 0])

    def lose(self, reason: str) -> None:
        """No answer will come."""
        self._ledger.lose(reason)


def asked(wanted: Wanted, classifier: Classifier, revision: int = 0) -> dict[str, Any]:
    """Everything that decides a search beside its input and its seed; a changed budget is another search."""
    method = "recommended" if wanted.method is None else stable_repr("method", wanted.method)
    steps = GroupMemory.revision if wanted.method is None else getattr(wanted.method, "revision", 0)
    return {
        "search": [TRAJECTORY, SEARCH, *([revision] if revision else [])],
        "model": type(classifier).__name__,
        "kind": wanted.kind,
        "l1": float(wanted.l1),
        "l2": float(wanted.l2),
        "kappa": float(wanted.kappa),
        "loss": wanted.loss,
        "budget": int(wanted.budget),
        "method": [method, steps] if steps else method,
        "label": wanted.label,
        "target": wanted.target,
        "signed": bool(wanted.signed),
        "levels": int(wanted.search),
    }


def configuration(
    task: str,
    revision: int,
    place: Setting,
    wanted: Wanted,
    classifier: Classifier,
    seed: int,
    radius: float | None,
    max_sent: int,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The settings and arrays of the run of one search."""
    settings = {
        "task": task,
        "seed": seed,
        "budget": int(wanted.budget),
        "max_sent": max_sent,
        "asked": asked(wanted, classifier, revision) | {"radius": radius},
    }
    box = place.box
    arrays = {"x0": place.x0, "base": place.base, "scale": place.scale, "start": place.start}
    return settings, {name: np.asarray(a) for name, a in (arrays | {"lower": box.lower, "upper": box.upper}).items()}


def keep(run: RunDirectory, explanation: Explanation) -> None:
    """Store what the search ended with."""
    shown = ("kind", "valid", "label", "contrast_label", "nnz", "objective", "nfev", "sent", "message")
    summary = {name: getattr(explanation, name) for name in shown} | {"status": explanation.status.name}
    text = np.frombuffer(explanation.to_json().encode(), np.uint8)
    run.finish(summary, {"explanation": text})


def kept(run: RunDirectory, wanted: Wanted) -> Explanation | None:
    """What `keep` stored, under the names of this call; None when there is none that can be read."""
    stored = run.result()
    if stored is None or "explanation" not in stored.arrays:
        return None
    try:
        explanation = Explanation.from_json(stored.arrays["explanation"].tobytes().decode())
    except (DataError, UnicodeDecodeError) as error:
        run.notes.append(f"the stored explanation cannot be used: {error}")
        return None
    return replace(explanation, feature_names=wanted.feature_names, class_names=wanted.class_names)


class Shelf:
    """Where the runs of the searches are: a directory for one, a group for many."""

    def __init__(self, place: PathLike | RunGroup) -> None:
        self._place = place
        self.full = 0
        """How many searches have ended with a result that is stored."""

    @property
    def runs(self) -> Path:
        """Where the runs of many are, for other processes."""
        return (self._place.path if isinstance(self._place, RunGroup) else Path(self._place)).absolute()

    def open(self, i: int, settings: dict[str, Any], arrays: dict[str, Any]) -> RunDirectory:
        """The run of search i."""
        if isinstance(self._place, RunGroup):
            return self._place.member(f"{i:06}", settings, arrays=arrays, max_sent=settings["max_sent"])
        return RunDirectory.open(self._place, settings, arrays=arrays, max_sent=settings["max_sent"])

    def account(self, i: int) -> MemoryLedger:
        """What the run of search i has spent, by whoever worked on it; nothing where there is no run."""
        ledger = MemoryLedger()
        with contextlib.suppress(RunError):
            spent = inspect(self.runs / f"{i:06}" if isinstance(self._place, RunGroup) else self.runs)
            ledger.used, ledger.sent = spent.used, spent.sent
        return ledger

    def keep(self, run: RunDirectory, explanation: Explanation) -> None:
        """Store what a search ended with."""
        keep(run, explanation)
        self.full += 1

    def find(self, run: RunDirectory, wanted: Wanted) -> Explanation | None:
        """What a search ended with in an earlier life."""
        explanation = kept(run, wanted)
        self.full += explanation is not None
        return explanation
