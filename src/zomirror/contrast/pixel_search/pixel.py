"""The pixels of an input: which features belong to one, where it lies, and the corners of its range of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zomirror.features.image_axes import image_axes
from zomirror.features.vector import VectorPlace
from zomirror.numerics.arrays import Array, Indices
from zomirror.numerics.random import Draws

Floats = NDArray[np.float64]

NEAR_SIDE = 0.5
"""A single feature goes to its nearer bound too, at random, if that is at least half as far as the other one."""


@dataclass(frozen=True, slots=True, eq=False)
class Pixels:
    """The pixels that may change. Of an image a pixel is all channels of a position, otherwise each feature is one."""

    members: Indices
    """The features of each pixel: (pixels, channels)."""
    place_of: Indices
    """Row and column of each pixel: (pixels, 2); of other inputs the index and 0."""
    lower: Floats
    upper: Floats
    """The bounds of each feature of w: (d,)."""

    @classmethod
    def of(cls, place: VectorPlace) -> Pixels:
        """The pixels of an input with a feature that can change."""
        shape, axes = place.x0.shape, image_axes(place.x0.shape)
        features = np.arange(place.d, dtype=np.intp)
        if axes is None:
            members, where = features[:, None], np.stack([features, np.zeros_like(features)], axis=1)
        else:
            order = (axes.rows, axes.columns) + (() if axes.channels is None else (axes.channels,))
            members = features.reshape(shape).transpose(order).reshape(shape[axes.rows] * shape[axes.columns], -1)
            where = np.stack(np.divmod(np.arange(len(members)), shape[axes.columns]), axis=1).astype(np.intp)
        sides = place.box.lower, place.box.upper
        lower, upper = (np.broadcast_to(side, (place.d,)).astype(np.float64) for side in sides)
        free = (lower < upper)[members].any(axis=1)
        return cls(members[free], where[free], lower, upper)

    @property
    def count(self) -> int:
        """How many pixels there are."""
        return len(self.members)

    def changed(self, w: Array) -> Indices:
        """The pixels with a change."""
        return np.flatnonzero((w[self.members] != 0).any(axis=1))

    def size(self, w: Array) -> int:
        """How many pixels have a change."""
        return int(self.changed(w).size)

    def corners(self, chosen: Indices, draws: Draws) -> Floats:
        """For each chosen pixel a corner of its range other than no change: (chosen, channels)."""
        lower, upper = self.lower[self.members[chosen]], self.upper[self.members[chosen]]
        far = np.where(upper >= -lower, upper, lower)
        near = np.where(upper >= -lower, lower, upper)
        signs = draws.signs(lower.size).reshape(lower.shape)
        if lower.shape[1] == 1:
            return np.where((signs > 0) | (np.abs(near) < NEAR_SIDE * np.abs(far)), far, near)
        drawn = np.where(signs > 0, upper, lower)
        still = (drawn == 0).all(axis=1)
        drawn[still] = far[still]
        return drawn

    def squares(self, side: int, draws: Draws) -> Floats:
        """For every pixel the corner of its square of this side, at random: (pixels, channels)."""
        rows, columns = (self.place_of // side).T
        square = rows * (int(columns.max()) + 1) + columns
        signs = draws.signs((int(square.max()) + 1) * self.members.shape[1]).reshape(-1, self.members.shape[1])
        return np.where(signs[square] > 0, self.upper[self.members], self.lower[self.members])

    def painted(self, w: Array, chosen: Indices, values: Floats) -> Array:
        """A copy of w in which the chosen pixels have these values."""
        copy = w.copy()
        copy[self.members[chosen]] = values.astype(w.dtype)
        return copy

    def cleared(self, w: Array, chosen: Indices) -> Array:
        """A copy of w in which the chosen pixels are not changed."""
        copy = w.copy()
        copy[self.members[chosen]] = 0
        return copy

    def like(self, w: Array, old: Indices, new: Indices) -> Floats:
        """The values of the new pixels at the corners on whose side the old ones are; never no change at all."""
        values = w[self.members[old]]
        lower, upper = self.lower[self.members[new]], self.upper[self.members[new]]
        corner = np.where(values > 0, upper, np.where(values < 0, lower, 0.0))
        still = (corner == 0).all(axis=1)
        corner[still] = np.where(upper >= -lower, upper, lower)[still]
        return corner

    def beside(self, pixel: int, reach: int) -> Indices:
        """The pixels at most `reach` rows and columns away, without itself."""
        far = np.abs(self.place_of - self.place_of[pixel]).max(axis=1)
        return np.flatnonzero((far <= reach) & (far > 0))
