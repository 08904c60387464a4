"""min over a box of l1 |v|_1 + (l2/2) |v|_2^2 subject to <a_j, v> >= b_j, for many such problems at once.

For multipliers mu_j >= 0 the minimiser of the Lagrangian is separable: v(mu) = clip(soft(sum_j mu_j a_j, l1) / l2).
<a_j, v(mu)> is increasing and piecewise linear in mu_j, so one half-space is solved by Newton's method inside a
bracket, which ends after finitely many steps. Several are solved by doing so for each in turn (coordinate ascent in the
dual), and after each turn for all positive multipliers together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics import kernels
from zomirror.numerics.arrays import LANES, Values
from zomirror.numerics.linear import solve

SMALLEST_L2 = 1e-6
"""A smaller l2 is replaced by this one, because v(mu) is not continuous for l2 = 0."""
SWEEPS = 10
"""Passes over the half-spaces, at most."""
MOST_ROWS = 64
"""Half-spaces of one problem, at most."""
_CLOSE, _OPTIMAL, _STEPS, _TOGETHER, _REACH = 1e-12, 1e-9, 100, 6, 0.95


def least_points(
    rows: Values, need: Values, lower: Values, upper: Values, l1: float, l2: float
) -> tuple[Values, Values]:
    """The points (n, d) and multipliers (n, k) for rows a (n, k, d), b = `need` (n, k) and boxes (n, d).

    A half-space that the box does not reach is replaced by the one at 95 % of the way from v(0) to the farthest point.
    """
    n, k, d = rows.shape
    l2, width = max(l2, SMALLEST_L2), d + -d % LANES
    padded = np.zeros((n, k, width))
    padded[:, :, :d] = rows
    sides = np.zeros((2, n, width))
    sides[0, :, :d], sides[1, :, :d] = lower, upper
    points, multipliers = np.empty((n, width)), np.zeros((n, k))
    if kernels.compiled is not None:
        needed = np.array(need, np.float64, order="C")
        kernels.compiled.least_points(points, multipliers, padded, needed, *sides, k, float(l1), float(l2), SWEEPS)
    else:
        for i in range(n):
            problem = _Problem(sides[0, i], sides[1, i], float(l1), float(l2))
            points[i], multipliers[i] = problem.solve(padded[i], need[i])
    return points[:, :d], multipliers


class _Problem:
    """The box and penalty of one problem, without the compiler: the same sums in the same order."""

    def __init__(self, lower: Values, upper: Values, l1: float, l2: float) -> None:
        self.lower, self.upper, self.l1, self.l2 = lower, upper, l1, l2

    def at(self, z: Values) -> tuple[Values, NDArray[np.bool_]]:
        """v, and where it moves with z."""
        beyond = np.abs(z) - self.l1
        free = np.copysign(np.where(beyond > 0, beyond, 0.0) / self.l2, z)
        above = np.where(free < self.lower, self.lower, free)
        v = np.where(above > self.upper, self.upper, above)
        return v, (beyond > 0) & (free > self.lower) & (free < self.upper)

    def reached(self, z: Values, a: Values, mu: float) -> tuple[float, float]:
        """<a, v(z + mu a)> and its derivative."""
        v, moves = self.at(z + mu * a)
        return _folded(a * v), _folded(np.where(moves, a * a, 0.0)) / self.l2

    def solve(self, rows: Values, need: Values) -> tuple[Values, Values]:
        z, mu, first, needed = np.zeros(rows.shape[1]), np.zeros(len(rows)), [], []
        for a, wanted in zip(rows, need.tolist(), strict=True):
            one, other = a * self.lower, a * self.upper
            start = self.reached(z, a, 0.0)[0]
            farthest = start + _REACH * (_folded(np.where(one > other, one, other)) - start)
            needed.append(min(wanted, farthest))
            largest = float(np.abs(a).max())
            first.append((self.l1 + self.l2) / largest if largest > 0 else 0.0)
        most = 0.0
        for _ in range(1 if len(rows) == 1 else SWEEPS):
            moved = 0.0
            for j, a in enumerate(rows):
                before = float(mu[j])
                if before > 0:
                    z -= before * a
                mu[j] = self._multiplier(z, a, needed[j], before, first[j])
                if mu[j] > 0:
                    z += mu[j] * a
                moved, most = max(moved, abs(float(mu[j]) - before)), max(most, float(mu[j]))
            if moved <= 1e-7 * most:
                break
            z, optimal = self._together(rows, needed, mu, z)
            if optimal:
                break
        return self.at(z)[0], mu

    def _together(self, rows: Values, need: list[float], mu: Values, z: Values) -> tuple[Values, bool]:
        """Newton steps for all multipliers at once, taken back if they have led away; z, and whether it is optimal."""
        before, first = mu.copy(), self._residual(rows, need, mu, z)
        for _ in range(_TOGETHER):
            if not self._newton(rows, need, mu, z):
                break
            z = self._pulled(rows, mu)
            if self._residual(rows, need, mu, z) <= _OPTIMAL:
                return z, True
        if not self._residual(rows, need, mu, z) < first:
            mu[:] = before
            z = self._pulled(rows, mu)
        return z, False

    @staticmethod
    def _pulled(rows: Values, mu: Values) -> Values:
        """sum_j mu_j a_j, row after row."""
        z = np.zeros(rows.shape[1])
        for a, one in zip(rows, mu.tolist(), strict=True):
            if one > 0:
                z += one * a
        return z

    def _newton(self, rows: Values, need: list[float], mu: Values, z: Values) -> bool:
        """Move all positive multipliers by one Newton step, shortened to where the first is zero, if there is one."""
        used = np.flatnonzero(mu > 0)
        if used.size < 2:
            return False
        moves, H = self.at(z)[1], np.zeros((used.size, used.size))
        step = np.array([(need[j] - self.reached(z, rows[j], 0.0)[0]) * self.l2 for j in used])[:, None]
        for i, j in enumerate(used):
            for other in range(i, used.size):
                H[i, other] = _folded(np.where(moves, rows[j] * rows[used[other]], 0.0))
        solved = solve(H, step)
        if solved is None or not np.isfinite(solved).all():
            return False
        step, part = solved[:, 0], 1.0
        for one, change in zip(mu[used].tolist(), step.tolist(), strict=True):
            if one + change < 0:
                part = min(part, one / -change)
        moved = mu[used] + part * step
        mu[used] = np.where(moved > 0, moved, 0.0)
        return True

    def _residual(self, rows: Values, need: list[float], mu: Values, z: Values) -> float:
        """How far the multipliers are from optimal: the largest miss of a half-space, in units of 1 + |need|."""
        worst = 0.0
        for a, wanted, one in zip(rows, need, mu.tolist(), strict=True):
            beyond = self.reached(z, a, 0.0)[0] - wanted
            worst = max(worst, (-beyond if beyond < 0 else beyond if one > 0 else 0.0) / (1 + abs(wanted)))
        return worst

    def _multiplier(self, z: Values, a: Values, need: float, mu: float, first: float) -> float:
        """The least mu >= 0 with <a, v(z + mu a)> >= need."""
        low, high, close = 0.0, np.inf, _CLOSE * (1 + abs(need))
        if self.reached(z, a, 0.0)[0] >= need or first == 0:
            return 0.0
        mu = mu if mu > 0 else first
        for _ in range(_STEPS):
            value, slope = self.reached(z, a, mu)
            miss = value - need
            low, high = (low, mu) if miss >= 0 else (mu, high)
            if abs(miss) <= close:
                break
            following = mu - miss / slope if slope > 0 else -1.0
            if not low < following < high:
                following = (low + high) / 2 if high < np.inf else 4 * mu
            if not low < following < high or following > 1e300:
                break
            mu = following
        return mu


def _folded(terms: Values) -> float:
    """The sum in the order of the compiled loop: LANES partial sums, added in halves."""
    lanes = np.add.reduce(terms.reshape(-1, LANES), axis=0)
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return float(lanes[0])
