"""Ask and tell: a run in which the caller evaluates the function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import choice, flag, nonnegative, positive_integer, reading, seed_of, shown, some, vector
from zomirror.engine.black_box import checked_values, nonfinite_rows
from zomirror.engine.durable import TRAJECTORY, PathLike, stable_repr, stored_seed
from zomirror.engine.ledger import JournalLedger, Ledger
from zomirror.errors import ArgumentError, ArgumentTypeError, RunError
from zomirror.methods.descent import BestPoint, Keeper, Method, Retreating, State
from zomirror.methods.gradient_guess import GradientGuess
from zomirror.methods.presets import recommended
from zomirror.methods.query import MAX_BLOCK_ROWS, Query, Segment
from zomirror.numerics.arrays import Array, Values, finite
from zomirror.numerics.random import fingerprint, key_of, uniform
from zomirror.problem import Box, ElasticNet, Problem
from zomirror.result import History, HistoryLog, Intermediate, Result, Status
from zomirror.runs.directory import RunDirectory
from zomirror.runs.snapshot import Arrays, pack, unpack

RETURNS = ("last", "best", "random")


class Optimizer:
    """min over a box of f(x) + l1 |x|_1 + (l2/2) |x|_2^2, f evaluated by the caller.

        opt = Optimizer(x0, l1=0.1, bounds=(0, 1), rng=0)
        while opt.nfev < 40_000:
            opt.tell(fun(opt.ask()))
        opt.result.x

    `ask()` returns an array (n, d) of points and `tell()` takes their n values. Asking again before telling returns the
    same points. `x` is the current iterate, around which the next batch lies. `result` holds the point that `returns`
    names. `Optimizer.open(run_dir, x0, ...)` does the same in a directory that survives the process.

    Parameters
    ----------
    x0, l1, l2, bounds, method, rng, stochastic, returns, noise, prior
        As for minimize().
    """

    def __init__(
        self,
        x0: object,
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        bounds: object = None,
        method: Method | None = None,
        rng: object = 0,
        stochastic: bool = False,
        returns: str | None = None,
        noise: float | None = None,
        prior: object = None,
    ) -> None:
        start = vector("x0", x0)
        box = Box.of(bounds, start.size).astype(start.dtype)
        _refuse_outside(start, box)
        self.returns = None if returns is None else choice("returns", returns, RETURNS)
        self.seed = seed_of(rng)
        problem = Problem(start.size, start.dtype, ElasticNet(l1, l2), box, flag("stochastic", stochastic))
        if noise is not None:
            noise = nonnegative("noise", noise)
        if prior is not None and method is not None:
            raise ArgumentError(
                "expected no prior with a method of your own: the recommended one (method=None) uses it"
            )
        self._prior = None if prior is None else GradientGuess.of(prior, start)
        self.method = (
            recommended(start, problem.penalty, box, noise=noise, prior=self._prior)
            if method is None
            else _checked_method(method)
        )
        self._keeper = self.method if isinstance(self.method, Keeper) else None  # checked once: it is as slow as a step
        with reading("method", self.method):
            self._state = self.method.init(start, problem, key_of(self.seed))
        self._trace = _Trace(self.returns)
        self._query: Query | None = None
        self.nfev = 0
        self.status = Status.RUNNING
        self._detail = ""
        self._run: RunDirectory | None = None
        self._ledger: JournalLedger | None = None
        self._asked = False

    @classmethod
    def open(cls, run_dir: PathLike, x0: object, *, max_sent: int | None = None, **options: Any) -> Self:
        """An optimizer with a journal of its batches: opened again, it continues after the last batch told.

            with Optimizer.open("run", x0, l1=0.1, bounds=(0, 1), rng=0, max_sent=40_000) as opt:
                while opt.nfev < 30_000:
                    opt.tell(fun(opt.ask()))

        `options` are those of Optimizer(), and must equal the stored ones. `ask()` records its points as sent before it
        returns them, and raises BudgetError if they would exceed `max_sent`; `tell()` records their values. A batch
        that was asked but not told before the process died is lost, and `ask()` returns it again.
        """
        if max_sent is not None:
            positive_integer("max_sent", max_sent)
        if options.get("rng", 0) is None:
            options["rng"] = stored_seed(run_dir)
        optimizer = cls(x0, **options)
        if len(optimizer.query) > MAX_BLOCK_ROWS:
            raise ArgumentError(
                f"expected batches of at most {MAX_BLOCK_ROWS:,} rows in a run directory, got "
                f"{len(optimizer.query):,}: use a smaller batch_size"
            )
        run = optimizer.open_run(run_dir, {"task": "ask and tell"}, max_sent)
        ledger = JournalLedger()
        ledger.attach(run)
        try:
            optimizer.resume(ledger)
            while (values := ledger.recall(len(optimizer.query), optimizer.query.checksum())) is not None:
                optimizer.tell(values)
        except BaseException:
            run.close()
            raise
        optimizer._run, optimizer._ledger = run, ledger
        return optimizer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the run directory, if there is one; a batch that was asked but not told is lost."""
        if self._run is not None:
            if not self._asked:
                self._run.checkpoint(self.snapshot())
            self._run.close()
            self._run = None

    @property
    def x(self) -> Array:
        """The current iterate, around which the next batch lies."""
        return self._state.x

    @property
    def nit(self) -> int:
        """The number of iterations done."""
        return self._state.t

    @property
    def state(self) -> State:
        """The state of the method, immutable."""
        return self._state

    @property
    def query(self) -> Query:
        """A description of the next batch; `ask()` turns it into an array."""
        if self._query is None:
            self._query = self.method.ask(self._state)
        return self._query

    def ask(self) -> Array:
        """The points of the next batch: a new array (n, d)."""
        self._reserve()
        return self.query.points()

    def _reserve(self) -> None:
        """Record, once per batch, that it is sent."""
        if self._ledger is not None and not self._asked:
            self._ledger.begin(len(self.query))
            self._asked = True

    @property
    def samples(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The random draw that each row of `ask()` belongs to, when the function is stochastic."""
        if not self.query.stochastic:
            raise ArgumentError("expected stochastic=True: only then do rows belong to random draws")
        return self.query.samples()

    def tell(self, values: object) -> None:
        """Take the values at the points of `ask()`. If one is not finite, they are counted but no step is taken.

        A method that had restarted then returns to where it was before the restart.
        """
        told = checked_values(values, len(self.query))
        if self._ledger is not None:
            self._reserve()
            self._ledger.record(told, self.query.checksum())
            self._asked = False
        self.take(told)
        if self._run is not None and self._run.checkpoint_due:
            self._run.checkpoint(self.snapshot())

    def take(self, told: Values) -> None:
        """`tell` for values that are already checked and, in a run directory, already recorded."""
        query = self.query
        self.nfev += told.size
        if bad := nonfinite_rows(told):
            self._give_up(Status.NONFINITE, bad)
            return
        moved = self.method.tell(self._state, query, told)
        if not finite(moved.x):
            self._give_up(Status.DIVERGED)
            return
        self.status, self._detail = Status.RUNNING, ""
        self._state, self._query = moved, None
        if (last := moved.last) is not None:
            h = moved.problem.penalty(last.x)
            self._trace.add(self._state, last.x, last.f, h, self.nfev, last.eta, last.stationarity)
            self._trace.prefer(self._kept, self._state, self.nfev)

    def _give_up(self, status: Status, detail: str = "") -> None:
        """Set the status, unless the method can withdraw to another state and continue."""
        elsewhere = self.method.withdrawn(self._state) if isinstance(self.method, Retreating) else None
        if elsewhere is None:
            self.status, self._detail = status, detail
        else:
            self._state, self._query = elsewhere, None

    @property
    def closing(self) -> Query:
        """The query of the current iterate alone, to measure F at the end; see `tell_closing`."""
        draw = self.nit * len(self.query) if self._state.problem.stochastic else None
        return Query((Segment(self.x, 1, first_sample=draw),))

    def tell_closing(self, values: Values) -> None:
        """The value of the `closing` query: the current iterate becomes the last measured one."""
        self.nfev += 1
        if bad := nonfinite_rows(values):
            self.status, self._detail = Status.NONFINITE, bad
            return
        h = self._state.problem.penalty(self.x)
        self._trace.add(self._state, self.x, float(values[0]), h, self.nfev, np.nan, np.nan)
        self._trace.prefer(self._kept, self._state, self.nfev)

    @property
    def _kept(self) -> BestPoint | None:
        return None if self._keeper is None else self._keeper.kept(self._state)

    def snapshot(self) -> Arrays:
        """The state of the run as named arrays, for `restore`."""
        state = self._state
        own = pack("x", state.x) | pack("memory", state.memory) | pack("pace", state.pace)
        return own | pack("run", (state.t, self.nfev)) | self._trace.snapshot()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a snapshot; RunError, and no change, if it is not of the same method and problem."""
        state = self._state
        t, nfev = unpack("run", (0, 0), arrays)
        moved = replace(
            state,
            t=t,
            x=unpack("x", state.x, arrays),
            memory=unpack("memory", state.memory, arrays),
            pace=unpack("pace", state.pace, arrays),
        )
        trace = _Trace(self.returns)
        trace.restore(arrays, state.x)
        self._state, self._trace, self.nfev, self._query = moved, trace, nfev, None

    def open_run(self, run_dir: PathLike, settings: Mapping[str, Any], max_sent: int | None) -> RunDirectory:
        """Create or resume the run of this optimizer; RunError if the stored one has another configuration."""
        problem = self._state.problem
        revision = getattr(self.method, "revision", 0)
        known = {
            "trajectory": [TRAJECTORY, revision] if revision else TRAJECTORY,
            "draws": fingerprint(),
            "l1": problem.penalty.l1,
            "l2": problem.penalty.l2,
            "method": stable_repr("method", self.method),
            "seed": self.seed,
            "stochastic": problem.stochastic,
            "returns": self.returns,
            "max_sent": max_sent,
        }
        if self._prior is not None:
            known["prior"] = stable_repr("prior", self._prior.name)
        arrays = {"x0": self.x, "lower": np.asarray(problem.box.lower), "upper": np.asarray(problem.box.upper)}
        return RunDirectory.open(run_dir, known | dict(settings), arrays=arrays, max_sent=max_sent)

    def resume(self, ledger: Ledger, fits: Callable[[Optimizer], bool] = lambda _: True) -> None:
        """Continue from the checkpoint, if there is a usable one; later values are replayed.

        A checkpoint beyond the end of this run (`fits` is false) is not used.
        """
        blank = self.snapshot()

        def into(state: Mapping[str, NDArray[Any]]) -> None:
            self.restore(state)
            if not fits(self):
                self.restore(blank)
                raise RunError("it lies beyond the end of this run")

        ledger.restore(into)

    @property
    def latest(self) -> Intermediate | None:
        """The last measured iterate, as passed to a callback."""
        return self._trace.latest

    @property
    def result(self) -> Result:
        """The result so far; its status is RUNNING unless the run has failed."""
        return self.end(self.status)

    def end(self, status: Status, detail: str = "", *, sent: int | None = None) -> Result:
        """The result of the run with this status."""
        detail = detail or (self._detail if status is self.status else "")
        chosen = self._trace.chosen
        return Result(
            x=self._state.x if chosen is None else chosen.x,
            fun=np.nan if chosen is None else chosen.fun,
            f=np.nan if chosen is None else chosen.f,
            nfev=self.nfev,
            nit=self.nit,
            status=status,
            message=f"{status.value}: {detail}" if detail else status.value,
            stationarity=self._trace.stationarity,
            seed=self.seed,
            sent=sent if sent is not None else self.nfev if self._ledger is None else self._ledger.sent,
            history=self._trace.history(),
        )


class _Trace:
    """The history of the measured iterates, and the one to return."""

    def __init__(self, returns: str | None) -> None:
        self._returns = returns
        self._log = HistoryLog()
        self.latest: Intermediate | None = None
        self.chosen: Intermediate | None = None
        self.stationarity = float("nan")

    def add(self, state: State, x: Array, f: float, h: float, nfev: int, eta: float, stationarity: float) -> None:
        """Add a measured iterate."""
        nnz = int(np.count_nonzero(x))
        self.latest = Intermediate(x, f + h, f, nfev, state.t, eta, stationarity, nnz)
        self._log.add((nfev, f + h, f, eta, stationarity, nnz))
        if math.isfinite(stationarity):
            self.stationarity = stationarity
        if self._is_better(state):
            self.chosen = self.latest

    def prefer(self, kept: BestPoint | None, state: State, nfev: int) -> None:
        """Choose the point that the method keeps, if the last iterate is clearly worse."""
        if self._returns is not None or kept is None or self.latest is None:
            return
        if self.latest.fun > kept.fun + kept.slack:
            nnz = int(np.count_nonzero(kept.x))
            self.chosen = Intermediate(kept.x, kept.fun, kept.f, nfev, state.t, math.nan, math.nan, nnz)

    def snapshot(self) -> Arrays:
        """The history and the chosen iterate, as named arrays."""
        chosen = {} if self.chosen is None else pack("chosen", self.chosen)
        return {"history": self._log.table(), "stationarity": np.asarray(self.stationarity)} | chosen

    def restore(self, arrays: Mapping[str, NDArray[Any]], x: Array) -> None:
        """Continue from a snapshot."""
        try:
            self._log = HistoryLog.restored(arrays.get("history", np.empty(0)))
        except ValueError as error:
            raise RunError(f"checkpoint array 'history' {error}") from None
        self.stationarity = unpack("stationarity", 0.0, arrays)
        if "chosen.x" in arrays:
            self.chosen = unpack("chosen", Intermediate(x, 0.0, 0.0, 0, 0, 0.0, 0.0, 0), arrays)

    def _is_better(self, state: State) -> bool:
        if self.chosen is None or self.latest is None or self._returns in (None, "last"):
            return True
        if self._returns == "best":
            return self.latest.fun < self.chosen.fun
        # Reservoir sampling: the n-th iterate is chosen with probability 1/n, so all are equally likely in the end.
        return uniform(state.key, self._log.count) * self._log.count < 1

    def history(self) -> History:
        """The history as arrays."""
        return self._log.history()


def _checked_method(method: object) -> Method:
    with reading("method", method):
        missing = [name for name in ("init", "ask", "tell") if not callable(getattr(method, name, None))]
    if missing or isinstance(method, type):
        raise ArgumentTypeError(
            f"expected method to have init, ask and tell, got {shown(method)}: use zo_ada_expmd() or another preset"
        )
    return method  # type: ignore[return-value]


def _refuse_outside(x0: Array, box: Box) -> None:
    outside = box.outside(x0)
    if outside.size:
        i = int(outside[0])
        lower = np.broadcast_to(box.lower, x0.shape)[i]
        upper = np.broadcast_to(box.upper, x0.shape)[i]
        raise ArgumentError(
            f"expected x0 inside the bounds, got {some(outside)} outside (x0[{i}] = {x0[i]:g}, bounds "
            f"[{lower:g}, {upper:g}]): move x0 inside, for instance with numpy.clip"
        )
