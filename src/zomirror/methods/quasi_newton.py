"""Quasi-Newton steps on the few coordinates that matter: they finish a descent, and follow curved valleys faster.

slopes    ask x and x + nu e_i for the chosen i: the gradient q of F there, with the signs of x fixed where there is l1
line      ask x + a p for six a, with p = -H q by L-BFGS, clipped to the box; where there is l1, entries that would
          change sign become 0

Two-sided slopes also give the curvature of each coordinate: then L-BFGS begins with that diagonal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError
from zomirror.methods.coordinate_groups import Groups
from zomirror.methods.query import Query, Segment
from zomirror.numerics.arrays import Array, Indices, Values, dot
from zomirror.numerics.frozen import changed
from zomirror.problem import Problem

Reals = NDArray[np.float64]
ALPHAS = (1.0, 0.5, 0.25, 0.1, 0.02, 2.0)
"""The step lengths a of the line search, all asked in one batch."""
PAIRS = 8
"""The number of steps in the memory of L-BFGS."""
NEW = 0.3
"""At most 30 % of the chosen coordinates are zero in x."""
CLOSE = 1e-5
"""A first direction is not shortened further once its largest entry is below 1e-5 times the scale of x."""
SMALL = 1e-2
"""Entries below 1 % of the largest are not chosen."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """The chosen coordinates and the memory of L-BFGS; arrays are padded with zeros beyond `count`."""

    chosen: NDArray[np.intp]
    """Their indices."""
    place: Reals
    """x on them, where the slopes were asked last."""
    gradient: Reals
    """The gradient of F there, with the signs of x fixed."""
    bends: Reals
    """The curvature of f along each of them; 0 where it is not known."""
    direction: Reals
    """p."""
    steps: Reals
    """The last differences of `place`, the latest first."""
    changes: Reals
    """The last differences of `gradient`."""
    count: int = 0
    """How many coordinates are chosen."""
    pairs: int = 0
    """How many rows of `steps` and `changes` are in use."""
    rounds: int = 0
    """How often the slopes were asked."""
    total: float = math.inf
    """F where the slopes were asked last."""

    @classmethod
    def blank(cls, size: int) -> Refinement:
        """Nothing chosen yet, with room for `size` coordinates."""
        zero, table = np.zeros(size), np.zeros((PAIRS, size))
        return cls(np.zeros(size, np.intp), zero, zero, zero, zero, table, table)

    def slopes(self, x: Array, radius: float, problem: Problem, *, central: bool) -> Query:
        """x, and x + radius e_i for each chosen i; if `central`, x - radius e_i too.

        Where one of these would leave the box, the points are on the other side of x.
        """
        on, k = self.chosen[: self.count], self.count
        lower, upper = (np.broadcast_to(side, x.shape)[on] for side in (problem.box.lower, problem.box.upper))
        signs = np.where(x[on] + radius > upper, -1, 1).astype(x.dtype)
        segments = [Segment(x, 1), Segment(x, k, Groups(np.arange(k), signs, k, on, x.size), radius)]
        if central:
            inward = (x[on] + radius > upper) | (x[on] - radius < lower)
            second = np.where(inward, 2 * signs, -signs).astype(x.dtype)
            segments.append(Segment(x, k, Groups(np.arange(k), second, k, on, x.size), radius))
        return Query(tuple(segments))

    def line(self, x: Array, problem: Problem) -> Query:
        """x + a p for each a of ALPHAS."""
        return Query((Segment(x, len(ALPHAS), LinePoints(self, problem)),))

    def taking(self, coordinates: Indices) -> Refinement:
        """With these coordinates."""
        chosen, count = np.zeros_like(self.chosen), min(coordinates.size, self.chosen.size)
        chosen[:count] = coordinates[:count]
        return changed(self, chosen=chosen, count=count)

    def shorter(self, scale: float) -> Refinement | None:
        """With a direction 50 times as short; None if L-BFGS chose its length, or if it is short already."""
        if self.pairs or float(np.abs(self.direction).max()) <= CLOSE * scale:
            return None
        return changed(self, direction=min(ALPHAS) * self.direction)


@dataclass(frozen=True, slots=True, eq=False)
class LinePoints:
    """Rows of x + a p on the chosen coordinates, where no entry changes its sign or leaves the box."""

    refinement: Refinement
    problem: Problem

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """Row j has a = ALPHAS[start + j]; the radius is not used."""
        r, box = self.refinement, self.problem.box
        on, place, p = r.chosen[: r.count], r.place[: r.count], r.direction[: r.count]
        moved = place + np.multiply.outer(ALPHAS[start : start + len(out)], p)
        if self.problem.penalty.l1:
            sign = np.where(place != 0, np.sign(place), np.sign(p))
            moved = np.where(moved * sign < 0, 0.0, moved)
        out[:] = base
        out[:, on] = moved
        np.clip(out, box.lower, box.upper, out=out)


def chosen(blank: Refinement, x: Array, w: Array, problem: Problem, most: int, small: float = SMALL) -> Refinement:
    """With at most `most` coordinates: the largest entries of x, and zeros where |w| > l1, which w would move.

    Without l1, those with the largest |w|.
    """
    free = np.arange(x.size) if problem.free is None else problem.free
    pull = np.abs(w).astype(np.float64)
    if not problem.penalty.l1:
        return blank.taking(free[np.sort(np.argsort(-pull, kind="stable")[: blank.chosen.size])])
    size, most = np.abs(x[free]).astype(np.float64), min(most, blank.chosen.size)
    support = np.flatnonzero(size > small * size.max(initial=0.0))
    support = support[np.argsort(-size[support], kind="stable")[: most - int(NEW * most)]]
    pull[support] = 0
    more = np.argsort(-pull, kind="stable")[: int(NEW * most) if support.size else most]
    more = more[pull[more] > problem.penalty.l1]
    return blank.taking(free[np.sort(np.concatenate([support, more]))])


def sloped(r: Refinement, f: Values, query: Query) -> tuple[Reals, Reals]:
    """The slopes and curvatures of f that the slopes' query measured; the known curvatures, if it was one-sided."""
    ahead, *second = query.segments[1:]
    k, radius = r.count, ahead.radius
    if not isinstance(ahead.stream, Groups):
        raise ArgumentError("expected the query that slopes() gave")
    signs = ahead.stream.moves.astype(np.float64)
    rise = (f[1 : 1 + k] - f[0]) / radius
    if not second:
        return rise * signs - r.bends[:k] * (radius / 2), r.bends[:k]
    other = (f[1 + k :] - f[0]) / radius
    inward = cast(Groups, second[0].stream).moves * signs > 0
    slopes = np.where(inward, 2 * rise - other / 2, (rise - other) / 2) * signs
    return slopes, np.where(inward, other - 2 * rise, rise + other) / radius


def aimed(r: Refinement, x: Array, f: float, slopes: Reals, bends: Reals, problem: Problem, scale: float) -> Refinement:
    """With the direction that the slopes and curvatures of f at x give."""
    h, k = problem.penalty, r.count
    on = r.chosen[:k]
    place = x[on].astype(np.float64)
    sign = np.where(place != 0, np.sign(place), np.where(np.abs(slopes) > h.l1, -np.sign(slopes), 0.0))
    gradient = slopes + h.l1 * sign + h.l2 * place
    steps, changes, pairs = r.steps, r.changes, r.pairs
    if r.rounds:
        s, y = place - r.place[:k], gradient - r.gradient[:k]
        if dot(s, y) > 1e-10 * math.sqrt(dot(s, s) * dot(y, y)):
            steps, changes = np.roll(steps, 1, 0), np.roll(changes, 1, 0)
            steps[0, :k], changes[0, :k] = s, y
            pairs = min(pairs + 1, PAIRS)
    lower, upper = (np.broadcast_to(side, x.shape)[on] for side in (problem.box.lower, problem.box.upper))
    held = ((sign == 0) & (h.l1 > 0)) | ((place <= lower) & (gradient > 0)) | ((place >= upper) & (gradient < 0))
    q = np.where(held, 0.0, gradient)
    largest = float(np.abs(q).max()) or 1.0
    if bends.any():  # the inverse of the curvatures, as far as a step along one coordinate stays within the scale
        inverse = 1 / np.maximum(np.maximum(np.abs(bends + h.l2), np.abs(q) / scale), 1e-300)
    else:
        inverse = np.full(k, 0.1 * (float(np.abs(place).max()) or scale) / largest)
    p = np.where(held, 0.0, -_lbfgs(q, steps[:pairs, :k], changes[:pairs, :k], inverse))
    if dot(p, q) >= 0:
        p, pairs = q * (-float(np.abs(p).max()) / largest), 0
    return changed(
        r,
        place=_padded(place, r),
        gradient=_padded(gradient, r),
        bends=_padded(bends, r),
        direction=_padded(p, r),
        steps=steps,
        changes=changes,
        pairs=pairs,
        rounds=r.rounds + 1,
        total=f + h(x),
    )


def _padded(values: Reals, r: Refinement) -> Reals:
    full = np.zeros(r.chosen.size)
    full[: r.count] = values
    return full


def _lbfgs(q: Reals, steps: Reals, changes: Reals, inverse: Reals) -> Reals:
    """H q by the two-loop recursion, the latest pair first; H is diag(inverse) before the first pair."""
    weights = []
    for s, y in zip(steps, changes, strict=True):
        a = dot(s, q) / dot(s, y)
        weights.append(a)
        q = q - a * y
    q = q * inverse
    if len(steps):
        q = q * (dot(steps[0], changes[0]) / dot(changes[0], changes[0] * inverse))
    for s, y, a in reversed(list(zip(steps, changes, weights, strict=True))):
        q = q + s * (a - dot(y, q) / dot(s, y))
    return q
