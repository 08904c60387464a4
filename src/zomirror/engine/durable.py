"""A search in a run directory: a journal records every query, and the same call resumes it.

To resume, the recorded values are replayed through the deterministic algorithm. So after any crash the run continues as
if it had not been interrupted; a checkpoint only makes the replay faster.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zomirror.engine.ledger import JournalLedger
from zomirror.engine.request import Search
from zomirror.errors import ArgumentError, RunError
from zomirror.result import History, Result, Status
from zomirror.runs import configuration as configs
from zomirror.runs.directory import RunDirectory
from zomirror.runs.folder import Folder, check_path

PathLike = str | os.PathLike[str]
T = TypeVar("T")

TRAJECTORY = 1
"""Revision of the trajectories. Raise it when the same values lead all methods to other points: stored runs of older
revisions cannot be resumed. For a change of a single method, raise its own `revision` instead."""


def durably(
    ledger: JournalLedger,
    opened: Callable[[], RunDirectory],
    search: Search[T],
    *,
    load: Callable[[RunDirectory], T | None],
    save: Callable[[RunDirectory, T], object],
) -> Search[T]:
    """Run the search in its run directory and save the outcome; return the stored outcome if there is one."""
    with opened() as run:
        if (before := load(run)) is not None:
            return before
        ledger.attach(run)
        outcome = yield from search
        try:
            save(run, outcome)
        except Exception as error:  # noqa: BLE001 - whatever it is, what was paid for reaches the caller all the same
            reason = str(error) if isinstance(error, RunError) else f"{type(error).__name__}: {error}"
            told = f"{getattr(outcome, 'message', '')}; the result could not be stored: {reason}"
            return replace(outcome, message=told)  # type: ignore[type-var]
        return outcome


def stored_seed(run_dir: PathLike) -> int | None:
    """The seed of the run in this directory, with which it is resumed; None if there is no run."""
    try:
        folder = Folder.open(check_path(run_dir))
    except RunError:
        return None
    try:
        stored = configs.read(folder)
    except RunError:
        return None  # opening the run will report what is wrong with it
    finally:
        folder.close()
    seed = None if stored is None else stored.settings.get("seed")
    return seed if isinstance(seed, int) else None


def stable_repr(name: str, value: object) -> str:
    """repr(value), for a comparison between processes; ArgumentError if it contains a memory address."""
    text = repr(value)
    if re.search(r" at 0x[0-9a-fA-F]+", text):
        raise ArgumentError(
            f"expected {name} to have a repr that names its parameters, got {text[:120]}: a durable run compares it "
            "when it is resumed, so make it a dataclass or give it a __repr__"
        )
    return text


def finish(run: RunDirectory, result: Result) -> None:
    """Store the result of a run; one that was interrupted or reached max_sent can be resumed and is not stored."""
    if result.status in (Status.INTERRUPTED, Status.MAX_SENT):
        return
    table = np.stack([np.asarray(getattr(result.history, item.name), np.float64) for item in fields(History)])
    summary = {
        "status": result.status.name,
        "message": result.message,
        "fun": result.fun,
        "f": result.f,
        "nfev": result.nfev,
        "nit": result.nit,
        "stationarity": result.stationarity,
        "seed": result.seed,
        "sent": result.sent,
    }
    run.finish(summary, {"x": result.x, "history": table})


def finished(run: RunDirectory) -> Result | None:
    """The result that `finish` stored; None if there is none or it is unreadable (the journal has all values)."""
    stored = run.result()
    if stored is None:
        return None
    try:
        return _result(stored.summary, stored.arrays)
    except (KeyError, TypeError, ValueError) as error:
        run.notes.append(f"the stored result cannot be used: {type(error).__name__}: {error}")
        return None


def _result(s: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Result:
    columns = dict(zip((item.name for item in fields(History)), arrays["history"], strict=True))
    whole = {name: columns[name].astype(np.int64) for name in ("nfev", "nnz")}
    x = arrays["x"]
    x.flags.writeable = False
    return Result(
        x=x,
        fun=float(s["fun"]),
        f=float(s["f"]),
        nfev=int(s["nfev"]),
        nit=int(s["nit"]),
        status=Status[str(s["status"])],
        message=str(s["message"]),
        stationarity=float(s["stationarity"]),
        seed=int(s["seed"]),
        sent=int(s["sent"]),
        history=History(**(columns | whole)),
    )
