"""The known, nonsmooth part of the objective: h(x) = l1 |x|_1 + (l2/2) |x|_2^2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zomirror.arrays import Array, sums
from zomirror.checks import nonnegative


@dataclass(frozen=True, slots=True)
class ElasticNet:
    """h(x) = l1 |x|_1 + (l2/2) |x|_2^2, with l1 >= 0 and l2 >= 0."""

    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "l1", nonnegative("l1", self.l1))
        object.__setattr__(self, "l2", nonnegative("l2", self.l2))

    def __call__(self, x: Array) -> float:
        """h(x), summed in float64 whatever the dtype of x; beyond its range it is inf."""
        size, square = sums(np.asarray(x))
        return (self.l1 * size if self.l1 else 0.0) + (0.5 * self.l2 * square if self.l2 else 0.0)
