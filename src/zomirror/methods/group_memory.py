"""A gradient memory on random groups of coordinates: the recommended estimator.

Each iteration splits the free coordinates into k groups at random and moves one group at a time, coordinate i by
u_i = sigma_i s_i with a random sign sigma_i and a weight s_i that is larger where |x_i| is:

    s_i^2 = 1 - rho + rho n |x_i| / |x|_1
    y_j   = (f(x + nu u_{G_j}) - f(x)) / nu,   j = 1..k          k + 1 queries

An estimate w of the gradient is kept from one iteration to the next. What it foretells of the differences is
p_j = <u_{G_j}, w>, and theta says how far it is trusted: as far as the batch before bore it out,

    g   = theta w + kappa (sigma_i / s_i) (y - theta p)_j for i in G_j     (unbiased if kappa = 1: theta knows no y)
    theta' = <y, p>/<p, p>, between 0 and 2                                (for the next batch)
    w  <- w + u_i (y - theta' p)_j / |u_{G_j}|^2 for i in G_j              (foretells y exactly where theta' = 1)

What a batch brings that was not foretold falls on whole groups, most of it on coordinates it does not belong to. A
gain kappa below 1 takes in less of that noise at a time, and leaves more to the memory.

Groups do not meet, so the update is a projection that costs O(d), where m dense directions need an m x m solve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from zomirror.checks import nonnegative, positive, positive_integer
from zomirror.errors import ArgumentError
from zomirror.methods.coordinate_groups import Groups, drawn, mended
from zomirror.methods.estimator import Estimate
from zomirror.methods.noise import EXACT, PROBE, REACH, STEP, balanced, choice, looked_again, scatter, shown
from zomirror.methods.query import MAX_BLOCK_BYTES, Query, Segment
from zomirror.numerics.arrays import Array, Values, norm1
from zomirror.numerics.elementary import REALS
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Key
from zomirror.problem import Problem


class Link(Protocol):
    """A known increasing function l of one number: l(f(x)) is minimised where f is what can be asked."""

    def __call__(self, f: Any, /) -> Any:
        """l(f)."""
        ...

    def slope(self, f: float, /) -> float:
        """l'(f)."""
        ...


LADDER, REPEATS = 6, 12
"""Closely spaced points beside x that show the noise of f: at the start, and where f is known to be noisy."""
TRIED, FIRST_TRIED = 32, 3
"""How often a batch with two-sided differences also takes them over nu/2, in batches, and which is the first."""


@dataclass(frozen=True, eq=False)
class Remembered:
    """What GroupMemory keeps from one iteration to the next."""

    w: Array
    """The estimate of the gradient on the free coordinates."""
    theta: float = 0.0
    """How far the last batch bore the memory out: the trust that the next one puts in it."""
    radius: float = 0.0
    """nu; 0 before the first batch has shown the noise of f."""
    central: bool = False
    """Whether differences are taken on both sides, which a noisy f needs."""
    flat: bool = False
    """Whether the last differences were all zero: then two queries an iteration are enough to leave the plain."""
    f: float = math.inf
    """f at the last iterate; infinite before there is one."""
    sd: float = 0.0
    """The standard deviation of f asked twice at one point, as far as it is known."""
    drowned: bool = False
    """Whether noise is so much that more groups are worth their queries."""
    batches: int = 0
    """How many have told of a gradient, as long as they are of the opening."""


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """Differences over random groups, mended by a memory of the gradient; see the equations above.

    Row 0 is x, rows 1..k are x + nu u_{G_j}, and with central differences k more rows x - nu u_{G_j} follow. The
    first batch also looks at six points close to x, whose third differences show the noise of f: it decides on
    one- or two-sided differences and on nu. `noise` says it beforehand (0 for none), `radius` fixes nu. Two-sided
    differences are taken over up to twice as many groups where noise is much, and now and then over nu/2 as well: where
    the two differ by more than noise, nu becomes what balances bias and noise, else it grows a little.
    `scale` is the size of x: the largest bound, or what the entries of x are expected to reach. While f is flat
    around x, one group holds all coordinates.

    `gain` is kappa, the weight of what the memory did not foretell: 1 makes the estimate unbiased. Where f is noisy or
    stochastic it is 1 in any case, once there is a memory (before, the gain is no more than the unit of the estimate).
    Where f is neither, so it is in the first `opening` batches, which have twice as many groups: the basin in which a
    descent ends is decided there.

    With a `link` l, the values told are those of f and what is minimised is l(f(x)) + h(x): the memory is then one
    of f, which may be smooth where l(f) has a kink (the hinge of a margin). Where l' is 0, f counts as flat.
    """

    revision: ClassVar[int] = 3
    """Raised whenever the same values lead it to other points: a stored run of an earlier one is not gone on with."""

    batch_size: int = 10
    scale: float = 1.0
    rho: float = 0.5
    radius: float | None = None
    noise: float | None = None
    link: Link | None = None
    clip: bool = False
    max_block_bytes: int = MAX_BLOCK_BYTES
    gain: float = 1.0
    opening: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", positive_integer("batch_size", self.batch_size))
        object.__setattr__(self, "scale", positive("scale", self.scale))
        object.__setattr__(self, "rho", nonnegative("rho", self.rho))
        if self.rho >= 1:
            raise ArgumentError(f"expected rho < 1, got {self.rho}: every coordinate must keep some weight")
        object.__setattr__(self, "gain", positive("gain", self.gain))
        if self.gain > 1:
            raise ArgumentError(f"expected gain <= 1, got {self.gain}: 1 takes in all that a batch brings")
        object.__setattr__(self, "opening", positive_integer("opening", self.opening) if self.opening != 0 else 0)
        if self.radius is not None:
            object.__setattr__(self, "radius", positive("radius", self.radius))
        if self.noise is not None:
            object.__setattr__(self, "noise", nonnegative("noise", self.noise))

    @property
    def most(self) -> int:
        """The groups of a batch of an exact f, at most."""
        return 2 * self.batch_size if self.opening else self.batch_size

    def init(self, problem: Problem) -> Remembered:
        """No gradient is known, and the noise only if it was given."""
        width = problem.d if problem.free is None else problem.free.size
        if not width:
            raise ArgumentError("expected a coordinate with lower < upper, got none that can move: widen the bounds")
        blank = Remembered(np.zeros(width, problem.dtype))
        if self.radius is not None:
            return changed(blank, radius=self.radius, central=bool(self.noise), sd=float(self.noise or 0))
        if problem.stochastic or self.noise == 0:
            return changed(blank, radius=EXACT * self.scale)
        return blank

    def ask(self, memory: Remembered, problem: Problem, x: Array, t: int, key: Key) -> Query:
        """The points of iteration t."""
        groups = self._groups(memory, problem, x, t, key)
        draws = t * 2 * self.batch_size if problem.stochastic else None
        radius = memory.radius or PROBE * self.scale
        base = Segment(x, groups.count if problem.stochastic else 1, first_sample=draws)
        segments = [base, Segment(x, groups.count, groups, radius, first_sample=draws)]
        if memory.central:
            segments.append(Segment(x, groups.count, groups, -radius, first_sample=draws))
            if self.radius is None and t % TRIED == FIRST_TRIED:
                segments += [Segment(x, groups.count, groups, side * radius / 2) for side in (1, -1)]
                segments += self._ladder(x, groups, REPEATS) if self.noise is None else []
        elif not memory.radius and self.noise is None:
            segments += self._ladder(x, groups, LADDER)
        return Query(tuple(segments), problem.box if self.clip else None, self.max_block_bytes)

    def tell(self, memory: Remembered, query: Query, values: Values) -> tuple[Estimate, Remembered]:
        """The mended estimate, and what is remembered of it."""
        base, moved, *rest = query.segments
        groups, k, opening = moved.stream, moved.count, self._opens(memory, stochastic=query.stochastic)
        if not isinstance(groups, Groups):
            raise ArgumentError("expected the query that ask() gave")
        at_x, ahead = values[: base.count], values[base.count : base.count + k]
        f = float(at_x[0]) if base.count == 1 else float(np.mean(at_x))
        behind, span = (values[base.count + k :][:k], 2) if memory.central else (at_x, 1)
        y = (ahead - behind) / (span * moved.radius)
        if memory.central and len(rest) > 1:
            nearer = np.subtract(*values[1 + 2 * k : 1 + 4 * k].reshape(2, k)) / moved.radius
            if self.noise is None:
                memory = changed(memory, sd=looked_again(memory.sd, np.concatenate([at_x, values[1 + 4 * k :]])))
            nu = balanced(memory.radius, memory.sd, y - nearer, self.scale, memory.w.dtype)
            memory = changed(memory, radius=nu)
        elif rest and not memory.central:
            memory = self._settle(memory, np.concatenate([at_x, values[-LADDER:]]), float(np.abs(y).max()))
        elif not memory.radius:
            memory = self._choose(memory, float(self.noise or 0), float(np.abs(y).max()))
        moves = bool(y.any())
        if memory.flat and not moves and f != memory.f and self.radius is None:
            # Values differ from one iterate to the next, differences are zero: f has steps, and wants a longer reach.
            memory = changed(memory, radius=min(4 * memory.radius, REACH * self.scale))
        told, slope = f, 1.0
        if self.link is not None:
            f, slope = float(self.link(f)), self.link.slope(f)
        if not (moves and slope):
            still = changed(memory, f=told, flat=not memory.central)
            return Estimate(f, groups.scatter(np.zeros_like(memory.w))), still
        if memory.flat and k == 1 < self.batch_size and memory.w.size > 1:
            # The plain has ended: all groups are asked before a step is taken.
            return Estimate(f, None), changed(memory, f=told, flat=False)
        gain = 1.0 if (opening or memory.central or query.stochastic) and memory.w.any() else self.gain
        g, w, theta = mended(groups, y, memory.w, memory.theta, gain)
        if slope != 1:
            g *= g.dtype.type(slope)
        batches = memory.batches + opening
        after = changed(memory, f=told, w=w, theta=theta, flat=False, batches=batches)
        return Estimate(f, groups.scatter(g)), after

    def _opens(self, memory: Remembered, *, stochastic: bool) -> bool:
        """Whether a batch is of the opening; the one that has yet to find out about noise is not."""
        return memory.batches < self.opening and bool(memory.radius) and not (memory.central or stochastic)

    def _groups(self, memory: Remembered, problem: Problem, x: Array, t: int, key: Key) -> Groups:
        n = memory.w.size
        opening = self._opens(memory, stochastic=problem.stochastic)
        k = 1 if memory.flat else min(self.most if opening else self.batch_size, n)
        if memory.drowned:
            k = max(k, min(2 * self.batch_size, n // 10))
        moved = x if problem.free is None else x[problem.free]
        total = norm1(moved)
        share = self.rho * n / total if total > 0 else math.inf
        if not share < REALS[x.dtype].largest:
            share = 0.0  # x is 0, as good as
        labels, moves = drawn(moved, k, share, 1 - self.rho, key, t)
        return Groups(labels, moves, k, problem.free, problem.d)

    def _ladder(self, x: Array, groups: Groups, count: int) -> list[Segment]:
        """Points so close to x that f changes over them by its noise alone, if it has any."""
        whole = Groups(np.zeros_like(groups.labels), groups.moves, 1, groups.free, groups.d)
        return [Segment(x, 1, whole, i * STEP * self.scale) for i in range(1, count + 1)]

    def _settle(self, memory: Remembered, ladder: Values, slope: float) -> Remembered:
        """Choose by the noise that the ladder shows."""
        chosen = self._choose(memory, shown(ladder), slope)
        # Four third differences that overlap know little; where noise is all that is seen, seven values know more.
        return changed(chosen, sd=math.sqrt(scatter(ladder))) if chosen.central else chosen

    def _choose(self, memory: Remembered, sd: float, slope: float) -> Remembered:
        """One- or two-sided differences, and nu, for noise of this size."""
        radius, central, drowned = choice(sd, slope, self.scale, memory.w.dtype)
        return changed(memory, sd=sd, radius=radius, central=central, drowned=drowned)
