"""The points of one iteration, described rather than stored.

A query of n points in d dimensions is a few segments, each a base point plus radius times a stream of directions.
Rows are computed in blocks on demand, so memory is O(block x d), and a worker can compute its own rows: they are the
same whoever computes them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError
from zomirror.methods.directions import Bits, Columns, Directions, Rademacher
from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array, Indices, Values, product
from zomirror.numerics.random import Key
from zomirror.problem import Box

MAX_BLOCK_BYTES = 1 << 26
"""The default size of a block of points."""
_MADE_OF = struct.Struct("<Qd")
PATCH_BYTES = 1 << 21
"""The part of a block that is worked on at a time: it stays in the cache between two passes."""
STRIP = 255 << 8
"""Columns at a time, where a row is larger than PATCH_BYTES: an odd multiple of 256 (see `_bit_rows`)."""
MAX_BLOCK_ROWS = 1 << 20
"""What one record of a journal holds: a killed run has recorded a whole block or nothing of it."""


class DrawnBits:
    """The random bits of one batch, from the making of its points to their weighted sum: a cache of one value.

    At most PART_BYTES (directions.py), and gone with the batch. An array that is put here is never written again, so
    neither another thread nor a run inside the function can change it. Copies and pickles are empty.
    """

    __slots__ = ("bits",)

    def __init__(self) -> None:
        self.bits: Bits | None = None

    def __reduce__(self) -> tuple[type[DrawnBits], tuple[()]]:
        return DrawnBits, ()


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """U: the `count` directions of iteration t, one per row, zero outside the `free` coordinates."""

    directions: Directions
    key: Key
    t: int
    count: int
    d: int
    dtype: np.dtype[Any]
    free: Indices | None = None
    max_block_bytes: int = MAX_BLOCK_BYTES
    drawn: DrawnBits = field(default_factory=DrawnBits, init=False, repr=False)

    @property
    def width(self) -> int:
        """The number of coordinates that a direction moves."""
        return self.d if self.free is None else self.free.size

    @property
    def delta(self) -> float:
        """E[<g, u> u] = g / delta on the moved coordinates."""
        return self.directions.delta(self.width)

    def rows(self, start: int, stop: int) -> Array:
        """u_start .. u_{stop-1} on the moved coordinates: (stop - start, width)."""
        block = np.empty((stop - start, self.width), self.dtype)
        self._fill(block, start, 1.0, 0)
        return block

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """Write base + radius u_j for the rows j = start, start + 1, ... into out."""
        if self.free is not None:
            self._add_free(base, radius, start, out)
        elif (signs := self._compiled) is not None and kernels.suited(out, base):
            self._add_signs(signs, base, radius, start, out)
        elif out.nbytes <= PATCH_BYTES:
            self.directions.fill(out, self.key, self.t, start, radius)
            out += base
        else:
            self._add_patches(base, radius, start, out)

    def _add_signs(self, signs: Rademacher, base: Array, radius: float, start: int, out: Array) -> None:
        bits = signs.add(out, base, self.key, self.t, start, radius)
        if bits is not None and len(out) == self.count:
            self.drawn.bits = bits

    def _add_patches(self, base: Array, radius: float, start: int, out: Array) -> None:
        strip = self._strip
        for low, high in self._patches(len(out), strip):
            for first in range(0, self.width, strip):
                part = out[low:high, first : first + strip]
                self._fill(part, start + low, radius, first)
                part += base[first : first + strip]

    def _add_free(self, base: Array, radius: float, start: int, out: Array) -> None:
        out[:] = base
        if self.width:
            home = base[self.free]
            for low, high in self._patches(len(out), self.width):
                moved = np.empty((high - low, self.width), self.dtype)
                if (signs := self._compiled) is not None and kernels.suited(moved, home):
                    self._add_signs(signs, home, radius, start + low, moved)
                else:
                    self._fill(moved, start + low, radius, 0)
                    moved += home
                out[low:high, self.free] = moved

    def combine(self, weights: Values) -> Array:
        """U^T weights, a vector of all d coordinates; added in the type of the points, in the order of the rows."""
        if weights.shape != (self.count,):
            raise ArgumentError(f"expected {self.count} weights, one a direction, got shape {weights.shape}")
        scaled, size = weights.astype(self.dtype), self.count * self.width * self.dtype.itemsize
        whole = 0 < size <= self.max_block_bytes and self.count <= MAX_BLOCK_ROWS
        bits = self.drawn.bits
        if (signs := self._compiled) is not None and whole and (self.width <= STRIP or bits is not None):
            total = np.zeros(self.width, self.dtype)
            signs.accumulate(total, scaled, self.key, self.t, 0, 0, self.width, bits)
            return self.scatter(total)
        if whole and size <= PATCH_BYTES:
            rows = np.empty((self.count, self.width), self.dtype)
            self.directions.fill(rows, self.key, self.t, 0, 1.0)
            return self.scatter(product(scaled, rows))
        total, strip = np.zeros(self.width, self.dtype), self._strip
        spans = blocks(self.count, self.width, self.dtype, self.max_block_bytes)
        if len(spans) == self.count and strip < self.width:
            spans = [(0, self.count)]  # the order of the sum is the same: row after row
        for first in range(0, self.width, strip):
            part = total[first : first + strip]
            for start, stop in spans:
                part += self._product(scaled, start, stop, first, part.size)
        return self.scatter(total)

    def scatter(self, moved: Array) -> Array:
        """The vector of all d coordinates with these values at the moved ones and zero elsewhere."""
        return scattered(moved, self.free, self.d)

    def _product(self, weights: Array, start: int, stop: int, first: int, width: int) -> Array:
        """The sum of weights_j u_j over the rows start .. stop-1, in `width` columns from `first` on."""
        if (signs := self._compiled) is not None:
            total = np.zeros(width, self.dtype)
            if width:
                signs.accumulate(total, weights[start:stop], self.key, self.t, start, first, self.width)
            return total
        sums: Array | None = None
        for low, high in self._patches(stop - start, width):
            # The sum so far is the first row, with weight 1: so the order does not depend on the patches.
            carried = 0 if sums is None else 1
            rows = np.empty((carried + high - low, width), self.dtype)
            self._fill(rows[carried:], start + low, 1.0, first)
            part = weights[start + low : start + high]
            if sums is not None:
                rows[0] = sums
                part = np.concatenate((np.ones(1, self.dtype), part))
            sums = product(part, rows)
        return np.zeros(width, self.dtype) if sums is None else sums

    def _fill(self, out: Array, start: int, scale: float, first: int) -> None:
        if out.shape[1] == self.width:
            if self.width:  # otherwise every coordinate is fixed
                self.directions.fill(out, self.key, self.t, start, scale)
        else:
            cast(Columns, self.directions).fill_columns(out, self.key, self.t, start, scale, first, self.width)

    @property
    def _compiled(self) -> Rademacher | None:
        """The directions, if compiled loops add them without making an array of them."""
        signs = self.directions
        if type(signs) is Rademacher and signs.compiled and self.dtype in kernels.FLOATS:
            return signs  # a subclass may make other rows
        return None

    @property
    def _strip(self) -> int:
        """The columns at a time: all, unless a row exceeds PATCH_BYTES and can be made in parts."""
        large = self.width * self.dtype.itemsize > PATCH_BYTES and isinstance(self.directions, Columns)
        return STRIP if large else max(1, self.width)

    def _patches(self, rows: int, width: int) -> Sequence[tuple[int, int]]:
        """Split rows into parts of at most PATCH_BYTES."""
        return blocks(rows, width, self.dtype, PATCH_BYTES)


class Moves(Protocol):
    """What a segment adds to its base: a Stream, or groups of coordinates."""

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """Write base + radius u_j for the rows j = start, start + 1, ... into out."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """`count` rows base + radius u_j, or `count` copies of base without a stream.

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
    """The points of one iteration, segment after segment; only the configuration decides the blocks."""

    segments: tuple[Segment, ...]
    clip: Box | None = None
    max_block_bytes: int = MAX_BLOCK_BYTES

    count: int = field(init=False, repr=False)
    """The number of points."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", sum([segment.count for segment in self.segments]))

    def __len__(self) -> int:
        return self.count

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
        """Whether the function takes the random draw of each row."""
        return self.segments[0].first_sample is not None

    def blocks(self) -> Sequence[tuple[int, int]]:
        """(start, stop) of each block of rows that the function is called with."""
        return blocks(len(self), self.d, self.dtype, self.max_block_bytes)

    def points(self, start: int = 0, stop: int | None = None, *, out: Array | None = None) -> Array:
        """Rows start .. stop-1, an array (stop - start, d); `out`, if it is given."""
        stop = len(self) if stop is None else stop
        rows = np.empty((stop - start, self.d), self.dtype) if out is None else out
        for segment, low, high, first in self._within(start, stop):
            segment.fill(rows[low - start : high - start], low - first)
        if self.clip is not None:
            np.clip(rows, self.clip.lower, self.clip.upper, out=rows)
        return rows

    def checksum(self) -> int:
        """CRC32 of what the points are made of: equal for equal points, as far as the random draws are the same."""
        crc = 0
        for segment in self.segments:
            crc = zlib.crc32(np.ascontiguousarray(segment.base).view(np.uint8).data, crc)
            crc = zlib.crc32(_MADE_OF.pack(segment.count, segment.radius), crc)
        return crc

    def samples(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """The number of the random draw of each row."""
        stop = len(self) if stop is None else stop
        parts = [
            (segment.first_sample or 0) + np.arange(low - first, high - first, dtype=np.int64)
            for segment, low, high, first in self._within(start, stop)
        ]
        return np.concatenate(parts)

    def _within(self, start: int, stop: int) -> list[tuple[Segment, int, int, int]]:
        """The segments that overlap rows start .. stop-1: (segment, from row, to row, its first row)."""
        met, end = [], 0
        for segment in self.segments:
            first, end = end, end + segment.count
            low, high = max(start, first), min(stop, end)
            if low < high:
                met.append((segment, low, high, first))
        return met


@dataclass(frozen=True, slots=True, eq=False)
class GivenPoints:
    """Points that are given row by row, in place of a Query that makes them."""

    rows: Array

    stochastic = False

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def d(self) -> int:
        """The dimension of the points."""
        return int(self.rows.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the points."""
        return self.rows.dtype

    def blocks(self) -> Sequence[tuple[int, int]]:
        """(start, stop) of each block of rows that the model is called with."""
        return blocks(len(self.rows), self.d, self.dtype, MAX_BLOCK_BYTES)

    def points(self, start: int = 0, stop: int | None = None, *, out: Array | None = None) -> Array:
        """Rows start .. stop-1; `out`, if it is given."""
        rows = self.rows[start:stop]
        if out is None:
            return rows.copy()
        out[:] = rows
        return out

    def checksum(self) -> int:
        """CRC32 of the points."""
        return zlib.crc32(np.ascontiguousarray(self.rows).view(np.uint8).data)

    def samples(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """The number of the random draw of each row: there are none."""
        return np.empty(0, np.int64)


def scattered(moved: Array, free: Indices | None, d: int) -> Array:
    """The vector of d coordinates with these values at the free ones and zero elsewhere."""
    if free is None:
        return moved
    full = np.zeros(d, moved.dtype)
    full[free] = moved
    return full


def blocks(count: int, width: int, dtype: np.dtype[Any], max_bytes: int) -> Sequence[tuple[int, int]]:
    """Split `count` rows into blocks of at most `max_bytes` and MAX_BLOCK_ROWS (at least one row each)."""
    step = min(MAX_BLOCK_ROWS, max_bytes // (width * dtype.itemsize or 1)) or 1
    if 0 < count <= step:
        return ((0, count),)
    return [(start, min(start + step, count)) for start in range(0, count, step)]
