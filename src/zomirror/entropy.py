"""The one-dimensional equation behind the entropy step, solved so that it survives floating point.

    log1p(d v) + b v = s,   v >= 0

The paper writes v with Lambert's W, whose argument overflows for s > ~709, divides by b (b = 0 is ordinary)
and subtracts nearly equal numbers. With u = log1p(d v) and beta = b/d the same equation reads
u + beta expm1(u) = s, whose root Halley's iteration finds from above in a fixed number of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zomirror.arrays import Array

HALLEY_STEPS = {np.dtype(np.float32): 3, np.dtype(np.float64): 4}
WIDE = 16.5  # v = expm1(u)/d carries u's absolute error: beyond this u, float32 no longer gives 1e-6


def solve(z: Array, a: float, b: float, d: int, lower: Array | float, upper: Array | float) -> Array:
    """sgn(z) v clipped to [lower, upper], with log1p(d v) + b v = |z| - a, or 0 where |z| <= a."""
    s = np.abs(z)
    s -= a
    y = np.zeros_like(s)
    active = np.flatnonzero(s > 0)
    if active.size:
        # Where most coordinates are zero (the usual late iterate) the rest costs nothing.
        everything = active.size == s.size
        s_on, z_on = (s, z) if everything else (s[active], z[active])
        v = np.copysign(_magnitude(_capped(s_on, z_on, b, d, lower, upper, active), b, d), z_on)
        if everything:
            y = v
        else:
            y[active] = v
    np.clip(y, lower, upper, out=y)
    return y


def _capped(s: Array, z: Array, b: float, d: int, lower: Array | float, upper: Array | float, active: Any) -> Array:
    """min(s, log1p(d U) + b U), U the bound on z's side: the clipped answer is the same, and nothing overflows."""
    low = lower[active] if isinstance(lower, np.ndarray) else lower
    high = upper[active] if isinstance(upper, np.ndarray) else upper
    side = np.where(z > 0, high, np.negative(low)).astype(s.dtype, copy=False)
    with np.errstate(over="ignore"):
        np.maximum(side, 0, out=side)
        cap = np.log1p(side * s.dtype.type(d))
        cap += s.dtype.type(b) * side if b else 0
    capped: Array = np.minimum(s, cap)
    return capped


def _magnitude(s: Array, b: float, d: int) -> Array:
    """V > 0 with log1p(d v) + b v = s, for s > 0; values beyond the dtype's range end at its largest."""
    if s.dtype == np.float32 and s.max() > WIDE:
        limit = np.finfo(np.float32).max
        narrowed: Array = np.minimum(_magnitude(s.astype(np.float64), b, d), limit).astype(np.float32)
        return narrowed
    real = s.dtype.type
    # expm1 of this is finite, with room for the sums below.
    ceiling = real(np.log(np.finfo(s.dtype).max) - 1)
    if b == 0:
        v: Array = np.expm1(np.minimum(s, ceiling))
        v /= d
        return v
    beta = real(b / d)
    with np.errstate(over="ignore"):
        u = np.minimum(s / (1 + beta), np.log1p(s / beta))  # both are above the root
    np.minimum(u, ceiling, out=u)
    for _ in range(HALLEY_STEPS[s.dtype]):
        q = beta * np.expm1(u)
        r = u + q - s
        r1 = 1 + beta + q
        u -= 2 * r * r1 / (2 * r1 * r1 - r * (beta + q))
    q = np.expm1(u)
    # Two ways back from u to v; each is free of cancellation where it is used.
    solved: Array = np.where(beta * q > u, (s - u) / real(b), q / real(d))
    return solved
