"""Distributions of random directions u with E[u u^T] = I / delta.

Row j of iteration t is a function of (key, t, j) alone (numerics/random.py), so any block of rows can be made by
anybody, in any order, and no row is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array, norm2
from zomirror.numerics.random import ROWS, Key, counter_of, fill_normals, words

Bits = NDArray[np.uint8]
"""Rows of random bits, eight columns a byte; a row may be longer than its columns."""
PART_BYTES = 1 << 19
"""Memory for random bits at a time; at least one row of them."""
CACHE_BYTES = 1 << 25
"""Larger blocks of points are written past the cache, which they would leave before anybody reads them."""
LONG_BYTES = 1 << 12
"""The shortest rows that are written past the cache."""


class Directions(Protocol):
    """A distribution of directions in d dimensions."""

    def delta(self, d: int) -> float:
        """The factor with E[<g, u> u] = g / delta."""
        ...

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """Write scale * u_j for the rows j = start, start + 1, ... of iteration t into out (rows x d)."""
        ...


@runtime_checkable
class Columns(Protocol):
    """Directions whose rows can be made in parts, for rows that do not fit into the cache."""

    def fill_columns(self, out: Array, key: Key, t: int, start: int, scale: float, first: int, d: int) -> None:
        """Like fill, for the columns from `first` on of rows of d entries; `first` is a multiple of 256."""
        ...


@dataclass(frozen=True, slots=True)
class Rademacher:
    """Entries +1 or -1 with equal chance: one random bit each."""

    def delta(self, d: int) -> float:
        """E[u u^T] = I."""
        return 1.0

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """All columns."""
        self.fill_columns(out, key, t, start, scale, 0, out.shape[1])

    def fill_columns(self, out: Array, key: Key, t: int, start: int, scale: float, first: int, d: int) -> None:
        """Column c is bit c % 256 of counter c // 256 of its row; every row begins with a new counter."""
        rows, width = out.shape
        used = -(-width // 8)
        octets = _bits(key, t, start, rows, first, width, d)[:, :used]
        table = _signs(out.dtype, scale)
        if width % 8 == 0 and out.flags.c_contiguous:
            # mode="clip" writes into out directly, where "raise" would go through a buffer.
            table.take(octets, axis=0, out=out.reshape(rows, used, 8), mode="clip")
        else:
            out[:] = table.take(octets, axis=0, mode="clip").reshape(rows, used * 8)[:, :width]

    @property
    def compiled(self) -> bool:
        """Whether the compiled `add` and `accumulate` can be called, which make no array of signs."""
        return kernels.compiled is not None

    def add(self, out: Array, base: Array, key: Key, t: int, start: int, scale: float) -> Bits | None:
        """Write base + scale * u_j for the rows j = start, start + 1, ... into out, which is contiguous.

        Returns the bits of all these rows, for `accumulate`; None where they are more than PART_BYTES.
        """
        compiled, (rows, d) = kernels.there(), out.shape
        counters, past = -(-d // 256), out.nbytes > CACHE_BYTES and base.nbytes >= LONG_BYTES
        parts, bits = _parts(rows, d), None
        for low, high in parts:
            at = counter_of(t, ROWS, position=(start + low) * counters)
            bits = _bit_rows(high - low, counters)
            compiled.add_signs(out[low:high], base, bits, scale, *key, *at, past, out.itemsize)
        return bits if len(parts) == 1 and bits is not None and bits.nbytes <= PART_BYTES else None

    def accumulate(
        self, total: Array, weights: Array, key: Key, t: int, start: int, first: int, d: int, bits: Bits | None = None
    ) -> None:
        """Add sum_j weights_j u_j over the rows from `start` on to total, row by row; columns as in fill_columns.

        `bits` are those of exactly these rows, if `add` has returned them: they are then not drawn again.
        """
        compiled, width = kernels.there(), total.size
        if bits is not None:
            compiled.sum_signs(total, weights, bits, total.itemsize)
            return
        for low, high in _parts(weights.size, width):
            bits = _bits(key, t, start + low, high - low, first, width, d)
            compiled.sum_signs(total, weights[low:high], bits, total.itemsize)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Entries standard normal."""

    def delta(self, d: int) -> float:
        """E[u u^T] = I."""
        return 1.0

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """Standard normal numbers times scale."""
        fill_normals(out, key, t, start)
        out *= out.dtype.type(scale)


@dataclass(frozen=True, slots=True)
class Sphere:
    """Uniform on the unit sphere."""

    def delta(self, d: int) -> float:
        """E[u u^T] = I / d."""
        return float(d)

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """A normal vector divided by its length."""
        fill_normals(out, key, t, start)
        for row in out:
            row *= out.dtype.type(scale / norm2(row))


@dataclass(frozen=True, slots=True)
class Coordinate:
    """+e_i or -e_i for a coordinate i drawn uniformly."""

    def delta(self, d: int) -> float:
        """E[u u^T] = I / d."""
        return float(d)

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """One counter (four words) a row: the first word names the coordinate, the second the sign."""
        rows, d = out.shape
        drawn = words(key, counter_of(t, ROWS, position=start), rows * 4).reshape(rows, 4)
        out[:] = 0
        signs = 1.0 - 2.0 * (drawn[:, 1] & np.uint64(1)).astype(np.float64)
        # d is far below 2^64, so the remainder is uniform to within d / 2^64.
        out[np.arange(rows), (drawn[:, 0] % np.uint64(d)).astype(np.intp)] = scale * signs


rademacher, gaussian, sphere, coordinate = Rademacher(), Gaussian(), Sphere(), Coordinate()


def _bits(key: Key, t: int, start: int, rows: int, first: int, width: int, d: int) -> Bits:
    """The bits whose signs are those of these rows and columns: 0 for +1, 1 for -1."""
    counters, within = -(-d // 256), -(-width // 256)
    at = counter_of(t, ROWS, position=first // 256 + counters * start)
    if kernels.compiled is not None:
        bits = _bit_rows(rows, within)
        kernels.compiled.words(bits, *key, *at, rows, counters, 4 * within)
        return bits
    if within == counters:
        made = words(key, at, rows * counters * 4)
    else:
        made = np.concatenate([words(key, (at[0] + counters * j, *at[1:]), within * 4) for j in range(rows)])
    return made.astype("<u8", copy=False).view(np.uint8).reshape(rows, -1)


def _bit_rows(rows: int, counters: int) -> Bits:
    """Memory for the bits of rows, which are an odd number of counters apart.

    At a distance of a power of two, all rows would compete for the same lines of the cache.
    """
    return np.empty((rows, 32 * (counters | 1)), np.uint8)


def _parts(rows: int, width: int) -> list[tuple[int, int]]:
    """Split rows so that the bits of a part take at most PART_BYTES."""
    step = PART_BYTES // (32 * (-(-width // 256) or 1)) or 1
    return [(0, rows)] if rows <= step else [(low, min(low + step, rows)) for low in range(0, rows, step)]


@lru_cache(maxsize=16)
def _signs(dtype: np.dtype[Any], scale: float) -> NDArray[Any]:
    """The eight signs that each byte stands for, times scale: bit 0 first, 0 -> +1, 1 -> -1.

    A cache of at most 16 read-only tables (16 KB each in float64), one for each radius in use.
    """
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    table: NDArray[Any] = (1 - 2 * bits.astype(np.int8)).astype(dtype) * dtype.type(scale)
    table.flags.writeable = False
    return table
