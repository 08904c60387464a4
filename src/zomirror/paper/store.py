"""Finished runs on disk, by their keys, so that nothing is computed twice.

runs/KEY        an unfinished run, which can be resumed
done/KEY.json   a finished run
STUDY.json      all finished runs of a study, one per line; this file alone is enough to continue the study
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from zomirror.datasets.cache import replacing
from zomirror.engine.durable import TRAJECTORY
from zomirror.errors import DataError
from zomirror.paper.grid import Task
from zomirror.paper.outcome import RunOutcome

FORMAT = "zomirror reproduction 1"


class Store:
    """A folder of finished and unfinished runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, RunOutcome] = {}
        self._read: set[str] = set()

    def find(self, task: Task) -> RunOutcome | None:
        """The outcome of a task; None if it is not finished."""
        if task.study not in self._read:
            self._read.add(task.study)
            for one in read_study(self.folder / f"{task.study}.json"):
                self._known[one.key] = one
        key = task.key
        if key not in self._known and (path := self._done(key)).is_file():
            self._known[key] = _outcome(path)
        return self._known.get(key)

    def run_dir(self, task: Task) -> Path:
        """The run directory of a task; those of older revisions, which cannot be resumed, are left alone."""
        return self.folder / "runs" / f"{task.key}-{TRAJECTORY}"

    def keep(self, task: Task, found: RunOutcome) -> None:
        """Store the outcome, then delete the run directory: thousands of them would fill the disk."""
        write_whole(self._done(found.key), json.dumps(found.to_dict()))
        self._known[found.key] = found
        shutil.rmtree(self.run_dir(task), ignore_errors=True)

    def merge(self, tasks: Iterable[Task]) -> list[Path]:
        """Add the finished ones of these tasks to the files of their studies; return the files that changed."""
        written = []
        for study in dict.fromkeys(task.study for task in tasks):
            path = self.folder / f"{study}.json"
            before = list(read_study(path))
            fresh = [one for task in tasks if task.study == study and (one := self.find(task)) is not None]
            found = {one.place: one for one in (*before, *fresh)}
            if sorted(one.key for one in before) == sorted(one.key for one in found.values()):
                continue
            write_study(path, found.values())
            written.append(path)
        return written

    def _done(self, key: str) -> Path:
        return self.folder / "done" / f"{key}.json"


def read_study(path: Path) -> Iterator[RunOutcome]:
    """The runs in a study's file; none if there is no file."""
    if not path.is_file():
        return
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected JSON, got something else") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT or not isinstance(document.get("runs"), list):
        raise DataError(f"{path}: expected results of `zomirror reproduce`, got something else")
    yield from map(RunOutcome.from_dict, document["runs"])


def write_study(path: Path, runs: Iterable[RunOutcome]) -> None:
    """One run per line, in an order that does not depend on when they finished."""
    ordered = sorted(runs, key=lambda one: (one.kind, one.algorithm, one.upscale, one.iterations, one.image, one.key))
    lines = ",\n".join(json.dumps(one.to_dict(), separators=(",", ":")) for one in ordered)
    write_whole(path, f'{{"format": "{FORMAT}", "runs": [\n{lines}\n]}}\n')


def write_whole(path: Path, text: str) -> None:
    """Replace the file atomically."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def _outcome(path: Path) -> RunOutcome:
    try:
        return RunOutcome.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected the outcome of a run, got something else; remove it") from error
