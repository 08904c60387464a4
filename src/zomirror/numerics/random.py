"""Random numbers as functions of (key, purpose, t): words of Philox4x64-10 (Salmon et al., 2011), and draws from them.

numpy promises the raw words of its bit generators, but not what its Generator makes of them. So only the words are
numpy's (or those of _kernels.c, which are equal), and everything from a word to a draw is here: no release of numpy
changes the points of a stored run. The draws equal those of numpy 2.4's Generator.

A generator is named by a key and starts after a counter of four 64-bit words. The third word says what the draws are
for and the fourth is the iteration t, so draws for different purposes and iterations never overlap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from itertools import count as count_from

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.normal import LAYERS, normals

Key = tuple[int, int]
"""The two 64-bit words that name a generator."""
Counter = tuple[int, int, int, int]
"""Four 64-bit words, the lowest first; draws begin with the counter that follows."""
ROWS, NORMALS, PICKS, DRAWS, FAR_POINTS = 0, 1, 2, 3, 4
"""Purposes: rows of signs, rows of normal numbers, the random iterate, groups of coordinates, the range search."""


def key_of(seed: int | Sequence[int]) -> Key:
    """The key that a seed names; numpy promises what SeedSequence gives."""
    low, high = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    return int(low), int(high)


def counter_of(t: int, purpose: int, row: int = 0, position: int = 0) -> Counter:
    """The counter of iteration t for a purpose; OverflowError unless 0 <= t < 2^64."""
    if not 0 <= t < 1 << 64:
        raise OverflowError(f"expected 0 <= t < 2^64, got {t}")
    return position, row, purpose, t


def words(key: Key, counter: Counter, count: int) -> NDArray[np.uint64]:
    """The first `count` words after the counter, four for each counter."""
    if kernels.compiled is None:
        philox = np.random.Philox(key=np.array(key, np.uint64), counter=np.array(counter, np.uint64))
        raw: NDArray[np.uint64] = philox.random_raw(count)
        return raw
    raw = np.empty(count, np.uint64)
    kernels.compiled.words(raw, *key, *counter, 1, 0, count)
    return raw


def halves(key: Key, counter: Counter, count: int) -> NDArray[np.uint32]:
    """The first `count` half words after the counter, the lower half of each word first."""
    return words(key, counter, -(-count // 2)).astype("<u8", copy=False).view("<u4")[:count]


def uniform(key: Key, t: int) -> float:
    """One number in [0, 1) for iteration t."""
    return float(_unit(words(key, counter_of(t, PICKS), 1))[0])


def fill_normals(out: Array, key: Key, t: int, start: int) -> None:
    """Write standard normal numbers into the rows of out: those of the rows start, start + 1, ... of iteration t."""
    dtype, layers = out.dtype, LAYERS[out.dtype]
    if kernels.compiled is not None and kernels.suited(out):
        tables = layers.width, layers.core, layers.height
        counter = counter_of(t, NORMALS, start)
        kernels.compiled.normals(out, *tables, *key, *counter, len(out), dtype.itemsize)
        return
    source = words if dtype.itemsize == 8 else halves
    for j, row in enumerate(out, start):
        counter, size = counter_of(t, NORMALS, j), row.size
        for surplus in count_from(1):  # 1 word in 40 is not a number of its own: one round is enough but for bad luck
            made = normals(source(key, counter, size + surplus * (size // 16 + 32)), layers)
            if made.size >= size:
                row[:] = made[:size]
                break


class Draws:
    """The words after one counter, taken in order; every object starts at the first one."""

    def __init__(self, key: Key, counter: Counter = (0, 0, 0, 0)) -> None:
        self._key, self._counter = key, counter
        self._taken = 0
        """Half words."""

    @classmethod
    def of(cls, key: Key, t: int, purpose: int = DRAWS) -> Draws:
        """The draws of iteration t for a purpose."""
        return cls(key, counter_of(t, purpose))

    def permutation(self, n: int) -> NDArray[np.intp]:
        """A random order of 0 .. n-1."""
        return self.sample(n, n)

    def sample(self, n: int, count: int) -> NDArray[np.intp]:
        """`count` different numbers of 0 .. n-1 in random order, n < 2^32: the last steps of Fisher-Yates are left out.

        Entry i = n-1, n-2, ... is swapped with a random entry j <= i. As many low bits of a half word as i has are j,
        and are rejected above i.
        """
        order, i, last = list(range(n)), n - 1, max(n - count, 1)
        mask = (1 << max(i, 0).bit_length()) - 1
        while i >= last:
            taken = 0
            for half in self._next(3 * (i - last) // 2 + 64).tolist():  # the mean is at most 2 ln 2 half words an entry
                taken += 1
                j = half & mask
                if j <= i:
                    order[i], order[j] = order[j], order[i]
                    i -= 1
                    if i < last:
                        break
                    if i <= mask >> 1:
                        mask >>= 1
            self._taken += taken
        return np.array(order[n - count :], np.intp)

    def signs(self, n: int) -> NDArray[np.int8]:
        """Entries +1 or -1: the highest bit of each byte, four bytes a half word."""
        count = -(-n // 4)
        octets = self._next(count).view(np.uint8)[:n]
        self._taken += count
        return np.where(octets & 128, np.int8(-1), np.int8(1))

    def uniform(self, n: int) -> Values:
        """Numbers in [0, 1), multiples of 2^-53: one whole word each."""
        self._taken += self._taken % 2
        made = self._next(2 * n)
        self._taken += 2 * n
        return _unit(made.view("<u8"))

    def _next(self, count: int) -> NDArray[np.uint32]:
        """The next half words, a contiguous array; they are not taken yet."""
        counters, skipped = divmod(self._taken, 8)
        position = self._counter[0] + counters
        return halves(self._key, (position, *self._counter[1:]), skipped + count)[skipped:].copy()


def _unit(raw: NDArray[np.uint64]) -> Values:
    """The highest 53 bits of words as numbers in [0, 1)."""
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


@cache
def fingerprint() -> str:
    """12 hex digits of a few draws of every kind: versions with other digits ask other points in the same run."""
    key, digest = key_of(0), hashlib.sha256()
    for t in (0, 1):
        draws = Draws.of(key, t)
        digest.update(draws.permutation(300).astype("<i8").tobytes())
        digest.update(draws.signs(300).tobytes())
        digest.update(draws.uniform(30).astype("<f8").tobytes())
        for dtype in ("<f4", "<f8"):
            block = np.empty((2, 1000), np.dtype(dtype).newbyteorder("="))
            fill_normals(block, key, t, 5)
            digest.update(block.astype(dtype).tobytes())
        digest.update(words(key, counter_of(t, ROWS, position=7), 30).astype("<u8").tobytes())
        digest.update(np.array(uniform(key, t), "<f8").tobytes())
    return digest.hexdigest()[:12]
