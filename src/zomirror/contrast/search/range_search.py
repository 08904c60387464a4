"""Find a valid point from an invalid one by trying each feature over its whole range.

A descent does not move where the scores are constant within its radius (trees, saturated scores). Here each feature is
tried at a few values of its range, and the best values of the most promising features are then combined. This repeats
from the best point so far; when that does not improve, it restarts from the best of some random points.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.numerics.arrays import Array, Indices
from zomirror.numerics.random import FAR_POINTS, Draws, key_of
from zomirror.problem import Box

Vector = NDArray[np.float64]
Asking = Generator[list[Array], Vector, Candidate]
"""Yields points, is sent their margins, returns the best."""

PLACES = 5
"""Each feature is tried at 5 equidistant values of its range, or only at the two ends if 5 cost more than SHARE."""
SHARE = 0.25
"""One pass over all features may use 25 % of the remaining queries."""
JOINT = 16
"""Points per pass that combine the best values of several features, at most."""
RANDOM = 64
"""Random points of a restart; the best of them is the new start."""
OPEN = 4.0
"""An infinite bound is replaced by one 4 units of the feature's scale away."""


def reach(best: Candidate, goal: Goal, box: Box, allowed: int, seed: int) -> Asking:
    """A valid point, or the one with the least margin if `allowed` more queries find none."""
    draws = Draws.of(key_of(seed), 0, FAR_POINTS)
    low, high = _ends(best.w, box)
    free = np.flatnonzero(low < high)
    left, at = allowed, best
    while left > 0 and not best.valid:
        count = max(1, min(free.size, int(SHARE * left) // 2))
        features = free if count == free.size else np.sort(free[draws.sample(free.size, count)])
        places = PLACES if features.size * PLACES <= SHARE * left else 2
        points, owners = _along(at.w, features, low, high, places)
        points, owners = points[:left], owners[:left]
        left -= len(points)
        seen = [goal.candidate(w, float(m)) for w, m in zip(points, (yield points), strict=True)]
        if left > 0 and (joint := _joint(at, seen, owners)[:left]):
            left -= len(joint)
            seen += [goal.candidate(w, float(m)) for w, m in zip(joint, (yield joint), strict=True)]
        nearest = _nearest(seen)
        if nearest.better_than(at):
            at = nearest
        elif left > 0:
            points = _scattered(best.w, free, low, high, draws)[:left]
            left -= len(points)
            at = _nearest([goal.candidate(w, float(m)) for w, m in zip(points, (yield points), strict=True)])
        best = at if at.better_than(best) else best
    return best


def _nearest(seen: list[Candidate]) -> Candidate:
    """The best candidate; a NaN margin loses to every other one."""
    return min(seen, key=lambda one: (not one.valid, one.fun if one.valid else np.nan_to_num(one.margin, nan=np.inf)))


def _ends(w: Array, box: Box) -> tuple[Vector, Vector]:
    low, high = (np.broadcast_to(side, w.shape).astype(np.float64) for side in (box.lower, box.upper))
    return np.where(np.isfinite(low), low, w - OPEN), np.where(np.isfinite(high), high, w + OPEN)


def _along(w: Array, features: Indices, low: Vector, high: Vector, places: int) -> tuple[list[Array], Indices]:
    """Copies of w with one feature at another place, for all features and places, and the index of that feature."""
    parts = np.linspace(0.0, 1.0, places)
    values = (low[features, None] + parts * (high - low)[features, None]).astype(w.dtype).ravel()
    owners = np.repeat(features, places)
    moved = values != w[owners]
    points = np.repeat(w[None], int(moved.sum()), axis=0)
    points[np.arange(len(points)), owners[moved]] = values[moved]
    return list(points), owners[moved]


def _joint(at: Candidate, seen: list[Candidate], owners: Indices) -> list[Array]:
    """Points that combine the best places of the 2, 3, ... most promising features."""
    best: dict[int, Candidate] = {}
    for owner, one in zip(owners.tolist(), seen, strict=True):
        if one.margin < at.margin and (owner not in best or one.margin < best[owner].margin):
            best[owner] = one
    order = sorted(best, key=lambda owner: best[owner].margin)
    if len(order) < 2:
        return []
    points = []
    for count in np.unique(np.linspace(2, len(order), JOINT).astype(int)):
        w = at.w.copy()
        for owner in order[:count]:
            w[owner] = best[owner].w[owner]
        points.append(w)
    return points


def _scattered(w: Array, free: Indices, low: Vector, high: Vector, draws: Draws) -> list[Array]:
    """Random points: some features anywhere in their range or at one of its ends, the others at 0."""
    points = []
    for _ in range(RANDOM):
        part = np.clip(1.5 * draws.uniform(free.size) - 0.25, 0.0, 1.0)
        there = (low[free] + part * (high - low)[free]).astype(w.dtype)
        point = w.copy()
        point[free] = np.where(draws.uniform(free.size) < draws.uniform(1), there, np.clip(0.0, low[free], high[free]))
        points.append(point)
    return points
