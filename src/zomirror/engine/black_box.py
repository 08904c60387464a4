"""What is asked: a function of points or a classifier, with its batches as it takes them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import some
from zomirror.errors import ArgumentError, OracleError
from zomirror.methods.query import Query
from zomirror.numerics.arrays import Array, Values, finite

ALIGNMENT = 64
"""Buffers of points begin at a multiple of this many bytes, a cache line."""


@dataclass(frozen=True, slots=True, eq=False)
class BlackBox:
    """A function or a model, and what to do when it fails."""

    ask: Callable[..., Any]
    """From a batch of inputs, and the numbers of their random draws if there are any, to the answer."""
    name: str = "the function"
    """What error messages call it."""
    attempts: int = 1
    """How often a block is sent before the failure is final."""
    passes: tuple[type[Exception], ...] = ()
    """Errors that are not failures of the box: they reach the search as they are."""


def call(
    fun: Callable[..., Any], points: Array, samples: NDArray[np.int64] | None = None, *, vectorized: bool = True
) -> Any:
    """What `fun` answers to the points, of the random draws `samples` if it is stochastic."""
    if samples is None:
        return fun(points) if vectorized else _stack([fun(row) for row in points])
    if vectorized:
        return fun(points, samples)
    return _stack([fun(row, int(draw)) for row, draw in zip(points, samples, strict=True)])


class PointBuffer:
    """One block of memory for the points, reused unless the function kept a reference to it."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._rows: Array = np.empty((0, 0))
        self._readable = memoryview(b"")
        self._lent: weakref.ref[Array] | None = None

    def view(self, query: Query, start: int, stop: int) -> Array:
        """The points start .. stop-1, read-only, so that the function cannot write into what we count on."""
        shape, dtype = (stop - start, query.d), query.dtype
        held = self._lent is not None and self._lent() is not None
        if held or self._rows.shape != shape or self._rows.dtype != dtype:
            need = shape[0] * shape[1] * dtype.itemsize
            if held or self._memory.size < need:
                memory = np.empty(need + ALIGNMENT, np.uint8)
                self._memory = memory[-memory.ctypes.data % ALIGNMENT :][:need]
            self._rows = self._memory[:need].view(dtype).reshape(shape)
            self._readable = self._memory.data[:need].toreadonly()
        query.points(start, stop, out=self._rows)
        # numpy takes this for a foreign buffer, so whatever is made of the points keeps `lent` alive.
        lent: Array = np.frombuffer(self._readable, dtype)
        self._lent = weakref.ref(lent)
        return lent.reshape(shape)


def _stack(answers: list[Any]) -> Any:
    """One number per row from a function of one point, which may give 0-d or one-element arrays."""
    for answer in answers:
        if np.size(answer) != 1:
            raise ArgumentError(f"expected one number for one point, got shape {np.shape(answer)}")
    return np.array([np.reshape(answer, ()) for answer in answers])


def checked_values(answer: Any, rows: int) -> Values:
    """`answer` as float64 values of shape (rows,), or OracleError with what to return instead."""
    try:
        given = np.asarray(answer)
    except ValueError:
        raise OracleError("expected one number per row, got a ragged sequence") from None
    if given.dtype.kind not in "biuf":
        raise OracleError(f"expected values that are real numbers, got dtype {given.dtype}: return one float per row")
    if given.shape != (rows,):
        raise OracleError(f"expected values of shape ({rows},), got {given.shape}: return one number per row")
    return given.astype(np.float64)


def nonfinite_rows(values: Values) -> str:
    """`row 3` or `rows 1, 2 and 7 more` for the values that are NaN or infinite; empty when all are finite."""
    if finite(values):
        return ""
    bad = np.flatnonzero(~np.isfinite(values))
    return f"{values[bad[0]]} in {some(bad, 'row')} of the batch"
