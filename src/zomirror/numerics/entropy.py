"""The one-dimensional equation behind the entropy step, solved so that it survives floating point.

    log1p(d v) + b v = s,   v >= 0

The paper writes v with Lambert's W, whose argument overflows for s > ~709, divides by b (b = 0 is ordinary)
and subtracts nearly equal numbers. With u = log1p(d v) and beta = b/d the same equation reads
u + beta expm1(u) = s, whose root Halley's iteration finds from above in a fixed number of steps.

All of it is sums, products and quotients, in an order that _kernels.c follows: compiled or not, on this machine or
another, a step has the same bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array
from zomirror.numerics.elementary import REALS, expm1, log, log1p

WIDE = 16.5  # v = expm1(u)/d carries u's absolute error: beyond this u, float32 no longer gives 1e-6
ROOM, SLACK = 1e-6, 1e-3  # the cap stays above the equation's value at the bound, whatever the rounding
Side = Array | float


class Limits(NamedTuple):
    """Within what Halley's iteration works in one float type, and how many steps it needs."""

    ceiling: float
    """The largest u: expm1 of it is finite, with room for the sums that follow."""
    expm1_ceiling: float
    """A little below that."""
    most: float
    """The largest s, and what is larger counts as that: its square, and that of what a first u makes of it, is finite.
    Where beta is larger, u is nothing beside s."""
    steps: int
    """Enough for every u below 100, where the answer is e^100 / d; in float64 at u = 600 it is good to 1e-4."""


LIMITS = {np.dtype(np.float32): Limits(87.0, 6e37, 1e17, 3), np.dtype(np.float64): Limits(708.0, 3e307, 1e150, 4)}


class Equation(NamedTuple):
    """A step of size eta in d dimensions: a = l1/eta, b = l2/eta; s is at most `top`, beyond which all is clipped."""

    d: float
    eta: float
    a: float
    b: float
    top: float = math.inf

    @classmethod
    def within(cls, d: float, eta: float, l1: float, l2: float, reach: float) -> Equation:
        """Where no finite bound is larger than `reach`: what would end beyond it is clipped, and is not computed."""
        b, top = float(l2 / eta), math.inf
        if reach < math.inf:
            top = (math.log1p(d * reach) + b * reach) * (1 + ROOM) + SLACK
        return cls(d, eta, l1 / eta, b, top if top < math.inf else math.inf)  # 0 inf is no number, and no cap


def entropy_step(x: Array, g: Array, equation: Equation, lower: Side, upper: Side) -> Array:
    """sgn(z) v clipped to [lower, upper], with log1p(d v) + b v = |z| - a, or 0 where |z| <= a.

    z = sgn(x) log1p(d |x|) - g/eta is where the gradient step leads in the mirror's world.
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
    y = np.where(s < math.inf, np.array(0, z.dtype), z)  # a pull that is not a finite number is not to be hidden
    # Where most coordinates are zero (the usual late iterate) the rest costs nothing.
    y[on] = np.copysign(_magnitude(s[on], b, d), z[on])
    np.copyto(y, lower, where=y < lower)
    np.copyto(y, upper, where=y > upper)
    return y


def _magnitude(s: Array, b: float, d: float) -> Array:
    """v > 0 with log1p(d v) + b v = s > 0; values beyond the dtype's range end near its largest, over d."""
    v = _root(s.copy(), b, d)
    if s.dtype == np.float32 and (wide := s > WIDE).any():
        v[wide] = np.minimum(_root(s[wide].astype(np.float64), b, d), REALS[s.dtype].largest)
    return v


def _root(s: Array, b: float, d: float) -> Array:
    """The same within the limits of the type of s, in whose memory it works."""
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
    # Both starts are above the root, but for rounding: s/(1 + beta), and log1p(s/beta), whose quotient may overflow.
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
    # expm1 at the mended u, from the last one: e + (e + 1) expm1(-r), where r is by now far below 1e-3.
    q = e + real.one
    q *= r
    r *= real.half
    r -= real.one
    q *= r
    e += q
    # Two ways back from u to v; each is free of cancellation where it is used.
    near = e * beta <= u
    s -= u
    s /= np.array(b, dtype)
    e /= np.array(d, dtype)
    np.copyto(s, e, where=near)
    return s
