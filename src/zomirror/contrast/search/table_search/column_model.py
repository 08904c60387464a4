"""A model of the margin near x0: a sum of one-column effects plus interactions of pairs, with error bars.

It is a Gaussian process that is 0 at x0. The effect of a number is a Brownian motion on each side of x0's value, so
its mean is piecewise linear through the asked points; each category has an effect of its own. The kernel of an
interaction is the product of the kernels of two columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from zomirror.contrast.search.table_search.column_values import Axis

Vector = NDArray[np.float64]

INTERACTIONS = (0.01, 0.1, 0.3, 1.0)
"""Strengths of the interactions that are tried; the likeliest one is used."""
JITTER = 1e-5
"""Part of the mean variance that is added to the diagonal."""
TINY = 1e-12
"""Keeps variances positive where no column has any effect."""
SHRINK = 1.0
"""The variance of a column counts as one observation of the mean of all columns besides its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Rows of codes as sides and distances along them, one column for each axis."""

    side: NDArray[np.int64]
    tau: Vector

    @classmethod
    def of(cls, axes: list[Axis], w: Vector) -> Places:
        """The places of rows of codes."""
        pairs = [axis.places(w[:, axis.j]) for axis in axes]
        return cls(np.stack([side for side, _ in pairs], axis=1), np.stack([tau for _, tau in pairs], axis=1))

    def __getitem__(self, rows: NDArray[np.intp]) -> Places:
        return Places(self.side[rows], self.tau[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The process for one strength of the interactions."""

    strength: float
    factor: Vector
    """Lower Cholesky factor of the kernel matrix."""
    alpha: Vector
    variance: float
    likelihood: float


class ColumnModel:
    """The margins asked so far, turned into means and error bars of others."""

    def __init__(self, places: Places, values: Vector, base: float) -> None:
        self.places, self.base = places, base
        centred = values - base
        self.rate = _rates(places, centred)
        single, square = self._kernels(places, places)
        scale = max(float(self.rate.max()), TINY)
        fits = [_fitted(single, square, strength / scale, centred) for strength in INTERACTIONS]
        self._fit = max(fits, key=lambda fit: fit.likelihood)

    @property
    def spread(self) -> float:
        """The standard deviation of the effect of the column that matters most."""
        return math.sqrt(self._fit.variance * float(self.rate.max()))

    def mean(self, places: Places) -> Vector:
        """The expected margin."""
        mean: Vector = self.base + self._kernel(places) @ self._fit.alpha
        return mean

    def mean_of_swaps(self, rows: Places, alone: Places, owner: NDArray[np.intp]) -> Vector:
        """The expected margin of each of `rows` with column owner[i] replaced by that of alone[i]: (rows, swaps).

        `alone` are rows that change that column only. With t and q the sums over the columns of a row of their kernels
        and the squares of these, p the kernel of the column that is replaced and r that of what replaces it, the kernel
        is (t - p) + r + s/2 ((t - p)^2 - (q - p^2)) + s r (t - p): no pair of a row and a swap needs a row of its own.
        """
        strength, alpha = self._fit.strength, self._fit.alpha
        r, _ = self._kernels(alone, self.places)
        total, square = self._kernels(rows, self.places)
        means = np.repeat((self.base + r @ alpha)[None], len(rows.side), axis=0)
        for j in np.unique(owner).tolist():
            mine = np.flatnonzero(owner == j)
            p = self.rate[j] * _shared(rows, self.places, j)
            left = total - p
            kept = (left + strength * (left**2 - (square - p**2)) / 2) @ alpha
            means[:, mine] += kept[:, None] + strength * (left * alpha) @ r[mine].T
        return means

    def __call__(self, places: Places) -> tuple[Vector, Vector]:
        """Mean and standard deviation of the margin."""
        fit, K = self._fit, self._kernel(places)
        own = self.rate * places.tau * (places.side != 0)
        total = own.sum(axis=1)
        prior = total + fit.strength * (total**2 - (own**2).sum(axis=1)) / 2
        half = solve_triangular(fit.factor, K.T, lower=True, check_finite=False)
        left = np.maximum(prior - np.einsum("ij,ij->j", half, half), 0.0) + JITTER * float(prior.mean()) + TINY
        return self.base + K @ fit.alpha, np.sqrt(fit.variance * left)

    def _kernel(self, places: Places) -> Vector:
        """The covariance of these places and the known ones, over the variance."""
        single, square = self._kernels(places, self.places)
        K: Vector = single + self._fit.strength * (single**2 - square) / 2
        return K

    def _kernels(self, a: Places, b: Places) -> tuple[Vector, Vector]:
        """The sum over columns of their kernels, and the sum of their squares."""
        total, square = np.zeros((len(a.side), len(b.side))), np.zeros((len(a.side), len(b.side)))
        for j, rate in enumerate(self.rate):
            rows, cols = np.flatnonzero(a.side[:, j]), np.flatnonzero(b.side[:, j])
            if rows.size and cols.size:
                same = a.side[rows, j][:, None] == b.side[cols, j]
                part = rate * same * np.minimum(a.tau[rows, j][:, None], b.tau[cols, j])
                where = np.ix_(rows, cols)
                total[where] += part
                square[where] += part**2
        return total, square


def _shared(a: Places, b: Places, j: int) -> Vector:
    """How far rows of a and b went along the same side of column j, for each pair of rows."""
    same = (a.side[:, j][:, None] == b.side[:, j]) & (b.side[:, j] != 0)
    return np.asarray(same * np.minimum(a.tau[:, j][:, None], b.tau[:, j]))


def _fitted(single: Vector, square: Vector, strength: float, centred: Vector) -> Fit:
    """The process with interactions of this strength; its variance is the likeliest one."""
    K = single + strength * (single**2 - square) / 2
    K[np.diag_indices_from(K)] += JITTER * float(np.diag(K).mean()) + TINY
    factor = cholesky(K, lower=True, check_finite=False)
    alpha = cho_solve((factor, True), centred, check_finite=False)
    variance = max(float(centred @ alpha) / centred.size, TINY)
    likelihood = -0.5 * centred.size * math.log(variance) - float(np.log(np.diag(factor)).sum())
    return Fit(strength, factor, alpha, variance, likelihood)


def _rates(places: Places, centred: Vector) -> Vector:
    """The variance of each column's effect per unit of tau, from the rows in which it changes alone."""
    changed = places.side != 0
    alone = changed.sum(axis=1) == 1
    sums, lengths = np.zeros(places.side.shape[1]), np.zeros(places.side.shape[1])
    for j in range(places.side.shape[1]):
        rows = np.flatnonzero(alone & changed[:, j])
        for side in np.unique(places.side[rows, j]):
            mine = rows[places.side[rows, j] == side]
            mine = mine[np.argsort(places.tau[mine, j], kind="stable")]
            tau, value = np.insert(places.tau[mine, j], 0, 0.0), np.insert(centred[mine], 0, 0.0)
            gap = np.diff(tau)
            with np.errstate(invalid="ignore"):  # of infinite margins
                sums[j] += float((np.diff(value)[gap > 0] ** 2).sum())
            lengths[j] += tau[-1]
    mean = sums.sum() / max(1e-9, lengths.sum())
    rates = (sums + SHRINK * mean) / (lengths + SHRINK)
    found: Vector = np.maximum(rates, 1e-6 * mean) + TINY
    return found
