"""Sparse perturbation (Ohta, Berger, Sokolov and Riezler, 2020): each direction moves a random part of the coordinates.

    u = z on k random coordinates, 0 on the others, z standard normal; k = share d, rounded

`normalised`, u is divided by its length: the random supports of SZOHT.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zomirror.checks import positive
from zomirror.errors import ArgumentError
from zomirror.methods.descent import MirrorDescent
from zomirror.methods.estimator import EuclideanRadius, Radius, TwoPoint
from zomirror.methods.mirror import Euclidean
from zomirror.methods.step import Constant
from zomirror.numerics.arrays import Array, norm2
from zomirror.numerics.random import ROWS, Key, counter_of, fill_normals, words

_RADIUS = EuclideanRadius()


def zo_sparse(
    eta: float, batch_size: int = 200, *, share: float = 0.1, radius: float | Radius = _RADIUS
) -> MirrorDescent:
    """Proximal gradient steps with sparse perturbations of a random tenth of the coordinates."""
    return MirrorDescent(Euclidean(), TwoPoint(batch_size, Subset(share), radius), Constant(eta))


@dataclass(frozen=True, slots=True)
class Subset:
    """The directions above."""

    share: float = 0.1
    normalised: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", positive("share", self.share))
        if self.share > 1:
            raise ArgumentError(f"expected share <= 1, got {self.share}: 1 moves all coordinates")

    def delta(self, d: int) -> float:
        """E[u u^T] = (k/d) I, or I/d if normalised."""
        return float(d) if self.normalised else d / self._moved(d)

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """The coordinates with the k smallest of d random words, one counter for four of them."""
        d = out.shape[1]
        k, counters = self._moved(d), -(-d // 4)
        fill_normals(out, key, t, start)
        for j, row in enumerate(out, start):
            drawn = words(key, counter_of(t, ROWS, position=j * counters), d)
            row[np.argsort(drawn, kind="stable")[k:]] = 0
            row *= row.dtype.type(scale / norm2(row) if self.normalised else scale)

    def _moved(self, d: int) -> int:
        return max(1, round(self.share * d))
