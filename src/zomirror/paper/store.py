"""Finished runs on the disk, found again by their keys: nothing is computed twice.

In the folder, `runs/KEY` is a run that is not finished (a durable run, which goes on), `done/KEY.json` is a finished
one, and `STUDY.json` holds all finished runs of a study, one a line: that file alone is enough to go on from.
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
from zomirror.paper.outcome import Outcome

FORMAT = "zomirror reproduction 1"


class Store:
    """A folder of finished and unfinished runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, Outcome] = {}
        self._read: set[str] = set()

    def find(self, task: Task) -> Outcome | None:
        """The outcome of a task, if it was ever finished here."""
        if task.study not in self._read:
            self._read.add(task.study)
            for one in read_study(self.folder / f"{task.study}.json"):
                self._known[one.key] = one
        key = task.key
        if key not in self._known and (path := self._done(key)).is_file():
            self._known[key] = _outcome(path)
        return self._known.get(key)

    def run_dir(self, task: Task) -> Path:
        """Where a task runs; values recorded by methods that would go other ways now are left alone."""
        return self.folder / "runs" / f"{task.key}-{TRAJECTORY}"

    def keep(self, task: Task, found: Outcome) -> None:
        """Write the outcome down, then drop the journal of its run: a thousand of them would fill a disk."""
        write_whole(self._done(found.key), json.dumps(found.to_dict()))
        self._known[found.key] = found
        shutil.rmtree(self.run_dir(task), ignore_errors=True)

    def merge(self, tasks: Iterable[Task]) -> list[Path]:
        """Put what is finished of these tasks into the files of their studies; gives those that were written."""
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


def read_study(path: Path) -> Iterator[Outcome]:
    """The runs in a file of results; none when there is no file."""
    if not path.is_file():
        return
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected JSON, got something else") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT or not isinstance(document.get("runs"), list):
        raise DataError(f"{path}: expected results of `zomirror reproduce`, got something else")
    yield from map(Outcome.from_dict, document["runs"])


def write_study(path: Path, runs: Iterable[Outcome]) -> None:
    """One run a line, in an order that does not depend on when they were finished."""
    ordered = sorted(runs, key=lambda one: (one.kind, one.algorithm, one.upscale, one.iterations, one.image, one.key))
    lines = ",\n".join(json.dumps(one.to_dict(), separators=(",", ":")) for one in ordered)
    write_whole(path, f'{{"format": "{FORMAT}", "runs": [\n{lines}\n]}}\n')


def write_whole(path: Path, text: str) -> None:
    """Replace the file at once, so that it is never seen half written."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def _outcome(path: Path) -> Outcome:
    try:
        return Outcome.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected the outcome of a run, got something else; remove it") from error
