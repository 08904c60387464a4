"""Directions as another implementation drew them, so that a comparison with it is not one of seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from zomirror.errors import ArgumentError
from zomirror.methods.descent import MirrorDescent
from zomirror.methods.directions import Rademacher
from zomirror.methods.estimator import TwoPoint
from zomirror.numerics.arrays import Array
from zomirror.numerics.random import Key


@dataclass(frozen=True, slots=True)
class Replayed:
    """Signs 2 b - 1 with b = numpy.random.default_rng(seed).integers(0, 2, (count, d)), one iteration after the other.

    Each integer is the highest bit of half a word of PCG64, the lower half first. numpy promises these words, and the
    generator can be moved to any of them, so any row can be made alone.
    """

    seed: int
    count: int
    """Directions of an iteration."""

    def delta(self, d: int) -> float:
        """E[u u^T] = I."""
        return 1.0

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        """The rows from `start` on of iteration t; the key has no say."""
        rows, d = out.shape
        words, half = divmod((t * self.count + start) * d, 2)
        raw = np.random.PCG64(self.seed).advance(words).random_raw(-(-(half + rows * d) // 2))
        halves = raw.astype("<u8", copy=False).view("<u4")[half : half + rows * d].reshape(rows, d)
        out[:] = out.dtype.type(scale) * (2 * (halves >> 31).astype(np.int8) - 1)


def replayed(method: MirrorDescent, seed: int) -> MirrorDescent:
    """The method with its signs drawn so."""
    estimator = method.estimator
    if not (isinstance(estimator, TwoPoint) and isinstance(estimator.directions, Rademacher)):
        raise ArgumentError(f"expected a method with two-point differences and random signs, got {estimator}")
    return replace(method, estimator=replace(estimator, directions=Replayed(seed, estimator.batch_size)))
