"""exp, log and roots with the same bits on every machine.

IEEE 754 fixes the rounding of sums, products and quotients, but not of exp and log: numpy's differ between processors,
and a run that is resumed on another machine would differ in the last digit. These use sums, products and quotients
only, with an error of at most three units in the last place. _kernels.c has the same operations in the same order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics.arrays import Array


@dataclass(frozen=True, slots=True)
class Real:
    """A float type: x = m 2^k with 1 <= m < 2 is stored as the bits of k + bias, then `mantissa` bits of m."""

    word: np.dtype[Any]
    mantissa: int
    bias: int
    ln2: NDArray[Any]
    """ln 2, rounded to so few bits that its product with every exponent k is exact."""
    ln2_rest: NDArray[Any]
    """ln 2 minus `ln2`."""
    exp_terms: tuple[NDArray[Any], ...]
    """1/n! for n down to 2; the terms left out are below half a unit in the last place for |r| <= ln(2)/2."""
    log_terms: tuple[NDArray[Any], ...]
    """2/(2n + 1) for n down to 1."""
    one: NDArray[Any]
    half: NDArray[Any]
    """Constants are arrays of shape (): ufuncs take them twice as fast as Python numbers."""
    largest: float


def _real(dtype: type[np.floating[Any]], word: str, mantissa: int, ln2: str, rest: str, exps: int, logs: int) -> Real:
    def rounded(number: float) -> NDArray[Any]:
        return np.array(number, dtype)

    return Real(
        word=np.dtype(word),
        mantissa=mantissa,
        bias=int(np.finfo(dtype).maxexp) - 1,
        ln2=rounded(float.fromhex(ln2)),
        ln2_rest=rounded(float.fromhex(rest)),
        exp_terms=tuple(rounded(1 / math.factorial(n)) for n in range(exps, 1, -1)),
        log_terms=tuple(rounded(2 / (2 * n + 1)) for n in range(logs, 0, -1)),
        one=rounded(1),
        half=rounded(0.5),
        largest=float(np.finfo(dtype).max),
    )


REALS = {
    np.dtype(np.float32): _real(np.float32, "u4", 23, "0x1.62e4p-1", "0x1.7f7d1cp-20", 7, 4),
    np.dtype(np.float64): _real(np.float64, "u8", 52, "0x1.62e42fefa2p-1", "0x1.9ef35793c7673p-41", 13, 9),
}


def expm1(u: Array) -> Array:
    """e^u - 1, for u such that e^u neither overflows nor underflows.

    Let k be u / ln 2 rounded to an integer and r = u - k ln 2. Then e^u - 1 = 2^k expm1(r) + (2^k - 1), where expm1(r)
    is a Taylor polynomial. Adding 1.5 2^mantissa rounds to an integer and leaves k in the low bits.
    """
    real = REALS[u.dtype]
    shift = np.array(3 * 2.0 ** (real.mantissa - 1), u.dtype)
    moved = u * np.array(1.4426950408889634, u.dtype)
    moved += shift
    k = moved - shift
    r = u - k * real.ln2
    r -= np.multiply(k, real.ln2_rest, out=k)
    series = _horner(real.exp_terms, r)
    series *= r * r
    series += r
    bits = moved.view(real.word)
    bits += real.word.type(real.bias)
    bits <<= real.word.type(real.mantissa)
    power = bits.view(u.dtype)
    series *= power
    power -= real.one
    series += power
    return series


def log(w: Array) -> Array:
    """ln w, for finite and normal w > 0: k ln 2 + 2 artanh((m - 1)/(m + 1)) with sqrt(1/2) < m <= sqrt(2)."""
    real = REALS[w.dtype]
    bits = w.view(real.word)
    k = (bits >> real.word.type(real.mantissa)).astype(w.dtype)
    k -= np.array(real.bias, w.dtype)
    fraction, one = (1 << real.mantissa) - 1, real.bias << real.mantissa
    m = ((bits & real.word.type(fraction)) | real.word.type(one)).view(w.dtype)
    high = m > np.array(math.sqrt(2), w.dtype)
    np.add(k, real.one, out=k, where=high)
    np.multiply(m, real.half, out=m, where=high)
    f = (m - real.one) / (m + real.one)
    z = f * f
    series = _horner(real.log_terms, z)
    series *= z
    series += np.array(2, w.dtype)
    series *= f
    series += k * real.ln2_rest
    series += np.multiply(k, real.ln2, out=k)
    return series


def log1p(t: Array) -> Array:
    """ln(1 + t) for t >= 0, written over t: ln(w) + (t - (w - 1))/w with w = 1 + t corrects the rounding error of w."""
    real = REALS[t.dtype]
    np.minimum(t, np.array(real.largest, t.dtype), out=t)
    w = t + real.one
    t -= w - real.one
    t /= w
    t += log(w)
    return t


def root(x: float, n: int) -> float:
    """x^(1/n) for x >= 0; 0 for x below 1e-300 and inf above 1e300."""
    if x < 1:
        return 1 / root(1 / x, n) if x > 1e-300 else 0.0
    return float(expm1(log(np.array([x])) / n)[0]) + 1 if x < 1e300 else math.inf


def _horner(terms: tuple[NDArray[Any], ...], at: Array) -> Array:
    value: Array = at * terms[0]
    for term in terms[1:-1]:
        value += term
        value *= at
    value += terms[-1]
    return value
