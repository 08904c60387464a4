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

SIDES = (4, 8, 2, 16)
"""Sides of squares of one colour that follow, where nothing but luck leads to a first point."""
FACTORS = (0.0, 0.5, 0.5, 0.75)
"""What single changes are multiplied by, one round for each factor."""


def first(pixels: Pixels, origin: Array, goal: Goal, draws: Draws, allowed: int, *, patient: bool = False) -> Asking:
    """The first adversarial point, or the one with the least margin.

    A `patient` probe goes on with random squares of one colour as long as it may: where only the class is known,
    nothing else leads to a first point.
    """
    best, every = goal.candidate(origin, np.inf), np.arange(pixels.count)
    for i in range(allowed if patient else min(allowed, len(SIZES) + 1)):
        chosen = every if i >= len(SIZES) else draws.sample(pixels.count, min(SIZES[i], pixels.count))
        side = 1 if i <= len(SIZES) else SIDES[i % len(SIDES)]
        values = pixels.corners(chosen, draws) if side == 1 else pixels.squares(side, draws)
        w = pixels.painted(origin, chosen, values)
        found = goal.candidate(w, float((yield [w])[0]))
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
