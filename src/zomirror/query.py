"""What is asked of the black box in one iteration, described rather than stored.

A query of n points in d dimensions is a handful of segments, each a base point plus radius times a stream of
directions. Rows are made block by block on demand, from numbers alone, so memory is O(block x d), a worker can
make its own rows, and the answer does not depend on who made which.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zomirror.arrays import Array, Indices, Values, add_product
from zomirror.box import Box
from zomirror.directions import Directions, Key

MAX_BLOCK_BYTES = 1 << 26
MAX_BLOCK_ROWS = 1 << 20  # no more than one record of a journal holds, so that a killed run has a block whole or not


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """U: `count` directions of iteration t, one per row, zero outside the `free` coordinates."""

    directions: Directions
    key: Key
    t: int
    count: int
    d: int
    dtype: np.dtype[Any]
    free: Indices | None = None
    max_block_bytes: int = MAX_BLOCK_BYTES

    @property
    def width(self) -> int:
        """How many coordinates a direction moves."""
        return self.d if self.free is None else self.free.size

    @property
    def delta(self) -> float:
        """E[<g, u> u] = g / delta on the coordinates that are moved."""
        return self.directions.delta(self.width)

    def rows(self, start: int, stop: int, *, out: Array | None = None) -> Array:
        """u_start .. u_{stop-1} on the moved coordinates: (stop - start, width)."""
        block = np.empty((stop - start, self.width), self.dtype) if out is None else out
        if self.width:  # else every coordinate is fixed, and no direction is left
            self.directions.fill(block, self.key, self.t, start, 1.0)
        return block

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """Out = base + radius u_j for the rows j = start, start + 1, ..."""
        if self.free is None:
            self.directions.fill(out, self.key, self.t, start, radius)
            out += base
        else:
            out[:] = base
            if self.width:
                moved = _scratch(len(out), self.width, self.dtype)
                self.directions.fill(moved, self.key, self.t, start, radius)
                moved += base[self.free]
                out[:, self.free] = moved

    def combine(self, weights: Values) -> Array:
        """U^T weights, as a vector of all d coordinates."""
        total = np.zeros(self.width, self.dtype)
        for start, stop in self._blocks():
            block = self.rows(start, stop, out=_scratch(stop - start, self.width, self.dtype))
            add_product(total, weights[start:stop].astype(self.dtype), block)
        return self.scatter(total)

    def scatter(self, moved: Array) -> Array:
        """The vector of all d coordinates with these values on the moved ones, zero elsewhere."""
        return scattered(moved, self.free, self.d)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        return blocks(self.count, self.width, self.dtype, self.max_block_bytes)


class Moves(Protocol):
    """Rows of directions that a segment can add to its base: a Stream, or groups of coordinates."""

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """out = base + radius u_j for the rows j = start, start + 1, ..."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """`count` rows base + radius u_j, or `count` copies of base where there is no stream.

    With `first_sample`, row j belongs to the random draw first_sample + j of a stochastic function.
    """

    base: Array
    count: int
    stream: Moves | None = None
    radius: float = 0.0
    first_sample: int | None = None

    def fill(self, out: Array, start: int) -> None:
        """Write the rows from `start` on into out."""
        if self.stream is None:
            out[:] = self.base
        else:
            self.stream.add(self.base, self.radius, start, out)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """The points of one iteration, segment after segment; asked in blocks that only the configuration decides."""

    segments: tuple[Segment, ...]
    clip: Box | None = None
    max_block_bytes: int = MAX_BLOCK_BYTES

    def __len__(self) -> int:
        return sum(segment.count for segment in self.segments)

    @property
    def d(self) -> int:
        """The dimension of the points."""
        return self.segments[0].base.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the points."""
        return self.segments[0].base.dtype

    @property
    def stochastic(self) -> bool:
        """Whether each row names the random draw it belongs to."""
        return self.segments[0].first_sample is not None

    def blocks(self) -> Iterator[tuple[int, int]]:
        """The (start, stop) of the blocks in which the rows are asked."""
        return blocks(len(self), self.d, self.dtype, self.max_block_bytes)

    def points(self, start: int = 0, stop: int | None = None, *, out: Array | None = None) -> Array:
        """Rows start .. stop-1, an array (stop - start, d)."""
        stop = len(self) if stop is None else stop
        rows = np.empty((stop - start, self.d), self.dtype) if out is None else out
        for segment, low, high, first in self._within(start, stop):
            segment.fill(rows[low - start : high - start], low - first)
        if self.clip is not None:
            np.clip(rows, self.clip.lower, self.clip.upper, out=rows)
        return rows

    def samples(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """The random draw that each row belongs to."""
        stop = len(self) if stop is None else stop
        parts = [
            (segment.first_sample or 0) + np.arange(low - first, high - first, dtype=np.int64)
            for segment, low, high, first in self._within(start, stop)
        ]
        return np.concatenate(parts)

    def _within(self, start: int, stop: int) -> Iterator[tuple[Segment, int, int, int]]:
        """The segments that meet rows start .. stop-1: (segment, from row, to row, its first row)."""
        ends = accumulate(segment.count for segment in self.segments)
        for segment, end in zip(self.segments, ends, strict=True):
            low, high = max(start, end - segment.count), min(stop, end)
            if low < high:
                yield segment, low, high, end - segment.count


def scattered(moved: Array, free: Indices | None, d: int) -> Array:
    """The vector of d coordinates with these values on the free ones, zero elsewhere."""
    if free is None:
        return moved
    full = np.zeros(d, moved.dtype)
    full[free] = moved
    return full


def blocks(count: int, width: int, dtype: np.dtype[Any], max_bytes: int) -> Iterator[tuple[int, int]]:
    """Split `count` rows into blocks of at most `max_bytes` and MAX_BLOCK_ROWS (at least one row each)."""
    step = max(1, min(MAX_BLOCK_ROWS, max_bytes // max(1, width * dtype.itemsize)))
    for start in range(0, count, step):
        yield start, min(start + step, count)


_thread = threading.local()


def _scratch(rows: int, width: int, dtype: np.dtype[Any]) -> Array:
    """An uninitialised block that the next call in this thread reuses: fresh pages cost more than filling them."""
    need = rows * width * dtype.itemsize
    buffer = getattr(_thread, "buffer", None)
    if buffer is None or buffer.size < need or buffer.size > 4 * need + MAX_BLOCK_BYTES:
        buffer = _thread.buffer = np.empty(need, np.uint8)
    block: Array = buffer[:need].view(dtype).reshape(rows, width)
    return block
