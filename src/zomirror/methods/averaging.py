"""Where a noisy f no longer falls: x <- the mean of the last iterates, and shorter steps from there.

With a step of one size the iterates end up in a cloud around the minimum, no nearer than the noise allows, and their
mean is nearer. Whether F still falls is the slope of the line through the values that the batches have brought anyway:

    slope_n = 12 sum_k (k - (n-1)/2) F_k / (n^3 - n)      of the n batches of a stretch
    settle    x <- mean x_k, eta <- 2 eta, the next stretch twice as long, if slope_n >= 0

and a stretch over which F falls is forgotten. On a plain that nobody has left yet, F below its start is asked for too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zomirror.numerics.arrays import Array
from zomirror.numerics.frozen import changed

SPAN = 128
"""The batches of the first stretch: fewer cannot tell a slow fall from noise."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Some batches in a row: the mean of their points, and what tells whether F falls over them."""

    mean: Array
    steps: int = 0
    total: float = 0.0
    """The sum of F_k - F_0."""
    moment: float = 0.0
    """The sum of k (F_k - F_0)."""
    first: float = math.inf
    """F_0: taken off, as sums of large numbers would drown their differences."""
    start: float = math.inf
    """F of the very first batch of the run."""
    span: int = SPAN

    @classmethod
    def blank(cls, x0: Array) -> Stretch:
        """Before the first batch."""
        return cls(np.zeros_like(x0))

    def met(self, x: Array, total: float) -> Stretch:
        """With one more batch, which measured F = `total` and led to x."""
        n, first = self.steps, self.first if self.steps else total
        rise = total - first
        return changed(
            self,
            mean=self.mean + (x - self.mean) / x.dtype.type(n + 1),
            steps=n + 1,
            total=self.total + rise,
            moment=self.moment + n * rise,
            first=first,
            start=total if self.start == math.inf else self.start,
        )

    @property
    def over(self) -> bool:
        """Whether there are enough batches to judge."""
        return self.steps >= self.span

    def settled(self, doubt: float) -> bool:
        """Whether F does not fall over the stretch, and is below its start by more than `doubt`."""
        n = self.steps
        level = self.first + self.total / n
        return self.moment >= self.total * (n - 1) / 2 and level < self.start - doubt

    def next(self, *, longer: bool) -> Stretch:
        """A new stretch, twice as long or not."""
        blank = Stretch(np.zeros_like(self.mean))
        return changed(blank, start=self.start, span=2 * self.span if longer else self.span)
