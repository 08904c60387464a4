"""Random groups of coordinates, and the gradient estimate from a batch that moves one group per row.

The equations are in group_memory.py. The compiled loops, where there are any, give the same bits as the numpy code.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from zomirror.methods.query import scattered
from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array, Indices, Values, dot
from zomirror.numerics.random import DRAWS, Draws, Key, counter_of


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Disjoint groups of the free coordinates: row j moves every coordinate i with label j by moves_i."""

    labels: NDArray[np.intp]
    moves: Array
    count: int
    free: Indices | None
    d: int

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """Row r of out is base, moved by radius times the moves of group start + r."""
        if (compiled := self.compiled(out, base)) is not None:
            compiled.add_groups(out, base, self.labels, self.moves, self.free, radius, start, out.itemsize)
            return
        out[:] = base
        columns = np.arange(self.labels.size) if self.free is None else self.free
        rows, moves = self.labels - start, self.moves
        if len(out) < self.count:
            mine = (rows >= 0) & (rows < len(out))
            rows, columns, moves = rows[mine], columns[mine], moves[mine]
        out[rows, columns] += out.dtype.type(radius) * moves

    def compiled(self, *others: Array) -> ModuleType | None:
        """The compiled loops, if they take these groups and arrays."""
        if kernels.compiled is None or self.labels.itemsize != 8 or not kernels.suited(self.moves, *others):
            return None
        return kernels.compiled

    def scatter(self, moved: Array) -> Array:
        """The vector of all d coordinates with these values at the free ones and zero elsewhere."""
        return scattered(moved, self.free, self.d)

    def sums(self, w: Array) -> tuple[Values, Values]:
        """The sums of u w and of u u over each group, where u are the moves."""
        u = self.moves
        return self._summed(u * w), self._summed(u * u)

    def _summed(self, weights: Array) -> Values:
        # With weights, bincount returns float64, which the stubs of numpy do not say.
        return np.bincount(self.labels, weights=weights, minlength=self.count).astype(np.float64, copy=False)


def drawn(x: Array, k: int, share: float, rest: float, key: Key, t: int) -> tuple[NDArray[np.intp], Array]:
    """Labels of k random groups of equal size (to within 1), and the moves of the coordinates.

    With random signs s_i the moves are s_i sqrt(share |x_i| + rest), or s_i if share is 0.
    """
    if kernels.compiled is not None and kernels.suited(x):  # which needs integers of 128 bits, so intp has 64
        labels, moves = np.empty(x.size, np.intp), np.empty_like(x)
        kernels.compiled.draw_groups(labels, moves, x, *key, *counter_of(t, DRAWS), k, share, rest, x.itemsize)
        return labels, moves
    draws = Draws.of(key, t)
    labels = draws.permutation(x.size) % k
    moves = draws.signs(x.size).astype(x.dtype)
    if share:
        size = np.abs(x)
        size *= share
        size += rest
        moves *= np.sqrt(size, out=size)
    return labels, moves


def mended(groups: Groups, y: Values, w: Array, theta: float, gain: float = 1.0) -> tuple[Array, Array, float]:
    """(g, w_next, theta_next) from the differences y, the remembered gradient w and its weight theta.

    theta_next is the slope of the regression of y on what w predicts, within [0, 2].
    """
    labels, u = groups.labels, groups.moves
    if (compiled := groups.compiled(w)) is not None:
        g, after = np.empty_like(w), np.empty_like(w)
        return g, after, compiled.mend_groups(g, after, labels, u, w, y, theta, gain, w.itemsize)
    p, squares = groups.sums(w)
    foretold = dot(p, p)
    earned = min(max(dot(y, p) / foretold, 0.0), 2.0) if foretold > 0 else 0.0
    rest, news = gain * (y - theta * p), (y - earned * p) / squares
    g, after = rest.astype(w.dtype)[labels], news.astype(w.dtype)[labels]
    g /= u
    g += w.dtype.type(theta) * w
    after *= u
    after += w
    return g, after, earned
