"""Estimate the slopes of the scores over a picture from coarse to fine, with far fewer queries than features.

All features of a cell are moved together. The cells with the largest slopes are halved and queried again, down to
single features. Each feature takes the slope of the smallest cell around it that was queried.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.search.local_refinement import RIVALS, STEP, LinearScores, Pull, bounded, steps_within
from zomirror.errors import ArgumentError
from zomirror.features.image_axes import image_axes
from zomirror.numerics.arrays import Array, Indices
from zomirror.problem import Box

Vector = NDArray[np.float64]
Asking = Generator[list[Array], Vector, Vector]
"""Yields points, is sent their scores (n, classes), returns slopes (classes, d)."""

SIDES = tuple(2**i for i in range(12))
SLACKS = (0.0, 0.03, 0.2)
"""At each level, points are aimed this far beyond the boundary, as fractions of the margin at x0."""
GUESSES = RIVALS * len(SLACKS)
HALVES = 4
"""Cells that one cell is split into: two along each axis."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Square cells of a picture, separate for each channel."""

    shape: tuple[int, ...]
    side: int

    @property
    def cell_of(self) -> Indices:
        """The index of each feature's cell, flat."""
        axes = image_axes(self.shape)
        if axes is None:
            raise ArgumentError(f"expected the shape of an image, got {self.shape}")
        rows, columns, channels = axes
        places = np.indices(self.shape)
        across, other = -(-self.shape[columns] // self.side), 1 if channels is None else self.shape[channels]
        cell = (places[rows] // self.side) * across + places[columns] // self.side
        return np.asarray((cell if channels is None else cell * other + places[channels]).ravel(), np.intp)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return int(self.cell_of.max()) + 1

    @property
    def channels(self) -> int:
        """How many channels the picture has."""
        axes = image_axes(self.shape)
        return 1 if axes is None or axes.channels is None else self.shape[axes.channels]


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether an input is an image of at least 8 x 8 pixels: (h, w), (channels, h, w) or (h, w, channels)."""
    axes = image_axes(shape)
    return axes is not None and min(shape[axes.rows], shape[axes.columns]) >= 8


def look(
    origin: Candidate,
    scores: Vector,
    shape: tuple[int, ...],
    goal: Goal,
    box: Box,
    pull: Pull,
    *,
    first: int,
    each: int,
    allowed: int,
) -> Asking:
    """Slopes of the scores at the origin: single-feature differences where they are largest, cell averages elsewhere.

    The coarsest level queries about `first` cells, each finer one about `each`. The minimisers of each level's linear
    model are queried too: they are not sparse, but often the first adversarial points. With few `allowed` queries the
    cells are larger, fewer are halved, and the halving may stop before single features.
    """
    w, scores = origin.w, bounded(scores)
    sides = [side for side in SIDES if side <= max(shape)]
    most, left = min(first, allowed), allowed
    level = next((i for i, side in enumerate(sides) if Grid(shape, side).count <= most), len(sides) - 1)
    lower, upper = (np.broadcast_to(side, w.shape).astype(np.float64) for side in (box.lower, box.upper))
    steps = steps_within(w, lower, upper, size=STEP)
    slopes = np.zeros((scores.size, w.size))
    distance = abs(float(pull.margins(scores[None])[0]) + goal.kappa)
    cell = Grid(shape, sides[level]).cell_of
    chosen = np.unique(cell[steps != 0])[:most]
    while chosen.size:
        members = [np.flatnonzero((cell == c) & (steps != 0)) for c in chosen]
        reply = bounded((yield [_moved(w, steps, where) for where in members]))
        for where, row in zip(members, reply, strict=True):
            total = float(np.abs(steps[where]).sum())
            slopes[:, where] = ((row - scores) / total)[:, None] * np.sign(steps[where])
        left -= len(members) + GUESSES
        if level == 0 or left < HALVES:
            break
        free = np.flatnonzero(steps)
        sides_ = (lower[free], upper[free])
        model = LinearScores(w.astype(np.float64), free, scores, slopes[:, free])
        regions = model.regions(goal, sides_, pull, 1.0)[:RIVALS]
        slacks = [np.full(len(regions), slack * distance) for slack in SLACKS]
        guesses = [guess for further in slacks for guess in model.answers(regions, further)]
        yield [box.project(guess.astype(w.dtype)) for guess in guesses]
        promise = np.array([np.abs(slopes[:, m[0]] - slopes[pull.own, m[0]]).max() for m in members])
        best = chosen[np.argsort(-promise, kind="stable")[: max(HALVES, min(each, left)) // HALVES]]
        level -= 1
        inside = np.isin(cell, best) & (steps != 0)
        cell = Grid(shape, sides[level]).cell_of
        chosen = np.unique(cell[inside])
    return slopes


def _moved(w: Array, steps: Vector, where: Indices) -> Array:
    point = w.copy()
    point[where] += steps[where].astype(w.dtype)
    return point
