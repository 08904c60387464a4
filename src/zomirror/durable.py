"""A run of minimize() in a directory: every query in a journal, resumed by the same call.

The journal's values are replayed through the deterministic algorithm, so after any crash the run is the one that
would have been; a checkpoint only makes that faster.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from zomirror.arrays import Values
from zomirror.errors import RunError
from zomirror.optimizer import Optimizer
from zomirror.result import History, Result, Status
from zomirror.runs.directory import RunDirectory
from zomirror.runs.result import Stored

PathLike = str | os.PathLike[str]


class RunLedger:
    """The ledger of a run directory."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._in_flight = False

    @property
    def used(self) -> int:
        """Rows answered in this trajectory so far, and those that earlier ends of the run measured aside."""
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
    from zomirror.runs import inspect

    try:
        info = inspect(run_dir)
    except RunError:
        return None
    seed = (info.configuration or {}).get("seed")
    return seed if isinstance(seed, int) else None


def open_run(run_dir: PathLike, optimizer: Optimizer, settings: Mapping[str, Any], max_sent: int) -> RunDirectory:
    """Create the run or resume it, refusing one of another configuration."""
    problem = optimizer.state.problem
    known = {
        "task": "minimize",
        "l1": problem.penalty.l1,
        "l2": problem.penalty.l2,
        "method": repr(optimizer.method),
        "seed": optimizer.seed,
        "stochastic": problem.stochastic,
        "returns": optimizer.returns,
        "max_sent": max_sent,
    }
    arrays = {"x0": optimizer.x, "lower": np.asarray(problem.box.lower), "upper": np.asarray(problem.box.upper)}
    return RunDirectory.open(run_dir, known | dict(settings), arrays=arrays, max_sent=max_sent)


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


def restored(stored: Stored) -> Result:
    """The result that `finish` stored."""
    s: dict[str, Any] = dict(stored.summary)
    columns = dict(zip((item.name for item in fields(History)), stored.arrays["history"], strict=True))
    whole = {name: columns[name].astype(np.int64) for name in ("nfev", "nnz")}
    x = stored.arrays["x"]
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
