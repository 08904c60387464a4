"""The array types that the core speaks of, and sums whose bits no BLAS decides.

BLAS sums in an order that depends on how many threads it may use, so its bits differ between a process and its
workers, or between two machines. What a run's next point depends on is summed here instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
"""float32 or float64."""
Values = NDArray[np.float64]
"""What the black box answered, one number a row."""
Indices = NDArray[np.intp]
"""Which coordinates."""

COLUMNS = 1 << 13  # their part of the sum stays in the cache


def norm2(x: Array) -> float:
    """|x|_2, added up in float64."""
    return math.sqrt(float(np.square(x).sum(dtype=np.float64)))


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
