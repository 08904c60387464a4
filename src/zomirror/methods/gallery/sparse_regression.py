"""Gradient estimates by sparse regression of the differences y_j = (f(x + nu u_j) - f(x)) / nu on Rademacher u_j.

LASSO (Wang, Du, Balakrishnan and Singh, 2018), then de-biased:

    g', mu = argmin_{g, mu} |y - U g - mu|^2 / m + lambda |g|_1        g = g' + U^T (y - U g' - mu) / m

Compressed sensing (ZORO: Cai, McKenzie, Yin and Zhang, 2022): g = argmin_{|g|_0 <= s} |y - U g|^2 by CoSaMP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import positive, positive_integer
from zomirror.errors import ArgumentError
from zomirror.methods.descent import MirrorDescent
from zomirror.methods.directions import rademacher
from zomirror.methods.estimator import EntropyRadius, Estimate, Radius, TwoPoint
from zomirror.methods.mirror import Entropy, Euclidean, MirrorMap
from zomirror.methods.query import Query, Stream
from zomirror.methods.step import Constant
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.random import Key
from zomirror.problem import Problem

Reals = NDArray[np.float64]
_RADIUS, _ENTROPY = EntropyRadius(), Entropy()
ROUNDS, SWEEPS = 100, 10
"""The iterations of the LASSO (proximal gradient, accelerated) and of CoSaMP."""


def zo_lasso(
    eta: float,
    batch_size: int = 50,
    *,
    weight: float = 0.5,
    radius: float | Radius = _RADIUS,
    mirror: MirrorMap = _ENTROPY,
) -> MirrorDescent:
    """Mirror descent with the LASSO estimate, by Wang et al.; their mirror map is PNorm, which takes no box."""
    return MirrorDescent(mirror, LassoEstimate(batch_size, weight, radius), Constant(eta))


def zoro(eta: float, batch_size: int = 50, *, sparsity: int = 10, radius: float | Radius = _RADIUS) -> MirrorDescent:
    """ZORO: proximal gradient steps with a compressed-sensing estimate of `sparsity` entries."""
    return MirrorDescent(Euclidean(), CompressedSensing(batch_size, sparsity, radius), Constant(eta))


@dataclass(frozen=True, slots=True)
class LassoEstimate:
    """The first estimate above; `weight` is lambda relative to the smallest one at which g' = 0."""

    batch_size: int = 50
    weight: float = 0.5
    radius: float | Radius = _RADIUS

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", positive_integer("batch_size", self.batch_size))
        object.__setattr__(self, "weight", positive("weight", self.weight))

    def init(self, problem: Problem) -> None:
        """Nothing to remember."""

    def ask(self, memory: None, problem: Problem, x: Array, t: int, key: Key) -> Query:
        """As TwoPoint, with Rademacher directions."""
        return TwoPoint(self.batch_size, rademacher, self.radius).ask(None, problem, x, t, key)

    def tell(self, memory: None, query: Query, values: Values) -> tuple[Estimate, None]:
        """The de-biased LASSO."""
        f, u, y = measured(query, values)
        g = lasso(u, y, self.weight)
        rest = y - u @ g
        return Estimate(f, (g + u.T @ (rest - rest.mean()) / y.size).astype(query.dtype)), None


@dataclass(frozen=True, slots=True)
class CompressedSensing:
    """The second estimate above: at most `sparsity` entries."""

    batch_size: int = 50
    sparsity: int = 10
    radius: float | Radius = _RADIUS

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", positive_integer("batch_size", self.batch_size))
        object.__setattr__(self, "sparsity", positive_integer("sparsity", self.sparsity))

    def init(self, problem: Problem) -> None:
        """Nothing to remember."""

    def ask(self, memory: None, problem: Problem, x: Array, t: int, key: Key) -> Query:
        """As TwoPoint, with Rademacher directions."""
        return TwoPoint(self.batch_size, rademacher, self.radius).ask(None, problem, x, t, key)

    def tell(self, memory: None, query: Query, values: Values) -> tuple[Estimate, None]:
        """CoSaMP."""
        f, u, y = measured(query, values)
        return Estimate(f, cosamp(u, y, self.sparsity).astype(query.dtype)), None


def measured(query: Query, values: Values) -> tuple[float, Reals, Reals]:
    """f at the iterate, the directions U, and the differences y."""
    base, moved = query.segments
    if not isinstance(moved.stream, Stream):
        raise ArgumentError("expected the query that ask() gave")
    at_x, ahead = values[: base.count], values[base.count :]
    return float(at_x.mean()), moved.stream.rows(0, moved.count).astype(np.float64), (ahead - at_x) / moved.radius


def lasso(u: Reals, y: Reals, weight: float) -> Reals:
    """g' by accelerated proximal gradient steps; mu is the mean of what is left."""
    centred, a = y - y.mean(), u - u.mean(axis=0)
    limit = weight * float(np.abs(a.T @ centred).max())
    size = float(np.linalg.norm(a @ a.T, 2)) or 1.0  # the square of the largest singular value, from an m x m matrix
    g = ahead = np.zeros(u.shape[1])
    momentum = 1.0
    for _ in range(ROUNDS):
        step = ahead + a.T @ (centred - a @ ahead) / size
        before, g = g, np.copysign(np.maximum(np.abs(step) - limit / size, 0), step)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, momentum = g + (momentum - 1) / following * (g - before), following
    return g


def cosamp(u: Reals, y: Reals, sparsity: int) -> Reals:
    """Add the 2 s coordinates that correlate most with the rest, fit all, keep s; until nothing is gained."""
    s = max(min(sparsity, y.size // 3, u.shape[1]), 1)  # least squares needs as many rows as coordinates
    g, rest = np.zeros(u.shape[1]), y
    for _ in range(SWEEPS):
        on = np.union1d(np.argsort(-np.abs(u.T @ rest), kind="stable")[: 2 * s], np.flatnonzero(g))
        fitted = np.linalg.lstsq(u[:, on], y, rcond=None)[0]
        kept = np.argsort(-np.abs(fitted), kind="stable")[:s]
        better = np.zeros_like(g)
        better[on[kept]] = fitted[kept]
        left = y - u @ better
        if left @ left >= rest @ rest:
            break
        g, rest = better, left
    return g
