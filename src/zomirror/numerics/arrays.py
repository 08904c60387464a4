"""Array types, and sums whose order is fixed.

The order in which BLAS adds depends on its number of threads, so the last bits differ between a process and its
workers, and between machines. Every sum that decides the next point of a run is taken here instead.
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
"""Values of the function, one for each row."""
Indices = NDArray[np.intp]
"""Positions of coordinates."""

COLUMNS = 1 << 13
"""Columns that a product works on at a time, so that their sums stay in the cache."""
LANES = 16
"""Partial sums of a norm."""


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


def row_sums(X: Array) -> Values:
    """|x|_1 and |x|_2^2 of each row (n, 2): the bits of `sums`."""
    out = np.empty((len(X), 2))
    if kernels.compiled is not None and X.size and kernels.suited(X):
        kernels.compiled.row_sums(out, X, X.shape[1], X.itemsize)
        return out
    for i, row in enumerate(X):
        out[i] = sums(row)
    return out


def step_norms(x: Array, y: Array) -> tuple[float, float, float]:
    """|x|_1, |y|_1 and |x - y|_1, in one compiled call where there is one."""
    if kernels.compiled is not None and x.size == y.size and kernels.suited(x, y):
        norms: tuple[float, float, float] = kernels.compiled.step_norms(x, y, x.itemsize)
        return norms
    return norm1(x), norm1(y), norm1(x, y)


def dot(a: Values, b: Values) -> float:
    """<a, b> of short vectors, added in their order."""
    return float(np.add.accumulate(a * b)[-1]) if a.size else 0.0


def finite(x: Array) -> bool:
    """Whether every entry is finite."""
    return math.isfinite(sums(x)[0]) or bool(np.isfinite(x).all())  # a sum of finite numbers can overflow


def _folded(terms: Values) -> float:
    whole = terms.size - terms.size % LANES
    lanes = np.add.reduce(terms[:whole].reshape(-1, LANES), axis=0)
    lanes[: terms.size - whole] += terms[whole:]
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return float(lanes[0])


def product(weights: Array, rows: Array) -> Array:
    """rows^T weights, added in the order of the rows."""
    width = rows.shape[1]
    if width == 1:  # einsum would compute a scalar product, which adds in another order
        return np.add.accumulate(weights * rows[:, 0])[-1:] + rows.dtype.type(0)
    if width <= COLUMNS:
        total: Array = np.einsum("i,ij->j", weights, rows)
        return total
    total = np.empty(width, rows.dtype)
    for start in range(0, width, COLUMNS):
        part = slice(start, start + COLUMNS)
        np.einsum("i,ij->j", weights, rows[:, part], out=total[part])
    return total
