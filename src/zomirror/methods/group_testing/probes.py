"""The points of a search by group testing: intervals of a random order of the coordinates, moved with random signs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics.arrays import Array

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """Row j moves the coordinates at the positions [low_j, high_j), by `moves` times a weight.

    The weight is 1 or grows with the place p: p, or (1 + p) / 2 if `inward`, so that no coordinate moves outwards.
    """

    order: NDArray[np.intp]
    """The coordinate at each position."""
    moves: Array
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    weighted: NDArray[np.bool_]
    factor: Reals
    inward: bool

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """Write base + radius u_j for the rows j = start, start + 1, ... into out."""
        out[:] = base
        for row, j in zip(out, range(start, start + len(out)), strict=True):
            low, high = int(self.low[j]), int(self.high[j])
            on, m = self.order[low:high], high - low
            step = (radius * self.factor[j]) * self.moves[on]
            if self.weighted[j]:
                place = (2.0 * np.arange(m) + 1 - m) / m
                step = step * ((1 + place) / 2 if self.inward else place).astype(base.dtype)
            row[on] += step
