"""Fewer pixels by exchange: leave one out, and move, recolour and replace the others until the class changes again."""

from __future__ import annotations

import numpy as np

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.pixel_search.pixel import Pixels
from zomirror.contrast.pixel_search.shedding import Asking, Counted, least
from zomirror.numerics.arrays import Array, Indices
from zomirror.numerics.random import Draws

BATCH = 2
"""Neighbours that are queried together; the search goes to the best of them."""
NEAR, MOVED, RECOLOURED = 2, 0.4, 0.15
"""Of the neighbours, 40 % move a pixel by up to 2 rows and columns, 15 % change its colour, the others replace it."""
PART = 0.1
"""Of many pixels 10 % are left out at a time, and exchanged at a time as long as the class has not changed."""
SINGLES = 40
"""Pixels that are left out one at a time, at most: before that, random ones are left out."""


def exchanged(pixels: Pixels, start: Candidate, goal: Goal, draws: Draws, allowed: int, limit: int = 1) -> Asking:
    """The valid `start` with fewer pixels, down to `limit`."""
    best, left = start, allowed
    while left > 0 and pixels.size(best.w) > limit:
        changed = pixels.changed(best.w)
        tried = changed[draws.sample(changed.size, min(SINGLES, changed.size, left))]
        points = [pixels.cleared(best.w, tried[i : i + 1]) for i in range(tried.size)]
        margins = yield points
        left -= len(points)
        order = np.argsort(margins, kind="stable")
        now = goal.candidate(points[order[0]], float(margins[order[0]]))
        count = min(tried.size, max(1, int(PART * changed.size)), changed.size - limit)
        if count > 1 and left > 0:
            point = pixels.cleared(best.w, tried[order[:count]])
            now = goal.candidate(point, float((yield [point])[0]))
            left -= 1
        if not now.valid:
            counted = Counted(brought(pixels, now, goal, draws, left))
            now = yield from counted.run()
            left -= counted.asked
        if now.valid:
            best = now
    return best


def jumped(pixels: Pixels, start: Candidate, goal: Goal, draws: Draws, allowed: int, count: int) -> Asking:
    """A valid point with the `count` most important pixels of `start`, after exchanges; else `start` itself.

    Of an invalid `start` all pixels are exchanged.
    """
    if not start.valid:
        return (yield from brought(pixels, start, goal, draws, allowed))
    changed = pixels.changed(start.w)
    tried = changed[draws.sample(changed.size, min(SINGLES, changed.size, allowed))]
    if tried.size <= count:
        return start
    margins = yield [pixels.cleared(start.w, tried[i : i + 1]) for i in range(tried.size)]
    kept = tried[np.argsort(-np.nan_to_num(margins), kind="stable")[:count]]
    bare = pixels.cleared(start.w, np.setdiff1d(changed, kept))
    now = goal.candidate(bare, np.inf)
    found = yield from brought(pixels, now, goal, draws, allowed - tried.size)
    return found if found.valid else start


def brought(pixels: Pixels, start: Candidate, goal: Goal, draws: Draws, allowed: int) -> Asking:
    """The margin of `start` lowered by exchanging pixels, until it is valid."""
    now, left = start, allowed
    while not now.valid and left > 0:
        points = [_neighbour(pixels, now.w, draws) for _ in range(min(BATCH, left))]
        margins = yield points
        left -= len(points)
        i = least(margins)
        if margins[i] < now.margin:
            now = goal.candidate(points[i], float(margins[i]))
    return now


def _neighbour(pixels: Pixels, w: Array, draws: Draws) -> Array:
    """The point with one pixel moved, recoloured or replaced; with 10 % of them, if there are many."""
    changed = pixels.changed(w)
    for one in changed[draws.sample(changed.size, max(1, int(PART * changed.size)))].tolist():
        w = _with_another(pixels, w, one, draws)
    return w


def _with_another(pixels: Pixels, w: Array, one: int, draws: Draws) -> Array:
    kind, where = draws.uniform(2)
    moved = kind < MOVED
    unused: Indices = np.flatnonzero((w[pixels.members] == 0).all(axis=1))
    others = np.intersect1d(pixels.beside(one, NEAR), unused) if moved else unused
    old = np.array([one], np.intp)
    if kind > 1 - RECOLOURED or not others.size:
        return pixels.painted(w, old, pixels.corners(old, draws))
    new = others[int(where * others.size)][None]
    values = pixels.like(w, old, new) if moved else pixels.corners(new, draws)
    return pixels.painted(pixels.cleared(w, old), new, values)
