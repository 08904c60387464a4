"""Points that a search queried, and chains: points that it improves round by round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics.arrays import Array, Indices

Vector = NDArray[np.float64]

PROBE, LEAST_PROBE, PROBE_FACTOR = 0.3, 0.05, 0.7
"""The step along a cell or a feature in units of its range, the least one, and its factor after a failed round. Steps
of 0.05 from the beginning do not see what a full change of a pixel does."""
GAIN = 0.004
"""A round that lowers F by less than 0.4 % has failed."""
SHRINKING, LAST_RADIUS = 0.3, 0.03
"""Factor of the radius after a failed round, and the radius below which a chain has ended."""
HOPE = (0.7, 0.9, 0.95, 1.0)
"""The part of its F that a chain may end with after 0, 1, 2 and more rounds: the most hopeful one goes on."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Points that were queried."""

    points: Array
    scores: Vector
    margins: Vector
    fun: Vector
    valid: NDArray[np.bool_]

    def best_of(self, rows: Indices) -> int:
        """The best of some rows: the valid one of least F, else the one of least margin."""
        valid = rows[self.valid[rows]]
        if valid.size:
            return int(valid[self.fun[valid].argmin()])
        return int(rows[np.where(np.isnan(self.margins[rows]), np.inf, self.margins[rows]).argmin()])


@dataclass(slots=True, eq=False)
class Chain:
    """A point of the search with its scores and the slopes there, improved round by round."""

    w: Vector
    scores: Vector
    slopes: Vector
    margin: float
    fun: float
    valid: bool
    guess: Vector | None = None
    """The slopes that the prior says, and how far they are borne out."""
    trust: float = 0.0
    radius: float = 1.0
    probe: float = PROBE
    rounds: int = 0

    @classmethod
    def at(cls, seen: Seen, i: int, slopes: Vector) -> Chain:
        """A chain at a point that was queried."""
        chain = cls(np.empty(0), np.empty(0), slopes, np.nan, np.nan, valid=False)
        chain.move(seen, i)
        return chain

    def move(self, seen: Seen, i: int) -> None:
        """Go on from another point with the same slopes."""
        self.w, self.scores = seen.points[i].astype(np.float64), seen.scores[i]
        self.margin, self.fun, self.valid = float(seen.margins[i]), float(seen.fun[i]), bool(seen.valid[i])

    def worse_than(self, valid: bool, fun: float, margin: float) -> bool:  # noqa: FBT001 - a property of a point
        """Whether such a point is better."""
        if valid != self.valid:
            return valid
        return fun < self.fun if valid else margin < self.margin

    @property
    def ended(self) -> bool:
        """Whether no further round is worth its queries."""
        return self.radius < LAST_RADIUS

    @property
    def hope(self) -> tuple[bool, float]:
        """What the chain may become; the least is the most hopeful."""
        if not self.valid:
            return True, np.inf if np.isnan(self.margin) else self.margin
        return False, self.fun * HOPE[min(self.rounds, len(HOPE) - 1)]

    @property
    def state(self) -> tuple[bool, float, float]:
        """Validity, F and margin of its point."""
        return self.valid, self.fun, self.margin

    def gained(self, before: tuple[bool, float, float]) -> bool:
        """Whether it has gained since this state."""
        valid, fun, margin = before
        old, new = (fun, self.fun) if valid else (margin, self.margin)
        return valid != self.valid or new <= old - GAIN * abs(old)

    def fail(self, radius: float) -> None:
        """Look closer from now on, after a round of this radius that gained nothing."""
        self.radius = SHRINKING * radius
        self.probe = max(LEAST_PROBE, PROBE_FACTOR * self.probe)
