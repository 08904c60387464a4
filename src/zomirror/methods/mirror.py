"""Mirror maps phi and their steps P(x, g, eta) = argmin_{y in K} <g, y> + h(y) + eta B_phi(y, x).

B_phi(y, x) = phi(y) - phi(x) - <phi'(x), y - x> is the Bregman divergence: eta multiplies it, so a larger
eta is a smaller move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from zomirror.checks import positive
from zomirror.errors import ArgumentError
from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array, norm2, step_norms
from zomirror.numerics.entropy import Equation, entropy_step
from zomirror.problem import Box, ElasticNet

CHUNK = 1 << 15
"""The number of coordinates that numpy works on at a time, so that its temporary arrays stay in the cache."""


class MirrorMap(Protocol):
    """phi, through what a method needs of it."""

    def step(self, x: Array, g: Array, eta: float, h: ElasticNet, box: Box) -> Array:
        """P(x, g, eta), a new array of x's dtype; x and g are not changed."""
        ...

    def movement(self, x: Array, y: Array) -> float:
        """Lambda |y - x|, where phi is lambda-strongly convex in |.| between x and y: a step's size, unitless."""
        ...

    def check(self, h: ElasticNet, box: Box) -> None:
        """Raise ArgumentError when the step has no closed form for this penalty and box."""
        ...


@dataclass(frozen=True, slots=True)
class Entropy:
    """phi(x) = sum_i (|x_i| + b) ln(|x_i| / b + 1) - |x_i|, b = width/d: moves are multiplicative, zeros stay exact.

    phi'_i = sgn(x_i) log1p(|x_i| / b), and phi is 1/(max(|x|_1, |y|_1) + width)-strongly convex in |.|_1 between
    x and y. (Lemma 5 of the paper says twice that; its proof drops the 1/2 of Taylor's theorem.) The paper has
    width = 1; entries far below b move as in gradient descent, those far above it by factors.
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", positive("width", self.width))

    def step(self, x: Array, g: Array, eta: float, h: ElasticNet, box: Box) -> Array:
        """Coordinate by coordinate: sign(z) v with log1p(v/b) + (l2/eta) v = |z| - l1/eta, clipped to the box."""
        equation = Equation.within(x.size / self.width, eta, h.l1, h.l2, box.reach)
        if x.size <= CHUNK or kernels.compiled is not None:
            return entropy_step(x, g, equation, box.lower, box.upper)
        y = np.empty_like(x)
        for start in range(0, x.size, CHUNK):
            part = slice(start, start + CHUNK)
            lower = box.lower[part] if isinstance(box.lower, np.ndarray) else box.lower
            upper = box.upper[part] if isinstance(box.upper, np.ndarray) else box.upper
            y[part] = entropy_step(x[part], g[part], equation, lower, upper)
        return y

    def movement(self, x: Array, y: Array) -> float:
        """|y - x|_1 / (max(|x|_1, |y|_1) + width)."""
        of_x, of_y, between = step_norms(x, y)
        return between / (max(of_x, of_y) + self.width)

    def check(self, h: ElasticNet, box: Box) -> None:
        """Every elastic net and every box will do."""


@dataclass(frozen=True, slots=True)
class Euclidean:
    """phi(x) = |x|_2^2 / 2: the proximal gradient step. 1-strongly convex in |.|_2."""

    def step(self, x: Array, g: Array, eta: float, h: ElasticNet, box: Box) -> Array:
        """soft(eta x - g, l1) / (eta + l2), clipped to the box."""
        z = (eta * x - g).astype(x.dtype, copy=False)
        y = np.abs(z)
        y -= h.l1
        np.maximum(y, 0, out=y)
        y /= eta + h.l2
        np.copysign(y, z, out=y)
        return box.project(y)

    def movement(self, x: Array, y: Array) -> float:
        """|y - x|_2."""
        return norm2(x, y)

    def check(self, h: ElasticNet, box: Box) -> None:
        """Every elastic net and every box will do."""


@dataclass(frozen=True, slots=True)
class PNorm:
    """phi(x) = |x|_p^2 / (2 (p - 1)) with p = 1 + 1/(2 ln d): 1-strongly convex in |.|_p.

    It is not separable, so only h = l1 |x|_1 (or 0) without a box has a closed form; the rest is refused.
    Use float64: phi' grows from 0 so steeply that coordinates below float32's 1e-38 still matter from d ~ 1,000 on.
    """

    def step(self, x: Array, g: Array, eta: float, h: ElasticNet, box: Box) -> Array:
        """phi*'(soft(phi'(x) - g/eta, l1/eta)), phi*(z) = (p - 1) |z|_q^2 / 2, 1/p + 1/q = 1."""
        self.check(h, box)
        p = self.power(x.size)
        q = p / (p - 1)
        z = _power_map(x, p) / (p - 1) - g / eta
        soft = np.copysign(np.maximum(np.abs(z) - h.l1 / eta, 0), z)
        y: Array = (p - 1) * _power_map(soft, q)
        return y.astype(x.dtype, copy=False)

    def movement(self, x: Array, y: Array) -> float:
        """|y - x|_p."""
        return _norm(y - x, self.power(x.size))

    def check(self, h: ElasticNet, box: Box) -> None:
        """Refuse l2 > 0 and every box."""
        if h.l2 or not box.unbounded:
            raise ArgumentError(
                "expected l2 = 0 and no bounds with PNorm, whose step has no closed form otherwise: "
                "use Entropy, which takes both"
            )

    @staticmethod
    def power(d: int) -> float:
        """P = 1 + 1/(2 ln d), and 2 where that is larger (d = 1)."""
        return min(2.0, 1 + 1 / (2 * math.log(d))) if d > 1 else 2.0


def _norm(x: Array, p: float) -> float:
    """|x|_p, scaled so that no power overflows or vanishes."""
    top = float(np.abs(x).max(initial=0.0))
    if top == 0:
        return 0.0
    return top * float(np.power(np.abs(x) / top, p).sum(dtype=np.float64) ** (1 / p))


def _power_map(x: Array, p: float) -> Array:
    """The gradient of |x|_p^2 / 2: sgn(x_i) |x_i|^(p-1) |x|_p^(2-p), free of overflow."""
    norm = _norm(x, p)
    if norm == 0:
        return np.zeros_like(x)
    mapped: Array = np.copysign(np.power(np.abs(x) / norm, p - 1), x) * norm
    return mapped
