"""Methods that keep x sparse by force: at most s entries are away from 0 after every step.

    x_{t+1} = argmin_{|y|_0 <= s, y in K} <g_t, y> + h(y) + (eta/2) |y - x_t|^2

Truncated ZSGD (Balasubramanian and Ghadimi, 2018): Gaussian smoothing. SZOHT, hard thresholding (de Vazelhes, Zhang,
Wu, Yuan and Gu, 2022): every direction is uniform on the sphere of a random subset of the coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zomirror.checks import positive_integer
from zomirror.errors import ArgumentError
from zomirror.methods.descent import MirrorDescent
from zomirror.methods.directions import gaussian
from zomirror.methods.estimator import EuclideanRadius, Radius, TwoPoint
from zomirror.methods.gallery.subset import Subset
from zomirror.methods.mirror import Euclidean
from zomirror.methods.step import Constant
from zomirror.numerics.arrays import Array
from zomirror.problem import Box, ElasticNet

_RADIUS = EuclideanRadius()


def zo_truncated(
    eta: float, batch_size: int = 200, *, sparsity: int = 10, radius: float | Radius = _RADIUS
) -> MirrorDescent:
    """Truncated ZSGD: Gaussian directions, at most `sparsity` entries after each step."""
    return MirrorDescent(Truncated(sparsity), TwoPoint(batch_size, gaussian, radius), Constant(eta))


def zo_ht(
    eta: float, batch_size: int = 200, *, sparsity: int = 10, share: float = 0.1, radius: float | Radius = _RADIUS
) -> MirrorDescent:
    """SZOHT: directions on a random tenth of the coordinates, at most `sparsity` entries after each step."""
    estimator = TwoPoint(batch_size, Subset(share, normalised=True), radius)
    return MirrorDescent(Truncated(sparsity), estimator, Constant(eta))


@dataclass(frozen=True, slots=True)
class Truncated:
    """The Euclidean map, with at most `sparsity` entries of the result away from 0; the box must contain 0."""

    sparsity: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sparsity", positive_integer("sparsity", self.sparsity))

    def step(self, x: Array, g: Array, eta: float, h: ElasticNet, box: Box) -> Array:
        """The Euclidean step, of which the entries that lower the objective most are kept."""
        y = Euclidean().step(x, g, eta, h, box)
        if self.sparsity >= y.size:
            return y
        wide, size = y.astype(np.float64), np.abs(y).astype(np.float64)
        gain = (eta * x - g) * wide - h.l1 * size - (eta + h.l2) / 2 * np.square(wide)
        y[np.argsort(-gain, kind="stable")[self.sparsity :]] = 0
        return y

    def movement(self, x: Array, y: Array) -> float:
        """|y - x|_2."""
        return Euclidean().movement(x, y)

    def check(self, h: ElasticNet, box: Box) -> None:
        """Refuse a box without 0."""
        if np.any(np.asarray(box.lower) > 0) or np.any(np.asarray(box.upper) < 0):
            raise ArgumentError("expected bounds around 0 with a method that sets entries to 0: move the bounds")
