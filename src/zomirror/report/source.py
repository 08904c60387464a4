"""Reads explanations from the .json files of `zomirror explain --out` and from run directories; locks nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from zomirror.contrast import Explanation
from zomirror.errors import ArgumentError, DataError, RunError
from zomirror.runs import RunInfo, list_runs
from zomirror.runs import configuration as configs
from zomirror.runs import stored_result as results
from zomirror.runs.folder import Folder, check_path

MAX_BYTES = 1 << 28


@dataclass(slots=True)
class Loaded:
    """The explanations that were read, and a sentence about each run that has none."""

    explanations: list[Explanation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def load(path: Path) -> Loaded:
    """The explanations of a .json file, a directory of them, a run, or a directory of runs."""
    if not path.is_dir():
        return Loaded([_of_file(path)])
    if (path / configs.NAME).exists() and _kind(path) == "run":
        return Loaded([_of_run(path)])
    found = Loaded()
    for file in sorted(path.glob("*.json")):
        if file.name not in (configs.NAME, results.NAME, "command.json"):
            found.explanations.append(_of_file(file))
    for info in _runs(list_runs(path)):
        try:
            found.explanations.append(_of_run(info.path))
        except RunError as error:
            found.notes.append(str(error))
    if not found.explanations and not found.notes:
        raise ArgumentError(f"expected explanations in {str(path)!r}, found none: zomirror explain --out writes them")
    return found


def _runs(found: Iterable[RunInfo]) -> Iterator[RunInfo]:
    """The runs among these, and those inside the groups among these."""
    for info in found:
        yield from _runs(info.members) if info.kind == "group" else (info,)


def _of_file(path: Path) -> Explanation:
    if path.stat().st_size > MAX_BYTES:
        raise DataError(f"{path}: expected at most {MAX_BYTES:,} bytes, got {path.stat().st_size:,}")
    try:
        return Explanation.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected UTF-8 text, got something else") from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _kind(path: Path) -> str:
    folder = Folder.open(check_path(path))
    try:
        config = configs.read(folder)
    finally:
        folder.close()
    return config.kind if config else ""


def _of_run(path: Path) -> Explanation:
    """The explanation of a finished run of explain(); RunError for any other run."""
    folder = Folder.open(check_path(path))
    try:
        config = configs.read(folder)
        if config is None or config.kind != "run":
            raise RunError(f"{path}: expected a run, found none")
        fd = folder.open_file(configs.JOURNAL)
        try:
            crc = configs.read_journal(fd, folder, config).settled().crc
        finally:
            os.close(fd)
        stored = results.read(folder, config, crc)
    finally:
        folder.close()
    if stored is None:
        raise RunError(f"{path}: has not finished: there is no explanation yet")
    if "explanation" not in stored.arrays:
        raise RunError(f"{path}: is a run of {config.settings.get('task', 'another kind')}, which explains nothing")
    try:
        one = Explanation.from_json(stored.arrays["explanation"].tobytes().decode())
    except (DataError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: the stored explanation cannot be read: {error}") from error
    return replace(one, settings={"input": path.name} | one.settings)
