"""Inner products, convolutions, and equations with a positive definite matrix, with the same bits on every machine."""

from __future__ import annotations

import numpy as np

from zomirror.numerics import kernels
from zomirror.numerics.arrays import LANES, Values


def solve(A: Values, B: Values) -> Values | None:
    """A^-1 B for a symmetric A (n, n) and B (n, m), by A = L L^T; None if A is not positive definite.

    The upper half of A is read. Every entry is updated by one column after another, as in the compiled loop.
    """
    A, B, n = np.array(A, np.float64, order="C"), np.array(B, np.float64, order="C"), len(A)
    if n == 0:
        return B
    if kernels.compiled is not None:
        return B if kernels.compiled.cholesky(A, B, n) else None
    with np.errstate(invalid="ignore"):
        for j in range(n):
            pivot = np.sqrt(A[j, j])
            if not 0 < pivot < np.inf:
                return None
            A[j, j] = pivot
            row = A[j, j + 1 :]
            row /= pivot
            B[j] /= pivot
            A[j + 1 :, j + 1 :] -= np.multiply.outer(row, row)
            B[j + 1 :] -= np.multiply.outer(row, B[j])
    for j in reversed(range(n)):
        B[j] /= A[j, j]
        B[:j] -= np.multiply.outer(A[:j, j], B[j])
    return B


def inner(A: Values, B: Values) -> Values:
    """A B^T for rows A (m, n) and B (k, n); term i is added to partial sum i mod LANES, then those in halves."""
    A, B = np.ascontiguousarray(A, np.float64), np.ascontiguousarray(B, np.float64)
    out, n = np.zeros((len(A), len(B))), A.shape[1]
    if out.size == 0 or n == 0:
        return out
    if kernels.compiled is not None:
        kernels.compiled.inner(out, A, B, n)
        return out
    whole = n - n % LANES
    for i, a in enumerate(A):
        terms = a * B
        lanes = np.add.reduce(terms[:, :whole].reshape(len(B), -1, LANES), axis=1)
        lanes[:, : n - whole] += terms[:, whole:]
        while lanes.shape[1] > 1:
            lanes = lanes[:, : lanes.shape[1] // 2] + lanes[:, lanes.shape[1] // 2 :]
        out[i] = lanes[:, 0]
    return out


def convolve(rows: Values, taps: Values, length: int, after: int) -> Values:
    """Blocks (length, after) convolved along their length with the symmetric taps; nothing lies beyond the ends."""
    rows = np.ascontiguousarray(rows, np.float64)
    if kernels.compiled is not None and rows.size:
        out = np.empty_like(rows)
        kernels.compiled.convolve(out, rows, taps, length, after)
        return out
    blocks = rows.reshape(-1, length * after)
    total: Values = blocks * taps[0]
    for lag in range(1, min(taps.size, length)):
        total[:, lag * after :] += taps[lag] * blocks[:, : -lag * after]
        total[:, : -lag * after] += taps[lag] * blocks[:, lag * after :]
    return total.reshape(rows.shape)
