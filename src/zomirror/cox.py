"""Cox's partial likelihood as a black box, and its elastic-net path from queries alone.

With covariates x_i, times t_i, events e_i in {0, 1} and risk sets R(t) = {i: t_i >= t}, this is

    f(b) = -(1/n) sum over events i of  <x_i, b> - log s_i(b)

where s_i = sum of exp <x_j, b> over R(t_i) (Breslow). Where d events share a time, Efron's l-th of them, l = 0..d-1,
loses the part l/d of those d from its sum. f is convex, and 0 is the model in which nothing matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import choice, number, positive, positive_integer, seed_of, some
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.minimize import minimize
from zomirror.result import Result

Floats = NDArray[np.float64]
TIES = ("efron", "breslow")
SMALLEST = np.finfo(np.float64).tiny


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
        order = np.argsort(-time, kind="stable")  # so that a risk set is a beginning of the order
        late, hit = time[order], event[order]
        # Of every event, in order: where its time begins and ends, and the part of the tied events that it loses.
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
        """How many patients there are."""
        return self.time.size

    def __call__(self, B: NDArray[Any]) -> Floats:
        """f at every row of B."""
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
        """The stochastic form: each draw sees `patients` of them at random, and risk sets among these only."""
        return SubsampledCox(self, positive_integer("patients", patients), seed_of(rng))


@dataclass(frozen=True, slots=True, eq=False)
class SubsampledCox:
    """f of random patients, for minimize(stochastic=True): rows of the same draw see the same patients.

    Its mean over the draws is minimised near the coefficients that minimise f, whatever the size of the sample.
    """

    whole: CoxLoss
    patients: int
    seed: int

    def __post_init__(self) -> None:
        if not 2 <= self.patients <= self.whole.n:
            raise ArgumentError(f"expected patients in 2..{self.whole.n}, got {self.patients}")

    def __call__(self, B: NDArray[Any], draws: NDArray[np.integer[Any]]) -> Floats:
        """The value of every row for its draw."""
        values = np.empty(len(B))
        for draw in np.unique(draws):
            rows = draws == draw
            values[rows] = self._sample(int(draw))(B[rows])
        return values

    def _sample(self, draw: int) -> CoxLoss:
        """Patients of whom at least one has an event: without one there is no likelihood."""
        rng, whole = np.random.default_rng([self.seed, draw]), self.whole
        while True:
            chosen = rng.choice(whole.n, self.patients, replace=False)
            if whole.event[chosen].any():
                return CoxLoss(whole.X[chosen], whole.time[chosen], whole.event[chosen], whole.ties)


@dataclass(frozen=True, slots=True, eq=False)
class CoxPath:
    """The minimisers of f + l1 |b|_1 + (l2/2) |b|_2^2 along decreasing l1, each begun where the last one ended."""

    l1: Floats
    l2: Floats
    coefficients: Floats
    """One row for each l1."""
    results: tuple[Result, ...] = field(repr=False)

    @property
    def nfev(self) -> NDArray[np.int64]:
        """The queries of each step."""
        return np.array([result.nfev for result in self.results], np.int64)

    @property
    def f(self) -> Floats:
        """f at each minimiser."""
        return np.array([result.f for result in self.results])

    def selected(self, i: int) -> NDArray[np.intp]:
        """The covariates that matter at the i-th l1."""
        return np.flatnonzero(self.coefficients[i])


def simulate(
    patients: int = 400, covariates: int = 2_000, relevant: int = 10, rng: object = 0, *, censored: float = 0.3
) -> tuple[Floats, Floats, NDArray[np.bool_], Floats]:
    """X, times, events and the true coefficients of exponential survival, of which about a part is censored."""
    draw = np.random.default_rng(seed_of(rng))
    b = np.zeros(covariates)
    b[draw.choice(covariates, relevant, replace=False)] = draw.choice([-1.0, 1.0], relevant) * draw.uniform(
        0.5, 1.0, relevant
    )
    X = draw.normal(size=(patients, covariates))
    hazard = np.exp(X @ b)
    times = draw.exponential(size=patients) / hazard
    ends = draw.exponential(size=patients) / hazard * (1 - censored) / censored
    return X, np.minimum(times, ends), times <= ends, b


def strongest(loss: CoxLoss) -> float:
    """The least l1 at which no covariate matters (for l2 >= 0): max_j |df/db_j| at 0, by central differences.

    It costs two queries for each covariate.
    """
    d, step = loss.X.shape[1], 1e-4
    moves = step * np.eye(d)
    return float(np.abs(loss(moves) - loss(-moves)).max() / (2 * step))


def cox_path(
    loss: CoxLoss,
    l1: Sequence[float] | NDArray[Any],
    *,
    l2: float | Sequence[float] | NDArray[Any] = 0.0,
    budget: int = 20_000,
    bound: float = 3.0,
    rng: object = 0,
    **options: Any,
) -> CoxPath:
    """Fit along decreasing `l1` (with one `l2`, or one for each), `budget` queries a step, within |b_j| <= `bound`.

    f is asked for values only; `options` go to minimize(). Of each step the best iterate is kept.
    """
    strengths = np.array([number("l1", value) for value in l1])
    if strengths.size == 0 or (strengths < 0).any() or (np.diff(strengths) >= 0).any():
        raise ArgumentError(f"expected l1 as decreasing numbers >= 0, got {l1}")
    ridges = np.broadcast_to(np.asarray(l2, np.float64), strengths.shape)
    options = {"returns": "best"} | options
    limit, seed = positive("bound", bound), seed_of(rng)
    b: NDArray[Any] = np.zeros(loss.X.shape[1])
    results = []
    for strength, ridge in zip(strengths, ridges, strict=True):
        result = minimize(
            loss, b, l1=float(strength), l2=float(ridge), bounds=(-limit, limit), budget=budget, rng=seed, **options
        )
        b = result.x
        results.append(result)
    return CoxPath(strengths, np.array(ridges), np.array([result.x for result in results]), tuple(results))


def _checked(X: object, time: object, event: object) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The data as arrays, or a sentence that says what does not fit."""
    covariates, times, events = _numbers("X", X), _numbers("time", time), _numbers("event", event)
    if covariates.ndim != 2 or covariates.size == 0:
        raise ArgumentError(f"expected X as a table (patients, covariates), got shape {covariates.shape}")
    lengths = {"X": len(covariates), "time": times.size, "event": events.size}
    if times.ndim != 1 or events.ndim != 1 or len(set(lengths.values())) > 1:
        raise ArgumentError(f"expected one row of X, one time and one event for each patient, got {lengths}")
    if not np.isfinite(covariates).all():
        bad = np.flatnonzero(~np.isfinite(covariates).all(axis=1))
        raise ArgumentError(
            f"expected finite covariates, got NaN or infinity in {some(bad, 'row')}: impute or drop them"
        )
    wrong = np.flatnonzero(~(np.isfinite(times) & (times >= 0)))
    if wrong.size:
        raise ArgumentError(f"expected times >= 0, got {times[wrong[0]]} at {some(wrong, 'patient')}")
    if not np.isin(events, (0, 1)).all():
        raise ArgumentError("expected events as 0 (censored) or 1 (happened), got other values")
    if not events.any():
        raise ArgumentError("expected at least one event, got none: a likelihood needs something that happened")
    return covariates, times, events.astype(bool)


def _numbers(name: str, value: object) -> Floats:
    try:
        given = np.asarray(value)
    except ValueError:
        raise ArgumentTypeError(f"expected {name} to be an array of numbers, got a ragged sequence") from None
    if given.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"expected {name} to hold real numbers, got dtype {given.dtype}")
    array: Floats = np.array(given, np.float64)
    array.flags.writeable = False
    return array
