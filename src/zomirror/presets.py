"""The named methods of the paper, exactly as printed; what it leaves open is said here.

PSGD: the paper prints eta |x - x_t|^2 without the usual 1/2. We use (eta/2) |x - x_t|^2, so our eta is twice
the printed one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from zomirror.checks import positive_integer
from zomirror.descent import MirrorDescent
from zomirror.directions import gaussian, rademacher
from zomirror.errors import ArgumentError
from zomirror.estimator import EntropyRadius, EuclideanRadius, Radius, TwoPoint
from zomirror.mirror import Entropy, Euclidean
from zomirror.step import Adaptive, Constant

_ENTROPY_RADIUS, _EUCLIDEAN_RADIUS = EntropyRadius(), EuclideanRadius()


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
