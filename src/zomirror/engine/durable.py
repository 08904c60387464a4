"""A search in a run directory: every query in a journal, resumed by the same call.

The journal's values are replayed through the deterministic algorithm, so after any crash the run is the one that
would have been; a checkpoint only makes that faster.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
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
"""Raised whenever the same values lead a method to other points: then recorded values cannot be replayed. A change of
one method alone raises its own `revision` instead."""


def durably(
    ledger: JournalLedger,
    opened: Callable[[], RunDirectory],
    search: Search[T],
    *,
    load: Callable[[RunDirectory], T | None],
    save: Callable[[RunDirectory, T], object],
) -> Search[T]:
    """The search in its run directory: the stored outcome if there is one, else the search, whose outcome is saved."""
    with opened() as run:
        if (before := load(run)) is not None:
            return before
        ledger.attach(run)
        outcome = yield from search
        save(run, outcome)
        return outcome


def stored_seed(run_dir: PathLike) -> int | None:
    """The seed of the run in this directory, if there is one: a resumed run goes on with its own randomness."""
    try:
        folder = Folder.open(check_path(run_dir))
    except RunError:
        return None
    try:
        stored = configs.read(folder)
    except RunError:
        return None  # whoever opens the run will say what is wrong with it
    finally:
        folder.close()
    seed = None if stored is None else stored.settings.get("seed")
    return seed if isinstance(seed, int) else None


def stable_repr(name: str, value: object) -> str:
    """repr(value), refused when it holds an address: it says what was asked for, and must say it in every process."""
    text = repr(value)
    if re.search(r" at 0x[0-9a-fA-F]+", text):
        raise ArgumentError(
            f"expected {name} to have a repr that names its parameters, got {text[:120]}: a durable run compares it "
            "when it is resumed, so make it a dataclass or give it a __repr__"
        )
    return text


def finish(run: RunDirectory, result: Result) -> None:
    """Store what the run ended with; one that was interrupted or may send no more has not ended."""
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
    """The result that `finish` stored; None when there is none, or none that can be read: the values are all there."""
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
