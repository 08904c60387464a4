"""The search where the model names only the class: proposals that would be better, kept if they are still adversarial.

One answer says whether a point is adversarial and nothing of how near it is to that. So every query is a point with a
smaller F (or with fewer pixels) than the best one: a pixel less, a smaller change, or a pixel in another place. Kinds
of proposals are drawn in proportion to what they have gained per query.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.pixel_search.pixel import Floats, Pixels
from zomirror.contrast.pixel_search.shedding import Asking
from zomirror.features.vector import VectorPlace
from zomirror.numerics.arrays import Array, Indices
from zomirror.numerics.random import Draws

BATCH = 2
"""Proposals that are queried together; the search goes to the better valid one."""
PRIOR, PRIOR_GAIN = 8.0, 0.02
"""Each kind begins as if 8 queries had gained 2 % each."""
LEAST_PART = 0.05
"""Each kind keeps at least 5 % of the queries."""
NEAR = 2
"""A pixel moves by up to 2 rows and columns."""
PIXEL_GAIN = 0.3
"""A pixel less counts as a gain of 30 %, where pixels are counted."""

Proposal = Callable[["LabelSearch", Array, Indices, Draws], Array]


class LabelSearch:
    """Proposals from one point to the next, with at most `allowed` queries."""

    def __init__(self, place: VectorPlace, pixels: Pixels, goal: Goal, draws: Draws) -> None:
        self.place, self.pixels, self.goal, self._draws = place, pixels, goal, draws
        self._gain = np.full(len(KINDS), PRIOR * PRIOR_GAIN)
        self._tries = np.full(len(KINDS), PRIOR)

    def run(self, start: Candidate, allowed: int) -> Asking:
        """The best point found from the valid `start`."""
        best, left = start, allowed
        while left > 0 and best.w.any():
            kinds, points = self._proposals(best, min(BATCH, left))
            left -= BATCH
            if not points:
                continue
            margins = yield points
            np.add.at(self._tries, kinds, 1.0)
            found = [self.goal.candidate(w, float(m)) for w, m in zip(points, margins, strict=True)]
            before = best
            for kind, one in zip(kinds, found, strict=True):
                if one.valid and one.better_than(before):
                    fewer = one.count < before.count
                    self._gain[kind] += PIXEL_GAIN if fewer else (before.fun - one.fun) / abs(before.fun)
                    best = one if one.better_than(best) else best
        return best

    def _proposals(self, best: Candidate, count: int) -> tuple[list[int], list[Array]]:
        """Points that would be better than the best one, each with the number of its kind."""
        rate = self._gain / self._tries
        part = np.maximum(rate / rate.sum(), LEAST_PART)
        edges, kinds, points = np.cumsum(part / part.sum()), list[int](), list[Array]()
        changed = self.pixels.changed(best.w)
        for _ in range(2 * count):
            kind = int(np.searchsorted(edges, self._draws.uniform(1)[0] * edges[-1]))
            w = KINDS[kind](self, best.w, changed, self._draws)
            w = self.place.legal(self.place.box.project(w.astype(best.w.dtype)))
            if self.goal.candidate(w, best.margin).better_than(best):
                kinds.append(kind)
                points.append(w)
            if len(points) == count:
                break
        return kinds, points

    def dropped(self, w: Array, changed: Indices, draws: Draws) -> Array:
        """One pixel less; where pixels are counted, the others at full contrast."""
        if changed.size < 2:
            return w
        out = changed[draws.sample(changed.size, 1 + int(draws.uniform(1)[0] * min(3, changed.size - 1)))]
        if self.goal.pixels is not None:
            w = self.pixels.painted(w, changed, self.pixels.like(w, changed, changed))
        return self.pixels.cleared(w, out)

    def zeroed(self, w: Array, changed: Indices, draws: Draws) -> Array:
        """One feature less."""
        used = np.flatnonzero(w)
        copy = w.copy()
        copy[used[draws.sample(used.size, 1)]] = 0
        return copy

    def scaled(self, w: Array, changed: Indices, draws: Draws) -> Array:
        """All changes smaller by 2 to 30 %, or by a half."""
        u = float(draws.uniform(1)[0])
        return self._times(w, np.flatnonzero(w), 0.5 if u < 0.2 else 1 - 0.02 * 15 ** ((u - 0.2) / 0.8))

    def smaller(self, w: Array, changed: Indices, draws: Draws) -> Array:
        """The change of one pixel or feature smaller."""
        u, v = draws.uniform(2)
        one = self.pixels.members[changed[int(u * changed.size)]]
        used = one[w[one] != 0]
        return self._times(w, used if v < 0.5 else used[: 1 + int(v * used.size) % used.size], 1 - 0.6 * v)

    def moved(self, w: Array, changed: Indices, draws: Draws) -> Array:
        """A pixel in another place, a little smaller."""
        u, v, where, size = draws.uniform(4)
        old = changed[int(u * changed.size)][None]
        unused = np.flatnonzero((w[self.pixels.members] == 0).all(axis=1))
        others = np.intersect1d(self.pixels.beside(int(old[0]), NEAR), unused) if v < 0.5 else unused
        if not others.size:
            return w
        new = others[int(where * others.size)][None]
        values = self.pixels.like(w, old, new) if v < 0.8 else self.pixels.corners(new, draws)
        values = self._as_large(values, (1 - 0.1 * size) * self._size(w, old))
        return self.pixels.painted(self.pixels.cleared(w, old), new, values)

    def traded(self, w: Array, changed: Indices, draws: Draws) -> Array:
        """One pixel larger, another one smaller by more."""
        if changed.size < 2:
            return w
        one, other = (changed[i][None] for i in draws.sample(changed.size, 2))
        part = 0.5 * float(draws.uniform(1)[0])
        size, has = part * self._size(w, one), self._size(w, other)
        full = self.pixels.like(w, other, other)
        grown = self.pixels.painted(w, other, self._as_large(full, has + 0.8 * size))
        return self._times(grown, self.pixels.members[one[0]], 1 - part)

    def _size(self, w: Array, pixel: Indices) -> float:
        return float(np.abs(w[self.pixels.members[pixel]]).sum(dtype=np.float64))

    @staticmethod
    def _as_large(values: Floats, size: float) -> Floats:
        """The values scaled to this sum, if that is less than their own."""
        has = float(np.abs(values).sum())
        return values * min(1.0, size / has) if has > 0 else values

    @staticmethod
    def _times(w: Array, where: Indices, factor: float) -> Array:
        """A copy with some changes multiplied."""
        copy = w.copy()
        copy[where] *= copy.dtype.type(factor)
        return copy


KINDS: tuple[Proposal, ...] = (
    LabelSearch.dropped,
    LabelSearch.zeroed,
    LabelSearch.scaled,
    LabelSearch.smaller,
    LabelSearch.moved,
    LabelSearch.traded,
)
"""The kinds of proposals."""
