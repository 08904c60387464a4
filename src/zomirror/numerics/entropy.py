"""The step of the entropy mirror map: one scalar equation for each coordinate, solved without overflow.

    log1p(d v) + b v = s,   v >= 0

The paper writes v with Lambert's W, whose argument overflows for s > 709, divides by b (and b = 0 is common)
and subtracts nearly equal numbers. With u = log1p(d v) and beta = b/d the equation becomes
u + beta expm1(u) = s, which a fixed number of Halley steps solves from above.

Only sums, products and quotients are used, in the order of _kernels.c: a step has the same bits on every machine,
with compiled loops and without.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array
from zomirror.numerics.elementary import REALS, expm1, log, log1p

WIDE = 16.5
"""float32 problems with a larger u are solved in float64: the relative error of v = expm1(u)/d would exceed 1e-6."""
ROOM, SLACK = 1e-6, 1e-3
"""Relative and absolute margin of the cap on s above the equation's value at the bound, for rounding errors."""
Side = Array | float


class Limits(NamedTuple):
    """The range in which Halley's iteration works in one float type, and its number of steps."""

    ceiling: float
    """The largest u: its expm1, and the sums that follow, are finite."""
    expm1_ceiling: float
    """A number slightly below expm1(ceiling)."""
    most: float
    """The cap of s, whose square is finite. For a beta above it u is negligible, and v = s/b."""
    steps: int
    """Enough for full precision at every u below 100 (v = e^100 / d); at u = 600 in float64 the error is 1e-4."""


LIMITS = {np.dtype(np.float32): Limits(87.0, 6e37, 1e17, 3), np.dtype(np.float64): Limits(708.0, 3e307, 1e150, 4)}


class Equation(NamedTuple):
    """A step with factor eta in d dimensions: a = l1/eta, b = l2/eta; s is capped at `top`, beyond the box."""

    d: float
    eta: float
    a: float
    b: float
    top: float = math.inf

    @classmethod
    def within(cls, d: float, eta: float, l1: float, l2: float, reach: float) -> Equation:
        """The equation for a box whose bounds are at most `reach` in size: s is capped where v exceeds it."""
        b, top = float(l2 / eta), math.inf
        if reach < math.inf:
            top = (math.log1p(d * reach) + b * reach) * (1 + ROOM) + SLACK
        return cls(d, eta, l1 / eta, b, top if top < math.inf else math.inf)  # nan (0 times inf) is no cap


def entropy_step(x: Array, g: Array, equation: Equation, lower: Side, upper: Side) -> Array:
    """sgn(z) v clipped to [lower, upper], with log1p(d v) + b v = |z| - a, or 0 where |z| <= a.

    z = sgn(x) log1p(d |x|) - g/eta is the gradient step in the dual space.
    """
    sides = [side for side in (lower, upper) if isinstance(side, np.ndarray)]
    if kernels.compiled is not None and x.ndim == 1 and x.shape == g.shape and kernels.suited(x, g, *sides):
        y = np.empty_like(x)
        kernels.compiled.entropy_step(y, x, g, lower, upper, *equation, x.itemsize)
        return y
    d, eta, a, b, top = equation
    z = np.abs(x)
    z *= np.array(d, z.dtype)
    np.copysign(log1p(z), x, out=z)
    z -= g / np.array(eta, z.dtype)
    s = np.abs(z)
    s -= np.array(a, s.dtype)
    np.minimum(s, np.array(top, s.dtype), out=s)
    on = (s > 0) & (s < math.inf)
    y = np.where(s < math.inf, np.array(0, z.dtype), z)  # inf and nan are passed on
    # Coordinates that stay zero are left out: late iterates have few others.
    y[on] = np.copysign(_magnitude(s[on], b, d), z[on])
    np.copyto(y, lower, where=y < lower)
    np.copyto(y, upper, where=y > upper)
    return y


def _magnitude(s: Array, b: float, d: float) -> Array:
    """v > 0 with log1p(d v) + b v = s > 0; at most about the largest number of the type, over d."""
    v = _root(s.copy(), b, d)
    if s.dtype == np.float32 and (wide := s > WIDE).any():
        v[wide] = np.minimum(_root(s[wide].astype(np.float64), b, d), REALS[s.dtype].largest)
    return v


def _root(s: Array, b: float, d: float) -> Array:
    """`_magnitude` in the type of s, which is overwritten."""
    (ceiling, expm1_ceiling, most, steps), real, dtype = LIMITS[s.dtype], REALS[s.dtype], s.dtype
    beta = np.array(b / d, dtype)
    if beta == 0:
        v = expm1(np.minimum(s, np.array(ceiling, dtype)))
        v /= np.array(d, dtype)
        return v
    if beta >= most:
        s /= np.array(b, dtype)
        return s
    np.minimum(s, np.array(min(ceiling + float(beta) * expm1_ceiling, most), dtype), out=s)
    # Two upper bounds of the root: s/(1 + beta), and log1p(s/beta), whose quotient may overflow.
    with np.errstate(over="ignore"):
        u: Array = s / beta
    u = log(np.minimum(u, np.array(real.largest, dtype), out=u) + real.one)
    np.minimum(u, s / (beta + real.one), out=u)
    np.minimum(u, np.array(ceiling, dtype), out=u)
    for _ in range(steps):
        # u -= r r1 / (r1^2 - r (beta + q)/2), with q = beta expm1(u), r = u + q - s and r1 = 1 + beta + q
        e = expm1(u)
        q = e * beta
        r = u + q
        r -= s
        q += beta
        r1 = q + real.one
        q *= r
        q *= real.half
        r *= r1
        r1 *= r1
        r1 -= q
        r /= r1
        u -= r
    # expm1(u) after the last step, from the one before it: e + (e + 1) expm1(-r), with r far below 1e-3.
    q = e + real.one
    q *= r
    r *= real.half
    r -= real.one
    q *= r
    e += q
    # v = expm1(u)/d or v = (s - u)/b, whichever has no cancellation.
    near = e * beta <= u
    s -= u
    s /= np.array(b, dtype)
    e /= np.array(d, dtype)
    np.copyto(s, e, where=near)
    return s
