"""The one-dimensional equation behind the entropy step, solved so that it survives floating point.

    log1p(d v) + b v = s,   v >= 0

The paper writes v with Lambert's W, whose argument overflows for s > ~709, divides by b (b = 0 is ordinary)
and subtracts nearly equal numbers. With u = log1p(d v) and beta = b/d the same equation reads
u + beta expm1(u) = s, whose root Halley's iteration finds from above in a fixed number of steps.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zomirror import kernels
from zomirror.arrays import Array

WIDE = 16.5  # v = expm1(u)/d carries u's absolute error: beyond this u, float32 no longer gives 1e-6
SLACK = 1e-3  # the cap stays above the equation's value at the bound, whatever the rounding


class Real(NamedTuple):
    """What holds for all vectors of one float type. A ufunc takes an array () twice as fast as a number."""

    one: NDArray[Any]
    half: NDArray[Any]
    largest: float
    ceiling: float
    """expm1 of this is finite, with room for the sums that follow."""
    halley_steps: int


def _real(dtype: type[np.floating[Any]], halley_steps: int) -> Real:
    largest = np.finfo(dtype).max
    return Real(np.array(1, dtype), np.array(0.5, dtype), float(largest), float(np.log(largest) - 1), halley_steps)


REALS = {np.dtype(np.float32): _real(np.float32, 3), np.dtype(np.float64): _real(np.float64, 4)}


def log1p(t: Array) -> Array:
    """ln(1 + t) for t >= 0, to the last digit or two, in place of t.

    ln(w) + (t - (w - 1))/w with w = 1 + t mends what rounding took from w; numpy's own log1p takes four times as
    long, for its logarithm is vectorised and its log1p is not.
    """
    one = REALS[t.dtype].one
    w = t + one
    t -= w - one
    t /= w
    t += np.log(w, out=w)
    return t


def solve(
    z: Array, a: float, b: float, d: float, lower: Array | float, upper: Array | float, reach: float = math.inf
) -> Array:
    """sgn(z) v clipped to [lower, upper], with log1p(d v) + b v = |z| - a, or 0 where |z| <= a.

    `reach` is at least every finite bound: what would end beyond it is clipped anyway, and is not computed.
    """
    top = math.inf
    if reach < math.inf:
        top = float(np.array(math.log1p(d * reach) + b * reach + SLACK, z.dtype))
    compiled = kernels.compiled if z.ndim == 1 and kernels.suited(z) else None
    if compiled is None:
        s = np.abs(z)
        s -= np.array(a, s.dtype)
        if top < math.inf:
            np.minimum(s, np.array(top, s.dtype), out=s)
        on = s > 0
        active = np.count_nonzero(on)
    else:
        s, on = np.empty_like(z), np.empty(z.size, np.bool_)
        active = compiled.threshold(s, z, on, a, top, z.itemsize)
    if active == s.size:
        y = _magnitude(s, b, d, top)
        np.copysign(y, z, out=y)
    elif compiled is not None:
        y = np.empty_like(s)
        compiled.place(y, z, on, _magnitude(s[on], b, d, top) if active else s[:0], s.itemsize)
    else:
        # Where most coordinates are zero (the usual late iterate) the rest costs nothing.
        y = np.zeros_like(s)
        if active:
            y[on] = np.copysign(_magnitude(s[on], b, d, top), z[on])
    np.maximum(y, lower, out=y)
    np.minimum(y, upper, out=y)
    return y


def _magnitude(s: Array, b: float, d: float, top: float) -> Array:
    """v > 0 with log1p(d v) + b v = s, for 0 < s <= top; values beyond the dtype's range end near its largest.

    It may work in the memory of s.
    """
    dtype = s.dtype
    one, half, largest, ceiling, steps = REALS[dtype]
    if dtype == np.float32 and top > WIDE and s.max() > WIDE:
        narrowed: Array = np.minimum(_magnitude(s.astype(np.float64), b, d, top), largest).astype(np.float32)
        return narrowed
    beta = np.array(b / d, dtype)
    if beta == 0:
        v: Array = np.expm1(np.minimum(s, dtype.type(ceiling)))
        v /= d
        return v
    if top > ceiling:
        most = ceiling + float(beta) * math.expm1(ceiling)  # where the root u is the ceiling
        if most < largest:
            np.minimum(s, dtype.type(most), out=s)
    if kernels.compiled is not None:
        return _compiled_root(kernels.compiled, s, b, d, float(beta), math.inf if top <= ceiling else ceiling)
    # Both starts are above the root: s/(1 + beta), and log1p(s/beta), whose quotient may overflow.
    with nullcontext() if top < largest * float(beta) else np.errstate(over="ignore"):
        u = s / beta
        u += one
        np.log(u, out=u)
    e, q, r, r1 = np.empty((4, s.size), dtype)
    np.minimum(u, np.divide(s, beta + one, out=r), out=u)
    if top > ceiling:
        np.minimum(u, dtype.type(ceiling), out=u)
    for step in range(steps):
        if step < steps - 1:  # exp(u) - 1 will do on the way: it loses digits of small u that the last step brings
            np.exp(u, out=e)
            e -= one
        else:
            np.expm1(u, out=e)
        # u -= r r1 / (r1^2 - r (beta + q)/2), with q = beta expm1(u), r = u + q - s and r1 = 1 + beta + q
        np.multiply(e, beta, out=q)
        np.add(u, q, out=r)
        r -= s
        q += beta
        np.add(q, one, out=r1)
        q *= r
        q *= half
        r *= r1
        r1 *= r1
        r1 -= q
        r /= r1
        u -= r
    # expm1 at the mended u, from the last one: e + (e + 1) expm1(-r), where r is by now far below 1e-3.
    np.add(e, one, out=q)
    q *= r
    r *= half
    r -= one
    q *= r
    e += q
    # Two ways back from u to v; each is free of cancellation where it is used.
    s -= u
    s /= np.array(b, dtype)
    np.multiply(e, beta, out=r)
    e /= np.array(d, dtype)
    np.copyto(s, e, where=r <= u)
    return s


def _compiled_root(compiled: ModuleType, s: Array, b: float, d: float, beta: float, ceiling: float) -> Array:
    """The end of `_magnitude`, with all but the exponentials and logarithms in a few compiled loops."""
    steps, size = REALS[s.dtype].halley_steps, s.itemsize
    u, e, r = np.empty((3, s.size), s.dtype)
    compiled.above(u, s, beta, size)
    np.log(u, out=u)
    compiled.least(u, s, beta, size)
    if ceiling < math.inf:
        np.minimum(u, s.dtype.type(ceiling), out=u)
    for step in range(1, steps + 1):
        exact = step == steps
        (np.expm1 if exact else np.exp)(u, out=e)
        compiled.halley(u, e, r, s, beta, exact, size)
    compiled.back(s, u, e, r, b, d, beta, size)
    return s
