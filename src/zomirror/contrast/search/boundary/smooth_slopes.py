"""The slopes of the scores over an image as a Gaussian field: neighbouring pixels have similar slopes.

The slopes of each class have the prior covariance K = RBF + identity over the pixels of a channel. A query at w + s
observes <slopes, s> = scores(w + s) - scores(w), up to the curvature. The posterior mean

    slopes + K S^T (S K S^T + N)^-1 (Y - S slopes)

therefore estimates all slopes from far fewer queries than there are features. All sums have a fixed order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zomirror.features.image_axes import image_axes
from zomirror.numerics.arrays import Indices, row_sums
from zomirror.numerics.elementary import expm1
from zomirror.numerics.linear import convolve, inner, solve

Vector = NDArray[np.float64]

LENGTH = 0.325
"""The length scale of the RBF, in sides of a cell: 1.3 pixels for cells of 4 x 4."""
TAPS = 4.0
"""The RBF is cut off at 4 length scales, where it is 3e-4."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """K = RBF + identity over the pixels of an image of this shape."""

    shape: tuple[int, ...]
    taps: Vector
    """The RBF at distances of 0, 1, ... pixels along an axis."""

    @classmethod
    def of(cls, shape: tuple[int, ...], side: int) -> Neighbours:
        """The covariance for slopes that are first observed on cells of this side."""
        length = LENGTH * side
        distances = np.arange(1 + int(TAPS * length), dtype=np.float64)
        return cls(shape, np.asarray(expm1(-(distances * distances) / (2 * length * length)) + 1.0, np.float64))

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which features have neighbours: the rows and columns of an image, none of other inputs."""
        axes = image_axes(self.shape)
        return () if axes is None else (axes.rows, axes.columns)

    def smooth(self, rows: Vector) -> Vector:
        """K applied to each row (n, d)."""
        out = rows
        for axis in self.axes:
            out = convolve(out, self.taps, self.shape[axis], math.prod(self.shape[axis + 1 :]))
        return out + rows

    def between(self, features: Indices) -> Vector:
        """K at pairs of features: (n, n)."""
        places = np.unravel_index(features, self.shape)
        near = np.append(self.taps, 0.0)
        product: Vector = np.ones((features.size, features.size))
        for axis, at in enumerate(places):
            apart = np.abs(at[:, None] - at)
            product *= near[np.minimum(apart, self.taps.size)] if axis in self.axes else apart == 0
        product[np.diag_indices(features.size)] += 1.0
        return product

    def learn_features(self, slopes: Vector, features: Indices, steps: Vector, change: Vector, noise: float) -> Vector:
        """The posterior mean after one step along each of the features changed the scores by `change` (n, classes).

        The variance of an observation is `noise` times the square of its step.
        """
        covariance = self.between(features)
        covariance[np.diag_indices(features.size)] += noise
        surprise = change / steps[:, None] - slopes[:, features].T
        weights = solve(covariance, surprise)
        if weights is None or not np.isfinite(weights).all():
            return slopes
        spread = np.zeros_like(slopes)
        spread[:, features] = weights.T
        return slopes + self.smooth(spread)

    def learn_moves(
        self, slopes: Vector, moves: Vector, change: Vector, noise: float, smoothed: Vector | None = None
    ) -> tuple[Vector, Vector]:
        """The posterior mean after moves (n, d) changed the scores by `change`, and the changes that it predicts.

        The variance of an observation is `noise` times |move|_2^2; `smoothed` is K applied to the moves.
        """
        smoothed = self.smooth(moves) if smoothed is None else smoothed
        covariance, predicted = inner(smoothed, moves), inner(moves, slopes)
        noisy, sizes = covariance.copy(), row_sums(moves)[:, 1]
        noisy[np.diag_indices(len(moves))] += noise * np.where(sizes > 0, sizes, 1.0)
        weights = solve(noisy, change - predicted)
        if weights is None or not np.isfinite(weights).all():
            return slopes, predicted
        slopes = slopes.copy()
        for move, weight in zip(smoothed, weights, strict=True):
            slopes += weight[:, None] * move
        return slopes, predicted + inner(covariance, weights.T)
