"""Points that were shown to the model, and which of two is the better explanation."""

from __future__ import annotations

from dataclasses import dataclass

from zomirror.numerics.arrays import Array
from zomirror.problem import ElasticNet


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A point w, how far from valid it is, and the paper's F there."""

    w: Array
    margin: float
    fun: float
    valid: bool

    def better_than(self, other: Candidate | None) -> bool:
        """Valid beats invalid; among valid ones the objective decides, among others the margin."""
        if other is None or self.valid != other.valid:
            return other is None or self.valid
        return self.fun < other.fun if self.valid else self.margin < other.margin


@dataclass(frozen=True, slots=True)
class Goal:
    """F(w) = max(margin, -kappa) + h(w), and valid means margin < -floor (floor = 0: the class itself)."""

    penalty: ElasticNet
    kappa: float
    floor: float = 0.0

    def candidate(self, w: Array, margin: float) -> Candidate:
        """The point with its objective."""
        return Candidate(w, margin, max(margin, -self.kappa) + self.penalty(w), margin < -self.floor)


@dataclass(frozen=True, slots=True, eq=False)
class Glimpse:
    """What a callback of explain() is shown after each iteration."""

    x: Array
    """The iterate as a change, in input units and in the shape of the input."""
    fun: float
    """F there."""
    best: float
    """F at the best valid point so far; NaN while there is none."""
    nfev: int
    nnz: int
