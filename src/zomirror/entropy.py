"""The one-dimensional equation behind the entropy step, solved so that it survives floating point.

    log1p(d v) + b v = s,   v >= 0

The paper writes v with Lambert's W, whose argument overflows for s > ~709, divides by b (b = 0 is ordinary)
and subtracts nearly equal numbers. With u = log1p(d v) and beta = b/d the same equation reads
u + beta expm1(u) = s, whose root Halley's iteration finds from above in a fixed number of steps.
"""

from __future__ import annotations

import math

import numpy as np

from zomirror.arrays import Array

HALLEY_STEPS = {np.dtype(np.float32): 3, np.dtype(np.float64): 4}
WIDE = 16.5  # v = expm1(u)/d carries u's absolute error: beyond this u, float32 no longer gives 1e-6
SLACK = 1e-3  # the cap stays above the equation's value at the bound, whatever the rounding


def log1p(t: Array) -> Array:
    """ln(1 + t) for t >= 0, to the last digit or two, in place of t.

    ln(w) + (t - (w - 1))/w with w = 1 + t mends what rounding took from w; numpy's own log1p takes four times as
    long, for its logarithm is vectorised and its log1p is not.
    """
    w = t + 1
    t -= w - 1
    t /= w
    t += np.log(w, out=w)
    return t


def solve(
    z: Array, a: float, b: float, d: float, lower: Array | float, upper: Array | float, reach: float = math.inf
) -> Array:
    """sgn(z) v clipped to [lower, upper], with log1p(d v) + b v = |z| - a, or 0 where |z| <= a.

    `reach` is at least every finite bound: what would end beyond it is clipped anyway, and is not computed.
    """
    s = np.abs(z)
    s -= a
    if reach < math.inf:
        np.minimum(s, s.dtype.type(math.log1p(d * reach) + b * reach + SLACK), out=s)
    on = s > 0
    active = np.count_nonzero(on)
    if active == s.size:
        y = np.copysign(_magnitude(s, b, d), z)
    else:
        # Where most coordinates are zero (the usual late iterate) the rest costs nothing.
        y = np.zeros_like(s)
        if active:
            y[on] = np.copysign(_magnitude(s[on], b, d), z[on])
    np.clip(y, lower, upper, out=y)
    return y


def _magnitude(s: Array, b: float, d: float) -> Array:
    """v > 0 with log1p(d v) + b v = s, for s > 0; values beyond the dtype's range end near its largest."""
    if s.dtype == np.float32 and s.max() > WIDE:
        limit = np.finfo(np.float32).max
        narrowed: Array = np.minimum(_magnitude(s.astype(np.float64), b, d), limit).astype(np.float32)
        return narrowed
    real = s.dtype.type
    # expm1 of this is finite, with room for the sums below.
    ceiling = real(np.log(np.finfo(s.dtype).max) - 1)
    beta = real(b / d)
    if beta == 0:
        v: Array = np.expm1(np.minimum(s, ceiling))
        v /= d
        return v
    most = float(ceiling) + float(beta) * math.expm1(float(ceiling))  # where the root u is the ceiling
    if most < float(np.finfo(s.dtype).max):
        np.minimum(s, real(most), out=s)
    with np.errstate(over="ignore"):
        u = s / beta
        u += 1
        np.log(u, out=u)
    np.minimum(u, s / (1 + beta), out=u)  # both are above the root
    np.minimum(u, ceiling, out=u)
    e, q, r, r1 = (np.empty_like(u) for _ in range(4))
    steps = HALLEY_STEPS[s.dtype]
    for step in range(steps):
        if step < steps - 1:  # exp(u) - 1 will do on the way: it loses digits of small u that the last step brings
            np.exp(u, out=e)
            e -= 1
        else:
            np.expm1(u, out=e)
        # u -= 2 r r1 / (2 r1^2 - r (beta + q)), with q = beta expm1(u), r = u + q - s and r1 = 1 + beta + q
        np.multiply(e, beta, out=q)
        np.add(u, q, out=r)
        r -= s
        q += beta
        np.add(q, 1, out=r1)
        q *= r
        r *= r1
        r += r
        r1 *= r1
        r1 += r1
        r1 -= q
        r /= r1
        u -= r
    # expm1 at the mended u, from the last one: e + (e + 1) expm1(-r), where r is by now far below 1e-3.
    np.add(e, 1, out=q)
    q *= r
    r /= 2
    r -= 1
    q *= r
    e += q
    # Two ways back from u to v; each is free of cancellation where it is used.
    s -= u
    s /= real(b)
    np.multiply(e, beta, out=r)
    e /= real(d)
    np.copyto(s, e, where=r <= u)
    return s
