"""min over a box of max(max_i a_i.w + b_i, -kappa) + l1 |w|_1 + (l2/2) |w|_2^2, by its dual.

The dual has one multiplier t_i >= 0 for each row, sum t_i <= 1, and for given t the minimiser is known coordinate
by coordinate: w(t) = clip(soft(-A^T t, l1) / l2). Each multiplier in turn is set by bisection so that its row is
met; with one row that is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zomirror.penalty import ElasticNet

Vector = NDArray[np.float64]

SWEEPS, HALVINGS = 6, 40
SMALLEST_L2 = 1e-6
"""A smaller l2 is taken for this: w(t) would jump."""


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """The problem, for rows A (k, d) and offsets b (k,)."""

    A: Vector
    b: Vector
    lower: Vector
    upper: Vector
    penalty: ElasticNet
    kappa: float

    def solve(self) -> Vector:
        """The minimiser."""
        t = np.zeros(len(self.A))
        for _ in range(SWEEPS if t.size > 1 else 1):
            before = t.copy()
            for i in range(t.size):
                t[i] = 0.0
                t[i] = self._meet(i, t @ self.A, float(1.0 - t.sum()))
            if np.abs(t - before).max() < 1e-6:
                break
        return self._at(t @ self.A)

    def _meet(self, i: int, slope: Vector, most: float) -> float:
        """The smallest t_i in [0, most] with a_i.w + b_i <= -kappa, the others given by their slope; else `most`."""
        row, offset = self.A[i], float(self.b[i]) + self.kappa
        low, high = 0.0, most
        if row @ self._at(slope) + offset <= 0:
            return low
        if row @ self._at(slope + high * row) + offset > 0:
            return high
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if row @ self._at(slope + middle * row) + offset > 0:
                low = middle
            else:
                high = middle
        return high

    def _at(self, slope: Vector) -> Vector:
        """w(t), where slope = A^T t."""
        size = np.maximum(np.abs(slope) - self.penalty.l1, 0.0) / max(self.penalty.l2, SMALLEST_L2)
        return np.clip(np.copysign(size, -slope), self.lower, self.upper)
