"""A run in a directory: every query in a journal, resumed by the same call.

The journal's values are replayed through the deterministic algorithm, so after any crash the run is the one that
would have been; a checkpoint only makes that faster.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError, RunError
from zomirror.numerics.arrays import Values
from zomirror.result import History, Result, Status
from zomirror.runs import configuration as configs
from zomirror.runs.directory import RunDirectory
from zomirror.runs.folder import Folder, check_path

if TYPE_CHECKING:
    from zomirror.optimizer import Optimizer

PathLike = str | os.PathLike[str]

TRAJECTORY = 2
"""Raised whenever the same values lead a method to other points: then recorded values cannot be replayed. A change of
one method alone raises its own `revision` instead."""


class RunLedger:
    """The ledger of a run directory; one more `begin` before the answer is the same batch sent again."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._in_flight = False

    @property
    def used(self) -> int:
        """Rows answered in this trajectory so far, and those that ended an earlier session up to here."""
        return self._run.position + self._run.asides

    @property
    def sent(self) -> int:
        """Rows ever sent, by every process that worked on the run."""
        return self._run.sent

    def recall(self, rows: int, *, aside: bool = False) -> Values | None:
        """What an earlier process was answered."""
        if aside:
            return self._run.aside(rows)
        if not self._run.replaying:
            return None
        values = self._run.take(rows)
        if len(values) != rows:
            raise RunError(f"expected {rows} recorded values, got {len(values)}: the run was recorded in other blocks")
        return values

    def affords(self, rows: int) -> bool:
        """Whether the cap allows it."""
        return self._run.affords(rows)

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """On the disk before anything is sent."""
        if self._in_flight:
            self._run.resend(rows)
        else:
            self._run.begin(rows, aside=aside)
        self._in_flight = True

    def record(self, values: Values) -> None:
        """The answers."""
        self._run.values(values)
        self._in_flight = False

    def lose(self, reason: str) -> None:
        """No answer will come."""
        self._run.lose(reason)
        self._in_flight = False


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


def open_run(
    run_dir: PathLike, optimizer: Optimizer, settings: Mapping[str, Any], max_sent: int | None
) -> RunDirectory:
    """Create the run or resume it, refusing one of another configuration."""
    problem = optimizer.state.problem
    revision = getattr(optimizer.method, "revision", 0)
    known = {
        "trajectory": [TRAJECTORY, revision] if revision else TRAJECTORY,
        "l1": problem.penalty.l1,
        "l2": problem.penalty.l2,
        "method": stable_repr("method", optimizer.method),
        "seed": optimizer.seed,
        "stochastic": problem.stochastic,
        "returns": optimizer.returns,
        "max_sent": max_sent,
    }
    arrays = {"x0": optimizer.x, "lower": np.asarray(problem.box.lower), "upper": np.asarray(problem.box.upper)}
    return RunDirectory.open(run_dir, known | dict(settings), arrays=arrays, max_sent=max_sent)


def resume(run: RunDirectory, optimizer: Optimizer, fits: Callable[[Optimizer], bool] = lambda _: True) -> None:
    """Go on from the checkpoint, if there is one that can be used; what it lacks is replayed.

    A checkpoint beyond where this run will end (`fits` says no) is of no use.
    """
    blank = optimizer.snapshot()

    def into(state: Mapping[str, NDArray[Any]]) -> None:
        optimizer.restore(state)
        if not fits(optimizer):
            optimizer.restore(blank)
            raise RunError("it lies beyond the end of this run")

    run.restore(into)


def finish(run: RunDirectory, result: Result) -> None:
    """Store what the run ended with."""
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
