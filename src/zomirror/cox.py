"""Cox regression from queries alone: the partial likelihood as a black box, and its elastic-net path.

With covariates x_i, times t_i, events e_i in {0, 1} and risk sets R(t) = {i: t_i >= t}, this is

    f(b) = -(1/n) sum over events i of  <x_i, b> - log s_i(b)

where s_i = sum of exp <x_j, b> over R(t_i) (Breslow). If k events share a time, Efron's method subtracts from the s_i
of the l-th of them, l = 0..k-1, l/k of their own terms. f is convex; b = 0 is the model without covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import choice, number, positive, positive_integer, real_array, seed_of, some, vector
from zomirror.engine.durable import PathLike, stored_seed
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.methods.descent import Method
from zomirror.methods.presets import recommended
from zomirror.methods.restart import Restarted
from zomirror.minimization import minimize
from zomirror.numerics.random import Draws, key_of
from zomirror.problem import Box, ElasticNet
from zomirror.result import Result

Floats = NDArray[np.float64]
TIES = ("efron", "breslow")
SMALLEST = np.finfo(np.float64).tiny
TINY, ROUNDING = 1e-5, 1e-9
"""Coefficients below 1e-5 of the largest are set to 0, unless F rises by more than 1e-9 of itself."""
FEWEST = 100
"""With a smaller budget per step no query is reserved for that."""
BLOCK = 256
"""Rows of one call in `strongest`."""


@dataclass(frozen=True, slots=True, eq=False)
class CoxLoss:
    """f for patients X (n, d), times (n,) and events (n,): maps coefficients (m, d) to values (m,)."""

    X: Floats
    time: Floats
    event: NDArray[np.bool_]
    ties: str = "efron"
    _rows: Floats = field(init=False, repr=False)
    _hit: NDArray[np.bool_] = field(init=False, repr=False)
    _ends: NDArray[np.intp] = field(init=False, repr=False)
    _begins: NDArray[np.intp] = field(init=False, repr=False)
    _parts: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        X, time, event = _checked(self.X, self.time, self.event)
        choice("ties", self.ties, TIES)
        order = np.argsort(-time, kind="stable")  # so that risk sets are the first rows
        late, hit = time[order], event[order]
        # For every event: the first and last row of its time, and the fraction of the tied events to subtract.
        events = np.flatnonzero(hit)
        begins, ends = np.searchsorted(-late, -late[events], "left"), np.searchsorted(-late, -late[events], "right") - 1
        tied = np.searchsorted(events, ends, "right") - np.searchsorted(events, begins, "left")
        rank = np.arange(events.size) - np.searchsorted(events, begins, "left")
        parts = rank / tied if self.ties == "efron" else np.zeros(events.size)
        kept = {"X": X, "time": time, "event": event, "_rows": X[order], "_hit": hit}
        for name, value in (kept | {"_begins": begins, "_ends": ends, "_parts": parts}).items():
            object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """The number of patients."""
        return self.time.size

    @property
    def d(self) -> int:
        """The number of covariates."""
        return int(self.X.shape[1])

    def __call__(self, B: NDArray[Any]) -> Floats:
        """f at every row of B."""
        if np.ndim(B) != 2 or B.shape[1] != self.d:
            raise ArgumentError(f"expected coefficients of shape (rows, {self.d}), got shape {np.shape(B)}")
        scores = np.asarray(B, np.float64) @ self._rows.T
        return -self._log_likelihood(scores) / self.n

    def _log_likelihood(self, scores: Floats) -> Floats:
        hit = self._hit
        top = scores.max(axis=1, keepdims=True)
        grown = np.exp(scores - top)
        at_risk = np.cumsum(grown, axis=1)[:, self._ends]
        if self._parts.any():
            tied = np.cumsum(np.where(hit, grown, 0.0), axis=1)
            before = np.where(self._begins > 0, tied[:, self._begins - 1], 0.0)
            at_risk = at_risk - self._parts * (tied[:, self._ends] - before)
        logs: Floats = np.log(np.maximum(at_risk, SMALLEST)) + top
        return np.asarray(scores[:, hit].sum(axis=1) - logs.sum(axis=1))

    def subsampled(self, patients: int, rng: object = 0) -> SubsampledCox:
        """The stochastic form: each draw is the loss of `patients` random patients, with risk sets among these only."""
        return SubsampledCox(self, positive_integer("patients", patients), seed_of(rng))


@dataclass(frozen=True, slots=True, eq=False)
class SubsampledCox:
    """The loss of random patients, for minimize(stochastic=True); rows of one draw share their patients.

    For samples of any size, its mean over the draws is minimised near the minimiser of f.
    """

    whole: CoxLoss
    patients: int
    seed: int

    def __post_init__(self) -> None:
        if not 2 <= self.patients <= self.whole.n:
            raise ArgumentError(f"expected patients in 2..{self.whole.n}, got {self.patients}")

    @property
    def d(self) -> int:
        """The number of covariates."""
        return self.whole.d

    def __call__(self, B: NDArray[Any], draws: NDArray[np.integer[Any]]) -> Floats:
        """The value of each row of B at its draw."""
        values = np.empty(len(B))
        for draw in np.unique(draws):
            rows = draws == draw
            values[rows] = self._sample(int(draw))(B[rows])
        return values

    def _sample(self, draw: int) -> CoxLoss:
        """The loss of random patients of whom at least one has an event: without events there is no likelihood."""
        draws, whole = Draws(key_of([self.seed, draw])), self.whole
        while True:
            chosen = draws.sample(whole.n, self.patients)
            if whole.event[chosen].any():
                return CoxLoss(whole.X[chosen], whole.time[chosen], whole.event[chosen], whole.ties)


@dataclass(frozen=True, slots=True, eq=False)
class CoxPath:
    """The minimisers of f + l1 |b|_1 + (l2/2) |b|_2^2 for decreasing l1, each started at the one before."""

    l1: Floats
    l2: Floats
    coefficients: Floats
    """One row per l1."""
    results: tuple[Result, ...] = field(repr=False)

    @property
    def nfev(self) -> NDArray[np.int64]:
        """The queries of each step."""
        return np.array([result.nfev for result in self.results], np.int64)

    @property
    def f(self) -> Floats:
        """f at each minimiser; for the stochastic form, at one draw."""
        return np.array([result.f for result in self.results])

    def selected(self, i: int) -> NDArray[np.intp]:
        """The covariates with non-zero coefficients at the i-th l1."""
        return np.flatnonzero(self.coefficients[i])


def simulate(
    patients: int = 400, covariates: int = 2_000, relevant: int = 10, rng: object = 0, *, censored: float = 0.3
) -> tuple[Floats, Floats, NDArray[np.bool_], Floats]:
    """Simulated exponential survival times: X, times, events and the true coefficients.

    Parameters
    ----------
    patients, covariates, relevant : int
        The numbers of rows, of columns, and of columns with non-zero coefficients.
    rng : int or Generator
        The seed.
    censored : float
        The expected fraction of censored patients.
    """
    n, d = positive_integer("patients", patients), positive_integer("covariates", covariates)
    if positive_integer("relevant", relevant) > d:
        raise ArgumentError(f"expected relevant <= covariates, got {relevant} of {d}")
    if not 0 < number("censored", censored) < 1:
        raise ArgumentError(f"expected censored between 0 and 1, got {censored}: it is a fraction of the patients")
    draw = np.random.default_rng(seed_of(rng))
    b = np.zeros(d)
    b[draw.choice(d, relevant, replace=False)] = draw.choice([-1.0, 1.0], relevant) * draw.uniform(0.5, 1.0, relevant)
    X = draw.normal(size=(n, d))
    hazard = np.exp(X @ b)
    times = draw.exponential(size=n) / hazard
    ends = draw.exponential(size=n) / hazard * (1 - censored) / censored
    return X, np.minimum(times, ends), times <= ends, b


def strongest(loss: CoxLoss) -> float:
    """The smallest l1 whose minimiser is 0, for any l2: max_j |df/db_j| at 0, by central differences.

    It costs two queries per covariate.
    """
    step, most = 1e-4, 0.0
    for start in range(0, loss.d, BLOCK):
        moves = step * np.eye(min(BLOCK, loss.d - start), loss.d, start)
        most = max(most, float(np.abs(loss(moves) - loss(-moves)).max() / (2 * step)))
    return most


def cox_path(
    loss: CoxLoss | SubsampledCox,
    l1: float | Sequence[float] | NDArray[Any],
    *,
    l2: float | Sequence[float] | NDArray[Any] = 0.0,
    budget: int = 20_000,
    bound: float = 3.0,
    rng: object = 0,
    run_dir: PathLike | None = None,
    **options: Any,
) -> CoxPath:
    """Fit coefficients for each of the decreasing `l1`, each fit started at the one before.

    A fit returns the best iterate; its last query tests whether coefficients below 1e-5 of the largest can be set to 0.
    The stochastic form returns the last iterate.

    Parameters
    ----------
    loss : CoxLoss or SubsampledCox
        The data.
    l1 : float or sequence of float
        Decreasing strengths of the l1 penalty.
    l2 : float or sequence of float
        The strength of the l2 penalty, one or one per l1.
    budget : int
        Queries per fit.
    bound : float
        Coefficients satisfy |b_j| <= bound.
    rng : int, Generator or None
        The seed.
    run_dir : path, optional
        Makes the path resumable: each fit is a run in a subdirectory 00, 01, ...
    **options
        Further arguments of `minimize`. By default the recommended method is used without restarts, f being convex.
    """
    if not isinstance(loss, CoxLoss | SubsampledCox):
        raise ArgumentTypeError(f"expected loss to be a CoxLoss or its subsampled() form, got {loss!r}")
    penalties, exact = _penalties(l1, l2), isinstance(loss, CoxLoss)
    tidy = exact and positive_integer("budget", budget) >= FEWEST
    options = ({"returns": "best"} if exact else {"stochastic": True}) | options
    limit, steps = positive("bound", bound), None if run_dir is None else Path(run_dir)
    seed = seed_of(stored_seed(steps / "00") if steps is not None and rng is None else rng)
    b: NDArray[Any] = np.zeros(loss.d)
    results = []
    for i, h in enumerate(penalties):
        place = None if steps is None else steps / f"{i:02}"
        common: dict[str, Any] = {"bounds": (-limit, limit), "budget": budget - tidy, "rng": seed, "run_dir": place}
        method = _one_basin(b, h, limit, options.get("noise")) if options.get("method") is None else options["method"]
        result = minimize(loss, b, l1=h.l1, l2=h.l2, **common, **(options | {"method": method}))
        result = _tidied(loss, result, h) if tidy else result
        b = result.x
        results.append(result)
    strengths, ridges = (np.array([getattr(h, name) for h in penalties]) for name in ("l1", "l2"))
    return CoxPath(strengths, ridges, np.array([result.x for result in results]), tuple(results))


def _one_basin(b: NDArray[Any], penalty: ElasticNet, limit: float, noise: float | None) -> Method:
    """The recommended method without restarts, which a convex f does not need."""
    found = recommended(b, penalty, Box.of((-limit, limit), b.size), noise=noise)
    return found.surveyed if isinstance(found, Restarted) else found


def _penalties(l1: object, l2: object) -> list[ElasticNet]:
    """One per fit."""
    strengths, ridges = (
        vector(name, [value] if isinstance(value, int | float | np.number) else value).astype(np.float64)
        for name, value in (("l1", l1), ("l2", l2))
    )
    if (strengths < 0).any() or (np.diff(strengths) >= 0).any():
        raise ArgumentError(f"expected l1 as decreasing numbers >= 0, got {l1}")
    if ridges.size not in (1, strengths.size):
        raise ArgumentError(f"expected one l2, or one for each of {strengths.size} l1, got {ridges.size}")
    return [ElasticNet(float(a), float(b)) for a, b in np.broadcast(strengths, ridges)]


def _tidied(loss: Any, result: Result, penalty: ElasticNet) -> Result:
    """The result with negligible coefficients set to 0, if F does not rise; it costs one query, which is counted."""
    x = np.where(np.abs(result.x) < TINY * np.abs(result.x).max(), 0.0, result.x)
    f = float(loss(x[None])[0])
    fun = f + penalty(x)
    asked = replace(result, nfev=result.nfev + 1, sent=result.sent + 1)
    if not fun <= result.fun + ROUNDING * abs(result.fun):
        return asked
    x.flags.writeable = False
    return replace(asked, x=x, f=f, fun=fun)


def _checked(X: object, time: object, event: object) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The data as arrays; ArgumentError says what is wrong with them."""
    covariates, times, events = _numbers("X", X), _numbers("time", time), _numbers("event", event)
    if covariates.ndim != 2 or covariates.size == 0:
        raise ArgumentError(f"expected X as a table (patients, covariates), got shape {covariates.shape}")
    if not times.shape == events.shape == covariates.shape[:1]:
        shapes = f"X of shape {covariates.shape}, time {times.shape} and event {events.shape}"
        raise ArgumentError(f"expected one row of X, one time and one event for each patient, got {shapes}")
    if not np.isfinite(covariates).all():
        bad = np.flatnonzero(~np.isfinite(covariates).all(axis=1))
        raise ArgumentError(
            f"expected finite covariates, got NaN or infinity in {some(bad, 'row')}: impute or drop them"
        )
    wrong = np.flatnonzero(~(np.isfinite(times) & (times >= 0)))
    if wrong.size:
        raise ArgumentError(f"expected times >= 0, got {times[wrong[0]]:g} at {some(wrong, 'patient')}")
    wrong = np.flatnonzero(~np.isin(events, (0, 1)))
    if wrong.size:
        raise ArgumentError(
            f"expected events as 0 (censored) or 1 (happened), got {events[wrong[0]]:g} at {some(wrong, 'patient')}"
        )
    if not events.any():
        raise ArgumentError("expected at least one event, got none: without events there is no likelihood")
    return covariates, times, events.astype(bool)


def _numbers(name: str, value: object) -> Floats:
    array: Floats = np.array(real_array(name, value), np.float64)
    array.flags.writeable = False
    return array
