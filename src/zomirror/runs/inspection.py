"""Describe a run directory without running, locking or writing anything."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zomirror.errors import ArgumentError, RunError
from zomirror.runs import checkpoint as checkpoints
from zomirror.runs import configuration as configs
from zomirror.runs import stored_result as results
from zomirror.runs.configuration import read_journal
from zomirror.runs.document import LARGEST, decode
from zomirror.runs.folder import Folder, check_name, check_path
from zomirror.runs.lock import holder

if TYPE_CHECKING:
    from collections.abc import Callable

    from zomirror.runs.configuration import Config
    from zomirror.runs.document import Json
    from zomirror.runs.scan import Scan

DEPTH = 3  # levels of nested groups: a command, its explain_many, their runs
_TRIES = 10  # times to look again for growth of a journal that seems damaged while its owner writes


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What `inspect` found.

    `state` is one of: 'fresh' (nothing sent yet), 'running' (its owner is alive on this machine), 'interrupted' (the
    same call resumes it), 'finished', or 'damaged' (`damage` says where). An unusable checkpoint or result is listed in
    `damage` too, but does not make the run damaged. `progress` is the fraction of the budget used, or of the members
    finished.
    """

    path: Path
    kind: str
    state: str
    progress: float | None = None
    position: int = 0
    used: int = 0
    sent: int = 0
    lost: int = 0
    sessions: int = 0
    configuration: dict[str, Json] | None = None
    created: str = ""
    version: str = ""
    owner: str = ""
    damage: tuple[str, ...] = ()
    members: tuple[RunInfo, ...] = ()

    def __str__(self) -> str:
        part = "" if self.progress is None else f" {self.progress:.0%},"
        text = f"{self.path.name}: {self.state},{part} used {self.used:,}, sent {self.sent:,}, lost {self.lost:,}"
        return "; ".join((text, *self.damage))


def inspect(path: str | os.PathLike[str], *, whole: bool = False) -> RunInfo:
    """Describe a run or a group of runs; RunError if the directory does not exist or holds neither.

    Parameters
    ----------
    path : path
        The run directory.
    whole : bool
        False: read each journal from its last checkpoint on, which takes less than a second however long the run is.
        True: read and check every byte.
    """
    folder = Folder.open(check_path(path))
    try:
        return _describe(folder, whole=whole)
    finally:
        folder.close()


def list_runs(root: str | os.PathLike[str]) -> list[RunInfo]:
    """Describe every run directly below a directory, sorted by name; other directories and links are skipped."""
    folder = Folder.open(check_path(root))
    try:
        return _members(folder, DEPTH)
    finally:
        folder.close()


def _members(folder: Folder, depth: int, *, whole: bool = False) -> list[RunInfo]:
    found = []
    for name in folder.names():
        if folder.kind(name) != "directory":
            continue
        try:
            child = folder.child(check_name(name))
        except (RunError, ArgumentError):
            continue
        try:
            if child.kind(configs.NAME) is not None or (child.kind(configs.COMMAND) is not None and depth > 1):
                found.append(_describe(child, depth - 1, whole=whole))
        finally:
            child.close()
    return found


def _describe(folder: Folder, depth: int = DEPTH, *, whole: bool = False) -> RunInfo:
    try:
        config = configs.read(folder)
    except RunError as error:
        return RunInfo(folder.path, "unknown", "damaged", damage=(str(error),))
    if config is None:
        if folder.kind(configs.COMMAND) is None or not depth:
            raise RunError(f"directory {str(folder.path)!r} holds no run: it has no {configs.NAME}")
        members = _members(folder, depth, whole=whole)
        promised = _promised(folder)
        done = sum(member.state == "finished" for member in members)
        blank = RunInfo(folder.path, "group", "fresh", progress=min(1.0, done / promised))
        if members:
            first = min(members, key=lambda member: member.created)
            blank = replace(blank, created=first.created, version=first.version)
        return _sum_up(blank, members, running=False, finished=promised <= done == len(members))
    owner, damage = None, tuple[str, ...]()
    try:
        owner = holder(folder)
    except RunError as error:
        damage = (str(error),)
    blank = RunInfo(
        folder.path,
        config.kind,
        "fresh",
        configuration=config.settings,
        created=config.created,
        version=config.version,
        owner=str(owner) if owner else "",
        damage=damage,
    )
    running = owner is not None and owner.alive()
    if config.kind == "group":
        if not depth:  # the library never nests groups this deep
            return replace(blank, state="damaged")
        return _describe_group(folder, config, blank, _members(folder, depth, whole=whole), running=running)
    return _describe_run(folder, config, blank, running=running, whole=whole)


def _promised(folder: Folder) -> int:
    """The number of runs that a command makes: it begins them one after another."""
    try:
        members = decode(folder.read(configs.COMMAND, limit=LARGEST), folder.where(configs.COMMAND)).get("members")
    except RunError:
        return 1  # resuming the command reports what is wrong with it
    return max(1, members) if isinstance(members, int) else 1


def _describe_run(folder: Folder, config: Config, info: RunInfo, *, running: bool, whole: bool) -> RunInfo:
    damage = list(info.damage)
    try:
        known = checkpoints.glance(folder)
    except RunError as error:
        known = None
        damage.append(str(error))
    place = known.place if known and known.run_id == config.run_id else None
    read = partial(read_journal, folder=folder, config=config, place=None if whole else place)
    try:
        fd = folder.open_file(configs.JOURNAL)
    except RunError as error:
        return replace(info, state="damaged", damage=(*damage, str(error)))
    try:
        found = _read_moving(partial(read, fd)) if running else read(fd)
    except RunError as error:
        return replace(info, state="damaged", damage=(*damage, str(error)))
    finally:
        os.close(fd)
    what = folder.where(configs.JOURNAL)
    tally = found.tally if running else found.settled()
    finished = False
    try:
        finished = results.belongs(folder, config, tally.crc) is not None
    except RunError as error:
        damage.append(str(error))
    state = "finished" if finished else "fresh" if tally.sent == 0 else "interrupted"
    state = "running" if running and not finished else state
    if found.dropped and not running:
        damage.append(f"{found.dropped:,} bytes of an unfinished write lie at the end of {what}")
    if place is not None and place.offset > found.end and not running:
        state = "damaged"
        damage.append(f"{what} ends at byte {found.end:,}, but a checkpoint was made at byte {place.offset:,}")
    budget = config.settings.get("budget")
    known_budget = isinstance(budget, (int, float)) and budget > 0
    return replace(
        info,
        state=state,
        progress=1.0 if finished else min(1.0, tally.used / budget) if known_budget else None,  # type: ignore[operator]
        position=tally.position,
        used=tally.used,
        sent=tally.sent,
        lost=tally.lost,
        sessions=tally.sessions,
        damage=tuple(damage),
    )


def _read_moving(read: Callable[..., Scan]) -> Scan:
    """Scan a journal while its owner writes: it is damaged only if it also does not grow."""
    try:
        return read()
    except RunError:
        end = read(moving=True).end
        for _ in range(_TRIES):
            time.sleep(0.02)
            found = read(moving=True)
            if found.end > end:
                return found
        raise


def _describe_group(folder: Folder, config: Config, info: RunInfo, members: list[RunInfo], *, running: bool) -> RunInfo:
    finished = False
    try:
        finished = results.belongs(folder, config, 0) is not None
    except RunError as error:
        info = replace(info, damage=(*info.damage, str(error)))
    found = _sum_up(info, members, running=running, finished=finished)
    total = config.settings.get("members")
    done = sum(member.state == "finished" for member in found.members)
    return replace(found, progress=min(1.0, done / total) if isinstance(total, int) and total > 0 else None)


def _sum_up(info: RunInfo, members: list[RunInfo], *, running: bool, finished: bool) -> RunInfo:
    """The totals and state of a group; `finished` if no member is running or damaged."""
    states, damage = [member.state for member in members], list(info.damage)
    if running or "running" in states:
        state = "running"
    elif "damaged" in states:
        state = "damaged"
        damage += [f"{m.path.name}: {text}" for m in members if m.state == "damaged" for text in m.damage]
    elif finished:
        state = "finished"
    else:
        state = "interrupted" if members else "fresh"
    counts = {name: sum(getattr(m, name) for m in members) for name in ("used", "sent", "lost", "position", "sessions")}
    return replace(info, state=state, damage=tuple(damage), members=tuple(members), **counts)
