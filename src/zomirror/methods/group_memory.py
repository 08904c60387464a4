"""A gradient memory on random groups of coordinates: the recommended estimator.

Each iteration splits the free coordinates into k groups at random and moves one group at a time, coordinate i by
u_i = sigma_i s_i with a random sign sigma_i and a weight s_i that is larger where |x_i| is:

    s_i^2 = 1 - rho + rho n |x_i| / |x|_1
    y_j   = (f(x + nu u_{G_j}) - f(x)) / nu,   j = 1..k          k + 1 queries

An estimate w of the gradient is kept from one iteration to the next. It predicts the differences p_j = <u_{G_j}, w>,
and is weighted by theta, the regression coefficient of y on p in the batch before:

    g   = theta w + kappa (sigma_i / s_i) (y - theta p)_j for i in G_j     (unbiased if kappa = 1: theta does not use y)
    theta' = <y, p>/<p, p>, between 0 and 2                                (for the next batch)
    w  <- w + u_i (y - theta' p)_j / |u_{G_j}|^2 for i in G_j              (predicts y exactly where theta' = 1)

The residual y - theta p is spread over whole groups, so most of it lands on coordinates that did not cause it. A gain
kappa below 1 adds less of that noise to g; the coordinates that matter are then found by w, over several batches.

Groups are disjoint, so the update is a projection that costs O(d), where m dense directions need an m x m solve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from zomirror.checks import nonnegative, positive, positive_integer
from zomirror.errors import ArgumentError
from zomirror.methods.coordinate_groups import Groups, drawn, mended
from zomirror.methods.estimator import Estimate, Slopes
from zomirror.methods.gradient_guess import GradientGuess, Guided
from zomirror.methods.noise import EXACT, PROBE, REACH, STEP, balanced, choice, looked_again, scatter, shown
from zomirror.methods.query import MAX_BLOCK_BYTES, Query, Segment
from zomirror.numerics.arrays import Array, Values, norm1
from zomirror.numerics.elementary import REALS
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Key
from zomirror.problem import Problem


class Link(Protocol):
    """A known increasing function l of one number: l(f(x)) is minimised, and the queries give f(x)."""

    def __call__(self, f: Any, /) -> Any:
        """l(f)."""
        ...

    def slope(self, f: float, /) -> float:
        """l'(f)."""
        ...


LADDER, REPEATS = 6, 12
"""The number of closely spaced points that show the noise of f: 6 in the first batch, 12 in later ones of a noisy f."""
TRIED, FIRST_TRIED = 32, 3
"""Iteration 3, and every 32nd after it, takes two-sided differences over nu/2 too, to adapt nu."""


@dataclass(frozen=True, eq=False)
class Remembered:
    """What GroupMemory keeps from one iteration to the next; a `Learned`."""

    w: Array
    """The estimate of the gradient on the free coordinates."""
    theta: float = 0.0
    """The weight of w in the next estimate: how well w predicted the last batch, 1 for exactly, 0 for not at all."""
    radius: float = 0.0
    """nu; 0 before the first batch has shown the noise of f."""
    central: bool = False
    """Whether differences are two-sided, as a noisy f needs them."""
    flat: bool = False
    """Whether the last differences were all zero: then two queries per batch are enough until f is no longer flat."""
    f: float = math.inf
    """f at the last iterate; infinite before there is one."""
    sd: float = 0.0
    """The standard deviation of the noise of f, as far as it is known."""
    drowned: bool = False
    """Whether the noise is so large that more groups pay for their queries."""
    batches: int = 0
    """How many batches of the opening have given a gradient."""
    guided: Guided | None = None
    """What is remembered of a prior."""


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """Differences over random groups, combined with a memory of the gradient; see the equations above.

    Row 0 is x, rows 1..k are x + nu u_{G_j}, and with central differences k more rows x - nu u_{G_j} follow. The
    first batch also asks six points close to x. Their third differences give the noise of f, which decides on one- or
    two-sided differences and on nu. `noise` gives it beforehand (0 for none), `radius` fixes nu. Where the noise is
    large, two-sided differences are taken over up to twice as many groups. Every 32nd batch takes them over nu/2 too:
    if the two differ by more than the noise, nu becomes what balances bias and noise, else it grows by a quarter.
    `scale` is the size of x: the largest bound, or the size that its entries are expected to reach. While f is flat
    around x, one group holds all coordinates.

    `gain` is kappa, the weight of the residual: 1 makes the estimate unbiased. Once w is not 0, kappa is 1 where f is
    noisy or stochastic, and in the first `opening` batches of an exact f, which have twice as many groups: they decide
    in which local minimum a descent ends. (While w is 0, kappa only scales the estimate.)

    With a `prior`, a guess of the gradient seeds w and follows x as far as it proves right; see gradient_guess.py.

    With a `link` l, the values told are those of f, and l(f(x)) + h(x) is minimised. The memory is then one of f, which
    may be smooth where l(f) has a kink (the hinge of a margin). Where l' is 0, f counts as flat.
    """

    revision: ClassVar[int] = 4
    """Raised whenever the same values lead to other points; stored runs of an older revision cannot be resumed."""

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
    prior: GradientGuess | None = None

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
        """The largest number of groups in a batch of an exact f."""
        return 2 * self.batch_size if self.opening else self.batch_size

    def init(self, problem: Problem) -> Remembered:
        """Neither the gradient nor, unless it was given, the noise is known."""
        if not problem.width:
            raise ArgumentError("expected a coordinate with lower < upper, got none that can move: widen the bounds")
        none = np.zeros(problem.width, problem.dtype)
        blank = Remembered(none, guided=None if self.prior is None else Guided(none))
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
        """The estimate, and the memory with the batch in it."""
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
            if memory.central:  # these one-sided differences are too noisy for a step
                return Estimate(f if self.link is None else float(self.link(f)), None), changed(memory, f=f)
        elif not memory.radius:
            memory = self._choose(memory, float(self.noise or 0), float(np.abs(y).max()))
        moves = bool(y.any())
        if memory.flat and not moves and f != memory.f and self.radius is None:
            # f differs between iterates but not within nu: f is piecewise constant, and needs a larger nu.
            memory = changed(memory, radius=min(4 * memory.radius, REACH * self.scale))
        told, slope = f, 1.0
        if self.link is not None:
            f, slope = float(self.link(f)), self.link.slope(f)
        if not (moves and slope):
            still = changed(memory, f=told, flat=not memory.central)
            return Estimate(f, groups.scatter(np.zeros_like(memory.w))), still
        if memory.flat and k == 1 < self.batch_size and memory.w.size > 1:
            # f is no longer flat: all groups are asked before a step is taken.
            return Estimate(f, None), changed(memory, f=told, flat=False)
        gain = 1.0 if (opening or memory.central or query.stochastic) and memory.w.any() else self.gain
        if self.prior is not None:
            memory = self._guided(memory, self.prior, base.base, y, groups)
        g, w, theta = mended(groups, y, memory.w, memory.theta, gain)
        if slope != 1:
            g *= g.dtype.type(slope)
        batches = memory.batches + opening
        after = changed(memory, f=told, w=w, theta=theta, flat=False, batches=batches)
        return Estimate(f, groups.scatter(g)), after

    def _guided(self, memory: Remembered, prior: GradientGuess, x: Array, y: Values, groups: Groups) -> Remembered:
        """With the guess in w, as far as it is trusted."""
        v = prior.at(x)
        guided = cast(Guided, memory.guided)
        guided, w, new = guided.moved(memory.w, v if groups.free is None else v[groups.free], y, groups)
        return changed(memory, w=w, guided=guided, theta=1.0 if new else memory.theta)

    def corrected(self, memory: Remembered, problem: Problem, f: float, slopes: Slopes | None) -> Remembered:
        """With f at the iterate; measured partial derivatives replace the estimates of w."""
        if slopes is None:
            return changed(memory, f=f)
        w, on = memory.w.copy(), slopes.coordinates
        w[on if problem.free is None else np.searchsorted(problem.free, on)] = slopes.values
        return changed(memory, f=f, w=w)

    def restarted(self, memory: Remembered, problem: Problem) -> Remembered:
        """The first memory again, with nu and the noise of f as they are known."""
        begun = changed(self.init(problem), radius=memory.radius, sd=memory.sd)
        if memory.guided is None:
            return begun
        return changed(begun, guided=changed(memory.guided, used=False))  # what its guesses were worth stays known

    def _opens(self, memory: Remembered, *, stochastic: bool) -> bool:
        """Whether a batch belongs to the opening; the one that measures the noise does not."""
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
            share = 0.0  # x is 0, or so small that the weights would overflow
        labels, moves = drawn(moved, k, share, 1 - self.rho, key, t)
        return Groups(labels, moves, k, problem.free, problem.d)

    def _ladder(self, x: Array, groups: Groups, count: int) -> list[Segment]:
        """Points so close to x that f differs between them by its noise only."""
        whole = Groups(np.zeros_like(groups.labels), groups.moves, 1, groups.free, groups.d)
        return [Segment(x, 1, whole, i * STEP * self.scale) for i in range(1, count + 1)]

    def _settle(self, memory: Remembered, ladder: Values, slope: float) -> Remembered:
        """With nu chosen by the noise in the ladder."""
        chosen = self._choose(memory, shown(ladder), slope)
        # Four overlapping third differences are few; where noise dominates, the scatter of seven values is better.
        return changed(chosen, sd=math.sqrt(scatter(ladder))) if chosen.central else chosen

    def _choose(self, memory: Remembered, sd: float, slope: float) -> Remembered:
        """With one- or two-sided differences and nu chosen for noise of this size."""
        radius, central, drowned = choice(sd, slope, self.scale, memory.w.dtype)
        return changed(memory, sd=sd, radius=radius, central=central, drowned=drowned)
