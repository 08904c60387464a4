"""The named methods: those of the paper exactly as printed, its relatives, and the recommended method.

PSGD: the paper prints eta |x - x_t|^2 without the usual 1/2. We use (eta/2) |x - x_t|^2, so our eta is twice
the printed one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zomirror.checks import positive_integer
from zomirror.errors import ArgumentError
from zomirror.methods.descent import MirrorDescent
from zomirror.methods.directions import gaussian, rademacher
from zomirror.methods.estimator import EntropyRadius, EuclideanRadius, Radius, TwoPoint
from zomirror.methods.gallery.relatives import Optimistic, Storm
from zomirror.methods.gradient_guess import GradientGuess
from zomirror.methods.group_memory import GroupMemory, Link
from zomirror.methods.mirror import Entropy, Euclidean
from zomirror.methods.restart import Restarted
from zomirror.methods.step import Adaptive, Constant, ScaleFree
from zomirror.methods.survey import Surveyed
from zomirror.numerics.arrays import Array
from zomirror.problem import Box, ElasticNet

_ENTROPY_RADIUS, _EUCLIDEAN_RADIUS = EntropyRadius(), EuclideanRadius()
OPENING = 24
"""The recommended descent begins with 24 batches of twice the size, about 500 queries."""


class Schedule(NamedTuple):
    """Batch size and radius of the paper's theorems."""

    batch_size: int
    radius: float


def theorem_schedule(iterations: int, d: int) -> Schedule:
    """M = 2 T e (2 ln d - 1) rounded up and nu = 1/(d sqrt T), for which the convergence theorems are stated."""
    positive_integer("iterations", iterations)
    positive_integer("d", d)
    if d < 3:
        raise ArgumentError(f"expected d >= 3, got {d}: the theorems need 2 ln d > 1 with room to spare")
    return Schedule(math.ceil(2 * iterations * math.e * (2 * math.log(d) - 1)), 1 / (d * math.sqrt(iterations)))


def zo_expmd(eta: float, batch_size: int = 200, *, radius: float | Radius = _ENTROPY_RADIUS) -> MirrorDescent:
    """ZO-ExpMD: entropy map, Rademacher directions, constant step."""
    return MirrorDescent(Entropy(), TwoPoint(batch_size, rademacher, radius), Constant(eta))


def zo_ada_expmd(batch_size: int = 200, *, c: float = 2.0, radius: float | Radius = _ENTROPY_RADIUS) -> MirrorDescent:
    """ZO-AdaExpMD: entropy map, Rademacher directions, adaptive step; nothing to tune."""
    return MirrorDescent(Entropy(), TwoPoint(batch_size, rademacher, radius), Adaptive(c))


def zo_psgd(eta: float, batch_size: int = 200, *, radius: float | Radius = _EUCLIDEAN_RADIUS) -> MirrorDescent:
    """ZO-PSGD: Euclidean map, Gaussian directions, constant step."""
    return MirrorDescent(Euclidean(), TwoPoint(batch_size, gaussian, radius), Constant(eta))


def zo_ada_psgd(batch_size: int = 200, *, c: float = 1.0, radius: float | Radius = _EUCLIDEAN_RADIUS) -> MirrorDescent:
    """ZO-PSGD with the adaptive step, whose constant is 1 because phi is 1-strongly convex in |.|_2."""
    return MirrorDescent(Euclidean(), TwoPoint(batch_size, gaussian, radius), Adaptive(c))


def zo_ao_expmd(batch_size: int = 200, *, first: float = 1.0, radius: float | Radius = _ENTROPY_RADIUS) -> Optimistic:
    """AO-ExpMD, by the paper's authors: accelerated and optimistic; entropy map, Rademacher directions."""
    return Optimistic(Entropy(), TwoPoint(batch_size, rademacher, radius), first)


def zo_exp_storm() -> Storm:
    """ExpStorm, by the paper's authors: variance reduced, with batches that grow and two points an iteration."""
    return Storm(Entropy())


def zo_group_expmd(
    scale: float = 1.0,
    batch_size: int = 10,
    *,
    floor: float = 0.0,
    c: float = 0.5,
    radius: float | None = None,
    noise: float | None = None,
    link: Link | None = None,
    clip: bool = False,
    gain: float = 1.0,
    opening: int = 0,
    prior: GradientGuess | None = None,
) -> MirrorDescent:
    """ZO-GroupExpMD: entropy map, a gradient memory on random groups, scale-free adaptive step.

    `scale` is the size that entries of x reach (the largest bound) and `floor` the weight l1; `recommended` takes both
    from the problem. F may rise where f has kinks; `Surveyed` prevents that. `gain` is the weight of the residual that
    the memory did not predict: 1 for an unbiased estimate, 1/2 in `recommended`. The first `opening` batches of an
    exact f are unbiased and have twice the size.
    """
    estimator = GroupMemory(
        batch_size, scale, radius=radius, noise=noise, link=link, clip=clip, gain=gain, opening=opening, prior=prior
    )
    return MirrorDescent(Entropy(width=0.1 * scale), estimator, ScaleFree(c, floor, 1 / estimator.gain))


def recommended(x0: Array, penalty: ElasticNet, box: Box, **options: Any) -> Restarted | MirrorDescent:
    """The method for a problem when none is named: ZO-GroupExpMD with the problem's own scales.

    It is `Surveyed`, and `Restarted` when it has stalled. With a `link` it is the descent alone, for a search that
    measures and prunes by itself. Other `options` are those of `zo_group_expmd`.
    """
    sides = np.concatenate([np.ravel(np.abs(side)) for side in (box.lower, box.upper)])
    known = sides[np.isfinite(sides) & (sides > 0)]
    scale = float(known.max()) if known.size else float(np.abs(x0).max()) or 1.0
    if options.get("link") is not None:
        return zo_group_expmd(scale, floor=penalty.l1, **options)
    return Restarted(Surveyed(zo_group_expmd(scale, floor=penalty.l1, **{"gain": 0.5, "opening": OPENING} | options)))
