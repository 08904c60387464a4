"""Points that the model was queried at, and the order among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.features.place import Change, Place
from zomirror.numerics.arrays import Array, Values, row_sums
from zomirror.problem import ElasticNet


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A point w with its margin, the paper's F, and whether it is valid."""

    w: Array
    margin: float
    fun: float
    valid: bool
    count: int = 0
    """Changed features, where fewer of them come before a smaller F."""

    def better_than(self, other: Candidate | None) -> bool:
        """Valid beats invalid; two valid points are compared by count and F, two invalid ones by the margin."""
        if other is None or self.valid != other.valid:
            return other is None or self.valid
        return (self.count, self.fun) < (other.count, other.fun) if self.valid else self.margin < other.margin


@dataclass(frozen=True, slots=True)
class Goal:
    """F(w) = max(margin, -kappa) + h(w); a point is valid if margin < -floor."""

    penalty: ElasticNet
    kappa: float
    floor: float = 0.0
    fewest: bool = False
    """Whether the number of changed features comes before F."""
    further: Callable[[Array], float] | None = None
    """A further term of F."""
    pixels: Callable[[Array], int] | None = None
    """The number of changed pixels, where there is a limit to it or fewer of them come before a smaller F."""
    most: int | None = None
    """The largest number of changed pixels of a valid point; None: fewer of them come before a smaller F."""

    def candidate(self, w: Array, margin: float, sizes: Array | None = None) -> Candidate:
        """The point with its objective; `sizes` are the changes that are penalised, by default w itself."""
        sizes = w if sizes is None else sizes
        penalty = self.penalty(sizes) + (0.0 if self.further is None else self.further(w))
        count, valid = int(np.count_nonzero(sizes)) if self.fewest else 0, margin < -self.floor
        if self.pixels is not None:
            changed = self.pixels(w)
            count, valid = (changed, valid) if self.most is None else (0, valid and changed <= self.most)
        return Candidate(w, margin, max(margin, -self.kappa) + penalty, valid, count)

    def judge(self, points: Array, margins: Values) -> tuple[Values, NDArray[np.bool_]]:
        """F at each row of the points, whose changes are penalised as they are, and whether it is valid."""
        sizes, squares = row_sums(points).T
        h = self.penalty
        fun = np.maximum(margins, -self.kappa)
        fun += (h.l1 * sizes if h.l1 else 0.0) + (0.5 * h.l2 * squares if h.l2 else 0.0)
        if self.further is not None:
            fun += [self.further(w) for w in points]
        return fun, margins < -self.floor


@dataclass(frozen=True, slots=True, eq=False)
class Glimpse:
    """What explain() passes to its callback after each batch."""

    x: Array
    """The iterate as a change, in input units and in the shape of the input."""
    fun: float
    """F there."""
    best: float
    """F at the best valid point so far; NaN while there is none."""
    nfev: int
    nnz: int
    place: Place | None = field(default=None, repr=False)
    w: Array | None = field(default=None, repr=False)
    """The variable at the best valid point so far; None while there is none."""

    @property
    def perturbed(self) -> Any:
        """What the model saw at the best valid point so far, in the type of x0; None while there is none."""
        return None if self.place is None or self.w is None else self.place.perturbed(self.w)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What changes (PN) or is present (PP) there; empty for a vector, whose arrays say it."""
        return () if self.place is None or self.w is None else self.place.changes(self.w)
