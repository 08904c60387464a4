"""Iterate averaging: where a noisy F no longer falls, continue from the mean of the last iterates with half the step.

With a constant step the iterates scatter around the minimum, and their mean is nearer to it. Whether F still falls is
decided by the least-squares slope of the values that the batches have measured anyway:

    slope_n = 12 sum_k (k - (n-1)/2) F_k / (n^3 - n)      over the n batches of a stretch
    settle    x <- mean x_k, eta <- 2 eta, the next stretch twice as long, if slope_n >= 0

A stretch over which F falls is discarded. The mean F must also be below F of the first batch, so that a descent which
has not left a plateau yet does not count as settled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zomirror.numerics.arrays import Array
from zomirror.numerics.frozen import changed

SPAN = 128
"""The number of batches in the first stretch; with fewer a slow decrease cannot be told from noise."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive batches: the mean of their iterates, and the sums that give the slope of F."""

    mean: Array
    steps: int = 0
    total: float = 0.0
    """The sum of F_k - F_0."""
    moment: float = 0.0
    """The sum of k (F_k - F_0)."""
    first: float = math.inf
    """F_0, subtracted first: sums of large numbers would lose the differences to rounding."""
    span: int = SPAN
    """The number of batches after which it is judged."""

    @classmethod
    def blank(cls, x0: Array) -> Stretch:
        """Before the first batch."""
        return cls(np.zeros_like(x0))

    def met(self, x: Array, total: float) -> Stretch:
        """With one more batch, which measured F = `total` and stepped to x."""
        n, first = self.steps, self.first if self.steps else total
        rise = total - first
        return changed(
            self,
            mean=self.mean + (x - self.mean) / x.dtype.type(n + 1),
            steps=n + 1,
            total=self.total + rise,
            moment=self.moment + n * rise,
            first=first,
        )

    @property
    def over(self) -> bool:
        """Whether there are enough batches to judge."""
        return self.steps >= self.span

    def settled(self, limit: float) -> bool:
        """Whether F does not fall over the stretch, and its mean is below `limit`."""
        n = self.steps
        level = self.first + self.total / n
        return self.moment >= self.total * (n - 1) / 2 and level < limit

    def next(self, *, longer: bool) -> Stretch:
        """A new stretch, twice as long or not."""
        blank = Stretch(np.zeros_like(self.mean))
        return changed(blank, span=2 * self.span if longer else self.span)
