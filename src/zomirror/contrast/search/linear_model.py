"""min over a box of max(max_i a_i.w + b_i, -kappa) + l1 |w|_1 + (l2/2) |w|_2^2, by its dual.

The dual has one multiplier t_i >= 0 per row, with sum t_i <= 1. For given t the minimiser is separable:
w(t) = clip(soft(-A^T t, l1) / l2). The gradient of the dual is A w(t) + b + kappa. One row is solved by bisection, a
few rows by SLSQP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics.linear import inner
from zomirror.problem import ElasticNet

Vector = NDArray[np.float64]

HALVINGS, ITERATIONS = 40, 60
"""Steps of the bisection, and iterations of SLSQP at most."""
SMALLEST_L2 = 1e-6
"""A smaller l2 is replaced by this one, because w(t) is not continuous for l2 = 0."""


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
        t = np.array([self._bisect()]) if len(self.A) == 1 else self._ascend()
        return self._at(self._pull(t))

    def values(self, w: Vector) -> Vector:
        """a_i.w + b_i."""
        return inner(self.A, w[None])[:, 0] + self.b

    def _pull(self, t: Vector) -> Vector:
        """A^T t, row after row."""
        pull: Vector = np.add.reduce(t[:, None] * self.A, axis=0)
        return pull

    def _slope(self, t: Vector) -> Vector:
        """The gradient of the dual."""
        return self.values(self._at(self._pull(t))) + self.kappa

    def _bisect(self) -> float:
        """The multiplier of a single row: the least t in [0, 1] with a.w(t) + b <= -kappa, else 1."""
        low, high = 0.0, 1.0
        if self._slope(np.array([low]))[0] <= 0:
            return low
        if self._slope(np.array([high]))[0] > 0:
            return high
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._slope(np.array([middle]))[0] > 0 else (low, middle)
        return high

    def _ascend(self) -> Vector:
        """The multipliers, t_i >= 0 with sum t_i <= 1."""
        count = len(self.A)

        def negative(t: Vector) -> tuple[float, Vector]:
            w = self._at(self._pull(t))
            slope = self.values(w) + self.kappa
            return -float(t @ slope + self.penalty(w)), -slope

        total: Any = {"type": "ineq", "fun": lambda t: 1.0 - t.sum(), "jac": lambda t: -np.ones_like(t)}
        from scipy.optimize import minimize  # imported late: it doubles the import time and is seldom needed

        found = minimize(
            negative,
            np.zeros(count),
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * count,
            constraints=[total],
            options={"maxiter": ITERATIONS, "ftol": 1e-9},
        )
        t: Vector = np.clip(found.x, 0.0, 1.0)
        return t / max(1.0, float(t.sum()))

    def _at(self, slope: Vector) -> Vector:
        """w(t), where slope = A^T t."""
        size = np.maximum(np.abs(slope) - self.penalty.l1, 0.0) / max(self.penalty.l2, SMALLEST_L2)
        return np.clip(np.copysign(size, -slope), self.lower, self.upper)
