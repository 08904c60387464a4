"""Undo parts of a valid change together: query each alone, then the unions that an additive model calls valid."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.numerics.arrays import Array, Indices

Asking = Generator[list[Array], NDArray[np.float64], Candidate]
"""Yields points, is sent their margins, returns the best."""
Part = tuple[Indices, Array]
"""Features, and the values that they may get instead."""
UNIONS = (0.6, 0.8, 1.0, 1.25, 1.6)
"""Unions of these multiples of the number of parts that the additive model says can be undone together."""


def shed(best: Candidate, parts: Sequence[Part], goal: Goal, allowed: int) -> Asking:
    """The best of `best` and what is left of it after the replacement of some parts."""
    parts = parts[:allowed]
    if not parts:
        return best
    start = best
    margins = yield [replaced(start.w, [part]) for part in parts]
    found = [goal.candidate(replaced(start.w, [part]), float(m)) for part, m in zip(parts, margins, strict=True)]
    best = _better(best, found)
    order = np.argsort(margins, kind="stable")
    rise = np.cumsum(margins[order] - start.margin)
    within = max(1, int(np.count_nonzero(start.margin + rise < -goal.floor)))
    counts = np.unique([round(part * within) for part in UNIONS])
    counts = counts[(counts >= 2) & (counts <= len(parts))][: allowed - len(parts)]
    if counts.size:
        points = [replaced(start.w, [parts[i] for i in order[:count]]) for count in counts]
        margins = yield points
        best = _better(best, [goal.candidate(w, float(m)) for w, m in zip(points, margins, strict=True)])
    return best


def replaced(w: Array, parts: Sequence[Part]) -> Array:
    """A copy of w with the values of the parts."""
    copy = w.copy()
    for features, values in parts:
        copy[features] = values
    return copy


def _better(best: Candidate, found: Sequence[Candidate]) -> Candidate:
    for one in found:
        if one.valid and one.better_than(best):
            best = one
    return best


def least(margins: NDArray[np.float64]) -> int:
    """The index of the least margin that is a number."""
    return int(np.argmin(np.nan_to_num(margins, nan=np.inf)))


class Counted:
    """A generator of points that counts them."""

    def __init__(self, steps: Asking) -> None:
        self._steps, self.asked = steps, 0

    def run(self) -> Asking:
        """Its points, and what it returns."""
        try:
            points = next(self._steps)
            while True:
                self.asked += len(points)
                points = self._steps.send((yield points))
        except StopIteration as stop:
            end: Candidate = stop.value
            return end
