"""The black box: the function or classifier that is queried, its inputs and the checks of its answers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import as_array, some
from zomirror.errors import ArgumentError, OracleError
from zomirror.methods.query import GivenPoints, Query
from zomirror.numerics.arrays import Array, Values, finite

ALIGNMENT = 64
"""Buffers of points are aligned to 64 bytes, a cache line."""


@dataclass(frozen=True, slots=True, eq=False)
class BlackBox:
    """A function or a model, and what to do when it fails."""

    ask: Callable[..., Any]
    """Maps a batch of inputs, and the numbers of their random draws if it is stochastic, to the answer."""
    name: str = "the function"
    """Its name in error messages."""
    attempts: int = 1
    """How often a block is sent before its failure is final."""
    passes: tuple[type[Exception], ...] = ()
    """Exceptions that are passed on unchanged, because they are not failures of the box."""


def call(
    fun: Callable[..., Any], points: Array, samples: NDArray[np.int64] | None = None, *, vectorized: bool = True
) -> Any:
    """The values of `fun` at the points, with the random draws `samples` if it is stochastic."""
    if samples is None:
        return fun(points) if vectorized else _stack([fun(row) for row in points])
    if vectorized:
        return fun(points, samples)
    return _stack([fun(row, int(draw)) for row, draw in zip(points, samples, strict=True)])


class PointBuffer:
    """The memory of the points, reused for the next batch unless the function kept a reference to it."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._rows: Array = np.empty((0, 0))
        self._readable = memoryview(b"")
        self._lent: weakref.ref[Array] | None = None

    def view(self, query: Query | GivenPoints, start: int, stop: int) -> Array:
        """The points start .. stop-1, read-only, because the buffer is ours."""
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
        # To numpy this is a foreign buffer, so every view of the points keeps `lent` alive.
        lent: Array = np.frombuffer(self._readable, dtype)
        self._lent = weakref.ref(lent)
        return lent.reshape(shape)


def _stack(answers: list[Any]) -> Any:
    """The values of a function of one point as an array; each may be a number, a 0-d or a one-element array."""
    for answer in answers:
        if np.size(answer) != 1:
            raise ArgumentError(f"expected one number for one point, got shape {np.shape(answer)}")
    return np.array([np.reshape(answer, ()) for answer in answers])


def checked_values(answer: Any, rows: int) -> Values:
    """`answer` as float64 values of shape (rows,), or OracleError with what to return instead."""
    try:
        given = as_array(answer)
    except TypeError as error:
        raise OracleError(f"expected one number per row, got {error}") from error.__cause__
    if given.dtype.kind not in "biuf":
        raise OracleError(f"expected values that are real numbers, got dtype {given.dtype}: return one float per row")
    if given.shape != (rows,):
        raise OracleError(f"expected values of shape ({rows},), got {given.shape}: return one number per row")
    return given.astype(np.float64)


def nonfinite_rows(values: Values) -> str:
    """The first NaN or infinite value and its rows, as in `nan in rows 1, 2 of the batch`; empty if all are finite."""
    if finite(values):
        return ""
    bad = np.flatnonzero(~np.isfinite(values))
    return f"{values[bad[0]]} in {some(bad, 'row')} of the batch"
