"""minimize(): minimise a black-box function plus an elastic net over a box, within a budget of queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from zomirror.checks import choice, flag, number, positive, positive_integer, shown
from zomirror.engine.black_box import BlackBox, call, checked_values
from zomirror.engine.driver import drive
from zomirror.engine.durable import PathLike, durably, finish, finished, stored_seed
from zomirror.engine.interrupt import stop_on_signal
from zomirror.engine.ledger import JournalLedger, Ledger, MemoryLedger
from zomirror.engine.request import Interrupted, Job, Request, Search
from zomirror.engine.retry import Retry, attempts_of
from zomirror.errors import ArgumentError, ArgumentTypeError, BudgetError, OracleError
from zomirror.methods.descent import Method
from zomirror.methods.query import Query
from zomirror.numerics.arrays import Array, Values
from zomirror.optimizer import Optimizer
from zomirror.parallel.blocks import split
from zomirror.result import Intermediate, Result, Status

Callback = Callable[[Intermediate], object]


def minimize(
    fun: Callable[..., Any],
    x0: object,
    *,
    l1: float = 0.0,
    l2: float = 0.0,
    bounds: object = None,
    budget: int = 10_000,
    method: Method | None = None,
    rng: object = 0,
    vectorized: bool = True,
    stochastic: bool = False,
    callback: Callback | None = None,
    returns: str | None = None,
    maxiter: int | None = None,
    max_time: float | None = None,
    target: float | None = None,
    max_sent: int | None = None,
    on_error: str | Retry = "raise",
    nonfinite: str = "stop",
    noise: float | None = None,
    prior: object = None,
    run_dir: PathLike | None = None,
    workers: Any = None,
    block_rows: int | None = None,
) -> Result:
    """Minimise f(x) + l1 |x|_1 + (l2/2) |x|_2^2 over a box, using only values of f.

    Parameters
    ----------
    fun : function
        Maps points (n, d) to values (n,). Points may lie outside the box by the smoothing radius.
    x0 : vector
        Where to start, inside the bounds; float32 stays float32.
    l1, l2 : float
        Weights of the penalty: a larger l1 gives more zeros.
    bounds : optional
        Two numbers, d pairs, two arrays of length d, or scipy.optimize.Bounds.
    budget : int
        The largest number of queries; one of them is reserved to measure F at the end.
    method : optional
        A method from zm.methods; by default the recommended one.
    rng : int, Generator or None
        The seed. None: the seed of the run in `run_dir`, or a new one.
    vectorized : bool
        False: `fun` maps one point (d,) to a number.
    stochastic : bool
        True: `fun` also gets an integer array that names the random draw of each row; rows of one draw must share their
        randomness.
    callback : function, optional
        Called with an Intermediate (x, fun, f, nfev, nit, eta, stationarity, nnz) after each iteration; ends the run by
        raising StopIteration.
    returns : None, "last", "best" or "random"
        None: the point that the method recommends. Where f is exact, the recommended method returns the best point that
        was asked (with l1 > 0, points of finite differences do not count: they add tiny entries to x); where f is
        noisy, its last iterate, unless that is clearly worse than the best; other methods return the last iterate.
        "last", "best", "random": the last, the best or a uniformly random one of the measured iterates.
    maxiter : int, optional
        The largest number of iterations.
    max_time : float, optional
        The time limit in seconds, checked between batches.
    target : float, optional
        Stop when F <= target.
    max_sent : int, optional
        The largest number of queries ever sent, including retries and batches lost to a kill; by default the budget.
    on_error : "raise" or Retry(n)
        What to do when `fun` raises: end with OracleError, whose `.result` is the result so far, or send the block
        again up to n times.
    nonfinite : "stop" or "refuse"
        What to do with a NaN or infinite value: end the run with the last finite iterate (the recommended method first
        abandons a restarted descent), or replace it by f at the iterate, so that it does not affect the gradient.
    noise : float, optional
        The standard deviation of repeated values of f at one point; 0 for a deterministic f. By default the recommended
        method measures it with six queries, and repeats this during the run if f is noisy.
    prior : vector or function, optional
        A guess of the gradient of f, from a surrogate model or an earlier run: a vector, or a function of x that
        returns one. It seeds the gradient memory of the recommended method, as far as it predicts the measured
        differences; a wrong one is not used.
    run_dir : path, optional
        A directory for a journal of every query. The same call then resumes a killed run, to the same result bit for
        bit, and returns a finished one without queries. Ctrl-C and SIGTERM end the run after the batch in flight
        (status INTERRUPTED). `budget`, `max_sent`, `max_time`, `maxiter`, `callback`, `workers` and `block_rows` may
        differ from the stored call.
    workers : optional
        Workers that share the rows of each batch of a slow `fun` (see Workers). A worker that dies or exceeds its
        deadline counts as an error of `fun`.
    block_rows : int, optional
        Rows per call of `fun` on a worker, 1 by default. The result depends on these blocks at most, never on the
        number of workers.

    Returns
    -------
    Result
        `x`, `fun` = F(x), and why the run ended: the next batch exceeds the budget, or another limit was reached.
    """
    if run_dir is not None and rng is None:
        rng = stored_seed(run_dir)
    optimizer = Optimizer(
        x0,
        l1=l1,
        l2=l2,
        bounds=bounds,
        method=method,
        rng=rng,
        stochastic=stochastic,
        returns=returns,
        noise=noise,
        prior=prior,
    )
    stop = StopRules(callback, maxiter, max_time, target)
    refuse = choice("nonfinite", nonfinite, ("stop", "refuse")) == "refuse"
    cap, attempts = _checked_cap(max_sent, budget), attempts_of(on_error)
    _checked_fun(fun)
    _refuse_small(budget, len(optimizer.query) + 1)
    team, fun, vectorized = split(fun, workers, block_rows, vectorized=flag("vectorized", vectorized))
    box = BlackBox(partial(call, fun, vectorized=vectorized), attempts=attempts)
    if run_dir is None:
        ledger = MemoryLedger(cap)
        with team:
            return drive(Job(minimization(optimizer, ledger, budget, stop, refuse=refuse), ledger), box)
    settings = {"task": "minimize", "target": stop.target, "nonfinite": nonfinite}
    free = {"budget": budget, "maxiter": maxiter, "max_time": max_time}
    job = durable_minimization(optimizer, run_dir, settings | free, budget, cap, stop, refuse=refuse)
    with stop_on_signal() as signalled, team:
        return drive(job, box, stop=lambda: bool(signalled))


def durable_minimization(
    optimizer: Optimizer,
    run_dir: PathLike,
    settings: Mapping[str, Any],
    budget: int,
    max_sent: int,
    stop: StopRules | None = None,
    **how: Any,
) -> Job[Result]:
    """A minimization in a run directory as a Job, to be run alone or in lockstep with others."""
    journal = JournalLedger()
    search = durably(
        journal,
        lambda: optimizer.open_run(run_dir, settings, max_sent),
        minimization(optimizer, journal, budget, stop, **how),
        load=finished,
        save=finish,
    )
    return Job(search, journal)


def minimization(
    optimizer: Optimizer,
    ledger: Ledger,
    budget: int,
    stop: StopRules | None = None,
    *,
    refuse: bool = False,
    inputs: Callable[[Array], Any] | None = None,
    keep: Callable[[Any, int], Values] = checked_values,
) -> Search[Result]:
    """The whole run of an optimizer as a search; one query of the budget is reserved to measure F at the end.

    `inputs` maps points to inputs of the black box, and `keep` maps its answer to values of f.
    """
    stop = StopRules() if stop is None else stop
    optimizer.resume(ledger, lambda at: at.nfev < budget and (stop.maxiter is None or at.nit < stop.maxiter))
    try:
        status = yield from _run(optimizer, ledger, budget, stop, inputs, keep, refuse=refuse)
        if status in _MEASURED_AT_END:
            optimizer.tell_closing((yield Request(optimizer.closing, keep, inputs, aside=True)))
            status = optimizer.status if optimizer.status is Status.NONFINITE else status
    except Interrupted as interrupted:
        if interrupted.between:
            ledger.checkpoint(optimizer.snapshot())
        status = Status.INTERRUPTED
    except OracleError as error:
        error.result = optimizer.end(Status.ERROR, str(error), sent=ledger.sent)
        raise
    except BudgetError as error:
        return optimizer.end(Status.MAX_SENT, str(error), sent=ledger.sent)
    return optimizer.end(status, sent=ledger.sent)


_MEASURED_AT_END = frozenset({Status.BUDGET, Status.MAXITER, Status.MAX_TIME, Status.CALLBACK})


def _run(
    optimizer: Optimizer,
    ledger: Ledger,
    budget: int,
    stop: StopRules,
    inputs: Callable[[Array], Any] | None,
    keep: Callable[[Any, int], Values],
    *,
    refuse: bool,
) -> Search[Status]:
    """Ask and tell until a limit is reached; return the status."""
    while True:
        query = optimizer.query
        if len(query) + 1 > budget - ledger.used:
            return Status.BUDGET
        values = yield Request(query, keep, inputs)
        if refuse:
            values = np.where(np.isfinite(values), values, _refused(query, values))
        optimizer.take(values)
        if optimizer.status is not Status.RUNNING:
            return optimizer.status
        if ledger.checkpoint_due:
            ledger.checkpoint(optimizer.snapshot())
        if (reason := stop.reason(optimizer)) is not None:
            return reason


def _refused(query: Query, values: Values) -> Values:
    """The values that replace refused ones: f(x) of the same draw, so that the finite difference is 0."""
    at_x = np.resize(values[: query.segments[0].count], len(query))
    # Rows without a radius are candidates to choose from: the largest float keeps a refused one from being chosen.
    chosen_among = [bool(segment.stream and not segment.radius) for segment in query.segments]
    rows = np.repeat(chosen_among, [segment.count for segment in query.segments])
    return np.where(rows, np.finfo(np.float64).max, at_x)


class StopRules:
    """The caller's stopping rules; invalid ones are refused before the first query."""

    def __init__(
        self,
        callback: Callback | None = None,
        maxiter: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
    ) -> None:
        if callback is not None and not callable(callback):
            raise ArgumentTypeError(f"expected callback to be a function of one argument, got {shown(callback)}")
        self.callback = callback
        self.maxiter = None if maxiter is None else positive_integer("maxiter", maxiter)
        self.target = None if target is None else number("target", target)
        self.deadline = None if max_time is None else time.monotonic() + positive("max_time", max_time)

    def reason(self, optimizer: Optimizer) -> Status | None:
        """The rule that ends the run now; None to continue."""
        latest = optimizer.latest
        if latest is not None and optimizer.nit == latest.nit:
            if self.callback is not None:
                try:
                    self.callback(latest)
                except StopIteration:
                    return Status.CALLBACK
            if self.target is not None and latest.fun <= self.target:
                return Status.TARGET
        if self.maxiter is not None and optimizer.nit >= self.maxiter:
            return Status.MAXITER
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return Status.MAX_TIME
        return None


def _checked_fun(fun: object) -> Callable[..., Any]:
    if not callable(fun):
        raise ArgumentTypeError(f"expected fun to be a function of an (n, d) array, got {shown(fun)}")
    return fun


def _checked_cap(max_sent: int | None, budget: int) -> int:
    positive_integer("budget", budget)
    return budget if max_sent is None else positive_integer("max_sent", max_sent)


def _refuse_small(budget: int, smallest: int) -> None:
    if budget < smallest:
        raise ArgumentError(
            f"expected budget >= {smallest} (one iteration of this method and one query for the end), got {budget}: "
            "raise the budget or use a smaller batch_size"
        )
