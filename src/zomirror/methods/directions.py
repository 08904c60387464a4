"""Random directions u with E[u u^T] = I / delta, any block of rows on demand.

Row j of iteration t is a function of (key, t, j) alone: a counter-based generator (Philox) starts at a counter
made of them. So nothing depends on how rows are grouped into blocks or who makes them, and nothing is stored.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array, Indices, norm2

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


@runtime_checkable
class Columns(Protocol):
    """Directions any columns of which can be made alone, so that a row need not fit into the cache."""

    def fill_columns(self, out: Array, key: Key, t: int, start: int, scale: float, first: int, d: int) -> None:
        """Like fill, of the columns first, first + 1, ... of rows of d entries; `first` is a multiple of 256."""
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
        """A row takes whole counters (256 bits), so that each row, and each 256 columns of it, starts on one."""
        rows, width = out.shape
        octets, used = _octets(key, t, start, rows, first, width, d), -(-width // 8)
        table = _signs(out.dtype, scale)
        if width % 8 == 0 and out.flags.c_contiguous:
            # mode="clip" writes into out directly, where "raise" would go through a buffer.
            table.take(octets, axis=0, out=out.reshape(rows, used, 8), mode="clip")
        else:
            out[:] = table.take(octets, axis=0, mode="clip").reshape(rows, used * 8)[:, :width]

    @property
    def compiled(self) -> bool:
        """Whether the two functions below are there, which need no array of signs."""
        return kernels.compiled is not None

    def add(self, out: Array, base: Array, key: Key, t: int, start: int, scale: float) -> None:
        """Write base + scale * u_j for the rows j = start, start + 1, ... into out, which is contiguous."""
        compiled, (rows, d) = kernels.there(), out.shape
        counters, past = -(-d // 256), out.nbytes > CACHE_BYTES and base.nbytes >= LONG_BYTES
        for low, high in _parts(rows, d):
            bits = _room(high - low, counters)
            at = *key, (start + low) * counters, 0, _ROWS, _checked(t)
            compiled.add_signs(out[low:high], base, bits, scale, *at, past, out.itemsize)
            _thread.bits = (key, t, start + low, high - low, 0, d, d), bits

    def accumulate(self, total: Array, weights: Array, key: Key, t: int, start: int, first: int, d: int) -> None:
        """total += sum of weights_j u_j over the rows from `start` on, in their order; columns as of fill_columns."""
        compiled, width = kernels.there(), total.size
        for low, high in _parts(weights.size, width):
            wanted = (key, t, start + low, high - low, first, width, d)
            bits = _taken_bits(*wanted)
            compiled.sum_signs(total, weights[low:high], bits, total.itemsize)
            _thread.bits = wanted, bits


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
    return _generator(key, draws_at(t))


def draws_at(t: int) -> tuple[int, int, int, int]:
    """The counter after which its words come."""
    return 0, 0, _DRAWS, t


def uniform(key: Key, t: int) -> float:
    """One number in [0, 1) that belongs to iteration t, apart from its directions."""
    word = _generator(key, (0, 0, _PICKS, t)).bit_generator.random_raw()
    return float(word >> 11) * 2.0**-53


# The third word of the counter keeps what is drawn for different purposes apart.
_ROWS, _NORMALS, _PICKS, _DRAWS = 0, 1, 2, 3
_thread = threading.local()


def _words(key: Key, t: int, position: int, count: int) -> NDArray[np.uint64]:
    """`count` words of iteration t, from counter `position` on (four words a counter)."""
    if kernels.compiled is None:
        words: NDArray[np.uint64] = _generator(key, (position, 0, _ROWS, t)).bit_generator.random_raw(count)
        return words
    words = np.empty(count, np.uint64)
    kernels.compiled.words(words, *key, position, 0, _ROWS, _checked(t), 1, 0, count)
    return words


def _checked(t: int) -> int:
    """A word of the counter: the compiled loops would take its last 64 bits."""
    if not 0 <= t < 1 << 64:
        raise OverflowError(f"expected t below 2^64, got {t}")
    return t


def _fill_normal(row: Array, key: Key, t: int, j: int) -> None:
    # The row's number stands in the second word of the counter, so it has 2^64 counters of its own.
    _generator(key, (0, j, _NORMALS, t)).standard_normal(row.size, dtype=row.dtype, out=row)


def _generator(key: Key, counter: tuple[int, int, int, int]) -> np.random.Generator:
    """A generator at that place of the stream, good until the next call in this thread.

    Moving one generator costs 2 us where making one costs 19, as much as a row of directions.
    """
    try:
        generator, place = _thread.generator
    except AttributeError:
        generator = np.random.Generator(np.random.Philox(0))
        place = generator.bit_generator.state
        _thread.generator = generator, place
    place["state"]["key"][:] = key
    place["state"]["counter"][:] = counter
    generator.bit_generator.state = place  # a fresh place: its buffer of words is empty
    moved: np.random.Generator = generator
    return moved


def _bits(key: Key, t: int, start: int, rows: int, first: int, width: int, d: int) -> NDArray[np.uint8]:
    """Bytes whose bits are the signs of these rows and columns: 32 for 256 columns, and what lies between the rows."""
    counters, within = -(-d // 256), -(-width // 256)
    at = first // 256 + counters * start
    if kernels.compiled is not None:
        bits = _room(rows, within)
        kernels.compiled.words(bits, *key, at, 0, _ROWS, _checked(t), rows, counters, 4 * within)
        return bits
    if within == counters:
        words = _words(key, t, at, rows * counters * 4)
    else:
        words = np.concatenate([_words(key, t, at + counters * j, within * 4) for j in range(rows)])
    return words.astype("<u8", copy=False).view(np.uint8).reshape(rows, -1)


def _taken_bits(key: Key, t: int, start: int, rows: int, first: int, width: int, d: int) -> NDArray[np.uint8]:
    """`_bits`, or the last ones: a batch that is told right after it was asked needs them a second time.

    Whoever takes them puts them back. Until then nobody else finds them, not even a signal handler in this thread.
    """
    wanted = (key, t, start, rows, first, width, d)
    kept: tuple[object, NDArray[np.uint8]] | None = getattr(_thread, "bits", None)
    if kept is None or kept[0] != wanted:
        return _bits(*wanted)
    _thread.bits = None
    return kept[1]


def _room(rows: int, counters: int) -> NDArray[np.uint8]:
    """Memory for the bits of rows: where the last were, which are then gone, if they had the same shape.

    Rows are an odd number of counters apart: were it a power of two, they would all meet in one corner of the cache.
    """
    shape = rows, 32 * (counters | 1)
    kept: tuple[object, NDArray[np.uint8]] | None = getattr(_thread, "bits", None)
    if kept is None or kept[1].shape != shape:
        return np.empty(shape, np.uint8)
    _thread.bits = None
    return kept[1]


def _octets(key: Key, t: int, start: int, rows: int, first: int, width: int, d: int) -> Indices:
    """The bytes of `_bits` as indices; good until the next call, and kept like them."""
    wanted = (key, t, start, rows, first, width, d)
    kept, memory = getattr(_thread, "octets", (None, _NOTHING))
    shape = rows, -(-width // 8)
    need = shape[0] * shape[1]
    if kept != wanted:
        if not need <= memory.size <= 4 * need + MOST_KEPT:
            memory = np.empty(need, np.intp)
        _thread.octets = (None, memory)
        np.copyto(memory[:need].reshape(shape), _bits(*wanted)[:, : shape[1]])
        _thread.octets = (wanted, memory)
    indices: Indices = memory[:need].reshape(shape)
    return indices


_NOTHING = np.empty(0, np.intp)
MOST_KEPT = 1 << 16
"""Indices that are kept even for a thread that needs few."""
PART_BYTES = 1 << 19
"""Bits that are made at a time, in bytes; at least those of a row."""
CACHE_BYTES = 1 << 25
"""Points beyond this are written past the cache: they would not stay there until somebody reads them."""
LONG_BYTES = 1 << 12
"""If their rows are at least so long: short ones are not worth it."""


def _parts(rows: int, width: int) -> list[tuple[int, int]]:
    step = PART_BYTES // (32 * (-(-width // 256) or 1)) or 1
    return [(0, rows)] if rows <= step else [(low, min(low + step, rows)) for low in range(0, rows, step)]


@lru_cache(maxsize=16)
def _signs(dtype: np.dtype[Any], scale: float) -> NDArray[Any]:
    """The eight signs that each byte stands for, times scale: bit 0 first, 0 -> +1, 1 -> -1."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    table: NDArray[Any] = (1 - 2 * bits.astype(np.int8)).astype(dtype) * dtype.type(scale)
    table.flags.writeable = False
    return table
