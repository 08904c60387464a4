"""The array types that the core speaks of, and sums whose bits no BLAS decides.

BLAS sums in an order that depends on how many threads it may use, so its bits differ between a process and its
workers, or between two machines. What a run's next point depends on is summed here instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics import kernels

Array = NDArray[np.floating[Any]]
"""float32 or float64."""
Values = NDArray[np.float64]
"""What the black box answered, one number a row."""
Indices = NDArray[np.intp]
"""Which coordinates."""

COLUMNS = 1 << 13  # their part of the sum stays in the cache
LANES = 16
"""Sums that are made side by side."""


def norm1(x: Array, y: Array | None = None) -> float:
    """|x - y|_1, or |x|_1."""
    return sums(x, y)[0]


def norm2(x: Array, y: Array | None = None) -> float:
    """|x - y|_2, or |x|_2."""
    return math.sqrt(sums(x, y)[1])


def sums(x: Array, y: Array | None = None) -> tuple[float, float]:
    """|x - y|_1 and |x - y|_2^2, or those of x alone, in float64; inf beyond its range.

    Term i is added to partial sum i mod LANES, and then the partial sums are added in halves: the compiled loop has
    the same order, so the bits are the same.
    """
    if kernels.compiled is not None and (kernels.suited(x) if y is None else x.size == y.size and kernels.suited(x, y)):
        pair: tuple[float, float] = kernels.compiled.sums(x, y, x.itemsize)
        return pair
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.ravel(x).astype(np.float64) if y is None else np.subtract(x, y, dtype=np.float64).ravel()
        return _folded(np.abs(terms)), _folded(np.square(terms))


def step_norms(x: Array, y: Array) -> tuple[float, float, float]:
    """|x|_1, |y|_1 and |x - y|_1, in one compiled call where there is one."""
    if kernels.compiled is not None and x.size == y.size and kernels.suited(x, y):
        norms: tuple[float, float, float] = kernels.compiled.step_norms(x, y, x.itemsize)
        return norms
    return norm1(x), norm1(y), norm1(x, y)


def dot(a: Values, b: Values) -> float:
    """<a, b> of short vectors, one term after the other."""
    return float(np.add.accumulate(a * b)[-1]) if a.size else 0.0


def finite(x: Array) -> bool:
    """Whether every entry is finite."""
    return math.isfinite(sums(x)[0]) or bool(np.isfinite(x).all())  # the sum of finite numbers may not be


def _folded(terms: Values) -> float:
    whole = terms.size - terms.size % LANES
    lanes = np.add.reduce(terms[:whole].reshape(-1, LANES), axis=0)
    lanes[: terms.size - whole] += terms[whole:]
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return float(lanes[0])


def product(weights: Array, rows: Array) -> Array:
    """rows^T weights, each entry added up in the order of the rows."""
    width = rows.shape[1]
    if width == 1:  # einsum would take it for a scalar product, and sum in another order
        return np.add.accumulate(weights * rows[:, 0])[-1:] + rows.dtype.type(0)
    if width <= COLUMNS:
        total: Array = np.einsum("i,ij->j", weights, rows)
        return total
    total = np.empty(width, rows.dtype)
    for start in range(0, width, COLUMNS):
        part = slice(start, start + COLUMNS)
        np.einsum("i,ij->j", weights, rows[:, part], out=total[part])
    return total
