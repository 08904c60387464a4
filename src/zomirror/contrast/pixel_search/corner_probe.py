"""The first adversarial input: random pixels at the corners of their range, and as few of them as still suffice.

1. Query some 50 random pixels at random corners; more pixels if the class stays.
2. Undo halves, quarters, ... of the changed pixels, down to single ones.
3. Undo single channels, then halve what is left.
"""

from __future__ import annotations

import numpy as np

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.pixel_search.pixel import Pixels
from zomirror.contrast.pixel_search.shedding import Asking, Counted, Part, shed
from zomirror.features.vector import VectorPlace
from zomirror.numerics.arrays import Array
from zomirror.numerics.random import Draws

SIZES = (50, 50, 100, 100, 200, 200, 400, 400)
"""Pixels of the first points, one query each; the last one changes all of them."""

FACTORS = (0.0, 0.5, 0.5, 0.75)
"""What single changes are multiplied by, one round for each factor."""


def first(pixels: Pixels, origin: Array, goal: Goal, draws: Draws, allowed: int) -> Asking:
    """The first adversarial point, or the one with the least margin."""
    best = goal.candidate(origin, np.inf)
    for size in (*SIZES, pixels.count)[:allowed]:
        chosen = draws.sample(pixels.count, min(size, pixels.count))
        w = pixels.painted(origin, chosen, pixels.corners(chosen, draws))
        margin = float((yield [w])[0])
        found = goal.candidate(w, margin)
        if found.better_than(best):
            best = found
        if found.margin < -goal.floor:
            return found
    return best


def fewer(pixels: Pixels, start: Candidate, goal: Goal, draws: Draws, allowed: int) -> Asking:
    """The valid `start` with as few of its changed pixels as the queries tell."""
    best, left, blocks = start, allowed, 2
    while left > 0:
        changed = pixels.changed(best.w)
        if changed.size < 2:
            return best
        blocks = min(blocks, changed.size)
        mixed = changed[draws.permutation(changed.size)]
        parts: list[Part] = []
        for block in np.array_split(mixed, blocks):
            features = pixels.members[block].ravel()
            parts.append((features, np.zeros(features.size, best.w.dtype)))
        before, counted = best, Counted(shed(best, parts, goal, left))
        best = yield from counted.run()
        left -= counted.asked
        if best is before:
            if blocks == changed.size:
                return best
            blocks *= 2
    return best


def smaller(place: VectorPlace, start: Candidate, goal: Goal, allowed: int) -> Asking:
    """The valid `start` with single features undone, then halved."""
    best, left = start, allowed
    for factor in FACTORS:
        used = np.flatnonzero(best.w)
        values = place.legal((best.w * best.w.dtype.type(factor)).astype(best.w.dtype))
        parts = [(used[i : i + 1], values[used[i : i + 1]]) for i in range(used.size)]
        counted = Counted(shed(best, parts, goal, left))
        best = yield from counted.run()
        left -= counted.asked
        if left <= 0:
            break
    return best
