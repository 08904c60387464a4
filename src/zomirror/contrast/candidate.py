"""Points that the model was queried at, and the order among them."""

from __future__ import annotations

from dataclasses import dataclass

from zomirror.numerics.arrays import Array
from zomirror.problem import ElasticNet


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A point w with its margin, the paper's F, and whether it is valid."""

    w: Array
    margin: float
    fun: float
    valid: bool

    def better_than(self, other: Candidate | None) -> bool:
        """Valid beats invalid; two valid points are compared by F, two invalid ones by the margin."""
        if other is None or self.valid != other.valid:
            return other is None or self.valid
        return self.fun < other.fun if self.valid else self.margin < other.margin


@dataclass(frozen=True, slots=True)
class Goal:
    """F(w) = max(margin, -kappa) + h(w); a point is valid if margin < -floor."""

    penalty: ElasticNet
    kappa: float
    floor: float = 0.0

    def candidate(self, w: Array, margin: float) -> Candidate:
        """The point with its objective."""
        return Candidate(w, margin, max(margin, -self.kappa) + self.penalty(w), margin < -self.floor)


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
