"""Random directions u with E[u u^T] = I / delta, any block of rows on demand.

Row j of iteration t is a function of (key, t, j) alone: a counter-based generator (Philox) starts at a counter
made of them. So nothing depends on how rows are grouped into blocks or who makes them, and nothing is stored.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zomirror.arrays import Array, norm2

Key = tuple[int, int]
"""The two 64-bit words that name a stream."""


class Directions(Protocol):
    """A distribution of directions in d dimensions."""

    def delta(self, d: int) -> float:
        """The factor with E[<g, u> u] = g / delta."""
        ...

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """Write scale * u_j for the rows j = start, start + 1, ... of iteration t into out (rows x d)."""
        ...


@dataclass(frozen=True, slots=True)
class Rademacher:
    """Entries +1 or -1 with equal chance: one random bit each."""

    def delta(self, d: int) -> float:
        """E[u u^T] = I."""
        return 1.0

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """A row takes whole counters (256 bits), so that each row starts on one of its own."""
        rows, d = out.shape
        counters = -(-d // 256)
        words = _words(key, t, start * counters, rows * counters * 4)
        used = -(-d // 8)
        octets = words.astype("<u8", copy=False).view(np.uint8).reshape(rows, -1)[:, :used]
        table = _signs(out.dtype) * out.dtype.type(scale)
        if d % 8 == 0 and out.flags.c_contiguous:
            # mode="clip" writes into out directly, where "raise" would go through a buffer.
            np.take(table, octets, axis=0, out=out.reshape(rows, used, 8), mode="clip")
        else:
            out[:] = np.take(table, octets, axis=0).reshape(rows, used * 8)[:, :d]


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Entries standard normal."""

    def delta(self, d: int) -> float:
        """E[u u^T] = I."""
        return 1.0

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """The normal sampler draws a varying number of words, so each row has a generator of its own."""
        for i, row in enumerate(out):
            _fill_normal(row, key, t, start + i)
        out *= out.dtype.type(scale)


@dataclass(frozen=True, slots=True)
class Sphere:
    """Uniform on the unit sphere."""

    def delta(self, d: int) -> float:
        """E[u u^T] = I / d."""
        return float(d)

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """A normal vector divided by its length."""
        for i, row in enumerate(out):
            _fill_normal(row, key, t, start + i)
            row *= out.dtype.type(scale / norm2(row))


@dataclass(frozen=True, slots=True)
class Coordinate:
    """+e_i or -e_i for a coordinate i drawn uniformly."""

    def delta(self, d: int) -> float:
        """E[u u^T] = I / d."""
        return float(d)

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """One counter a row: its first word names the coordinate, its second the sign."""
        rows, d = out.shape
        words = _words(key, t, start, rows * 4).reshape(rows, 4)
        out[:] = 0
        signs = 1.0 - 2.0 * (words[:, 1] & np.uint64(1)).astype(np.float64)
        # d is far below 2^64, so the remainder is uniform to within d / 2^64.
        out[np.arange(rows), (words[:, 0] % np.uint64(d)).astype(np.intp)] = scale * signs


rademacher, gaussian, sphere, coordinate = Rademacher(), Gaussian(), Sphere(), Coordinate()


def key_of(seed: int) -> Key:
    """The stream that a seed names."""
    low, high = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    return int(low), int(high)


def generator(key: Key, t: int) -> np.random.Generator:
    """A numpy Generator that belongs to iteration t, good until the next draw in this thread."""
    return _generator(key, (0, 0, _DRAWS, t))


def uniform(key: Key, t: int) -> float:
    """One number in [0, 1) that belongs to iteration t, apart from its directions."""
    word = _generator(key, (0, 0, _PICKS, t)).bit_generator.random_raw()
    return float(word >> 11) * 2.0**-53


# The third word of the counter keeps what is drawn for different purposes apart.
_ROWS, _NORMALS, _PICKS, _DRAWS = 0, 1, 2, 3
_thread = threading.local()


def _words(key: Key, t: int, position: int, count: int) -> NDArray[np.uint64]:
    """`count` words of iteration t, from counter `position` on (four words a counter)."""
    words: NDArray[np.uint64] = _generator(key, (position, 0, _ROWS, t)).bit_generator.random_raw(count)
    return words


def _fill_normal(row: Array, key: Key, t: int, j: int) -> None:
    # The row's number stands in the second word of the counter, so it has 2^64 counters of its own.
    _generator(key, (0, j, _NORMALS, t)).standard_normal(row.size, dtype=row.dtype, out=row)


def _generator(key: Key, counter: tuple[int, int, int, int]) -> np.random.Generator:
    """A generator at that place of the stream, good until the next call in this thread.

    Moving one generator costs 2 us where making one costs 19, as much as a row of directions.
    """
    if not hasattr(_thread, "generator"):
        _thread.generator = np.random.Generator(np.random.Philox(0))
        _thread.place = _thread.generator.bit_generator.state
    place = _thread.place
    place["state"]["key"][:] = key
    place["state"]["counter"][:] = counter
    _thread.generator.bit_generator.state = place  # a fresh place: its buffer of words is empty
    generator: np.random.Generator = _thread.generator
    return generator


@lru_cache(maxsize=4)
def _signs(dtype: np.dtype[Any]) -> NDArray[Any]:
    """The eight signs that each byte stands for: bit 0 first, 0 -> +1, 1 -> -1."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    table = (1 - 2 * bits.astype(np.int8)).astype(dtype)
    table.flags.writeable = False
    return table
