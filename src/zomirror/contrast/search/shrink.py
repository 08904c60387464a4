"""Make a valid point sparser and smaller by querying a few dozen neighbours.

A descent ends on the decision boundary with small entries everywhere. Here the k smallest entries are set to zero, then
the whole point is scaled down, then single entries are removed, as long as the point stays valid and F decreases.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.numerics.arrays import Array
from zomirror.problem import Box

ROWS = 16
"""Neighbours per batch, at most."""
SINGLES = 48
"""The 48 smallest entries are removed one at a time."""

Asking = Generator[list[Array], NDArray[np.float64], Candidate]
"""Yields points, is sent their margins, returns the best."""


def polish(best: Candidate, goal: Goal, box: Box, allowed: int) -> Asking:
    """The best valid point found around `best`, with at most `allowed` more queries."""
    left = allowed
    while left > 0:
        before = best
        for neighbours in (_tails, _shrunk, _without_one):
            points = [box.project(w) for w in neighbours(best.w)][:left]
            if not points:
                continue
            left -= len(points)
            margins = yield points
            found = [goal.candidate(w, float(m)) for w, m in zip(points, margins, strict=True)]
            if neighbours is _without_one:
                # The margins rank the features by importance: remove the k least important ones together.
                order = [w for _, w in sorted(zip(margins, points, strict=True), key=lambda pair: float(pair[0]))]
                points = [box.project(w) for w in _together(best.w, order)][:left]
                left -= len(points)
                if points:
                    margins = yield points
                    found += [goal.candidate(w, float(m)) for w, m in zip(points, margins, strict=True)]
            for candidate in found:
                if candidate.valid and candidate.better_than(best):
                    best = candidate
        if best is before or best.fun > before.fun - 0.005 * abs(before.fun):
            break
    return best


def _tails(w: Array) -> list[Array]:
    """Copies of w without its k smallest entries, for up to ROWS values of k."""
    support = np.flatnonzero(w)
    order = support[np.argsort(np.abs(w[support]), kind="stable")]
    if order.size < 2:
        return []
    counts = np.unique(np.linspace(1, order.size - 1, ROWS).astype(int))
    return [_zeroed(w, order[:k]) for k in counts]


def _shrunk(w: Array) -> list[Array]:
    """The points c w, for factors c < 1 that are dense near 1."""
    factors = 1 - np.geomspace(0.005, 0.6, ROWS)
    return [(w * w.dtype.type(c)) for c in factors] if w.any() else []


def _without_one(w: Array) -> list[Array]:
    """Copies of w without one of its smallest entries."""
    support = np.flatnonzero(w)
    if support.size < 2:
        return []
    order = support[np.argsort(np.abs(w[support]), kind="stable")]
    return [_zeroed(w, order[i : i + 1]) for i in range(min(SINGLES, order.size))]


def _together(w: Array, order: list[Array]) -> list[Array]:
    """Copies of w without all features that are missing in the first 2, 3, ... points of `order`."""
    missing = [np.flatnonzero((w != 0) & (point == 0)) for point in order]
    if len(order) < 2:
        return []
    counts = np.unique(np.linspace(2, len(order), ROWS).astype(int))
    joined = [np.concatenate(missing[:k]) for k in counts]
    return [_zeroed(w, out) for out in joined if out.size < np.count_nonzero(w)]


def _zeroed(w: Array, where: NDArray[np.intp]) -> Array:
    copy = w.copy()
    copy[where] = 0
    return copy
