"""Pixels: all channels of a position together, corners inside the box, never no change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zomirror.contrast.pixel_search.pixel import Pixels
from zomirror.features.vector import Vector, VectorPlace
from zomirror.numerics.random import Draws, key_of

SHAPES = [(3, 5, 6), (5, 6, 3), (5, 6), (1, 5, 6), (7,)]


def placed(shape: tuple[int, ...], **options: Any) -> VectorPlace:
    x0 = np.random.default_rng(0).random(shape)
    x0.flat[:3] = 0.0, 1.0, 0.5
    return Vector(signed=True, **options).place(x0, "PN")


@pytest.mark.parametrize("shape", SHAPES)
def test_every_feature_belongs_to_one_pixel_with_the_other_channels(shape: tuple[int, ...]) -> None:
    pixels = Pixels.of(placed(shape))
    assert sorted(pixels.members.ravel().tolist()) == list(range(int(np.prod(shape))))
    for member, (row, column) in zip(pixels.members, pixels.place_of, strict=True):
        where = np.array(np.unravel_index(member, shape)).T.tolist()
        position = [row] if len(shape) == 1 else [row, column]
        assert all([i for i, n in zip(one, shape, strict=True) if n > 3] == position for one in where)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_corner_is_a_bound_and_changes_the_pixel(shape: tuple[int, ...]) -> None:
    place = placed(shape)
    pixels, draws, start = Pixels.of(place), Draws(key_of(1)), np.zeros(place.d)
    every = np.arange(pixels.count)
    for _ in range(5):
        w = pixels.painted(start, every, pixels.corners(every, draws))
        assert np.isin(place.perturbed(w), [0.0, 1.0]).all()
        assert pixels.size(w) == pixels.count
        assert pixels.size(pixels.cleared(w, every[:2])) == pixels.count - 2
        assert pixels.size(pixels.painted(start, every[:-1], pixels.like(w, every[1:], every[:-1]))) == pixels.count - 1


def test_fixed_pixels_are_none() -> None:
    fixed = np.zeros((3, 5, 6), bool)
    fixed[:, 0] = True
    assert Pixels.of(placed((3, 5, 6), fixed=fixed)).count == 24


def test_neighbours_are_within_reach() -> None:
    pixels = Pixels.of(placed((1, 5, 6)))
    assert pixels.beside(0, 1).tolist() == [1, 6, 7]
    assert pixels.beside(14, 1).tolist() == [7, 8, 9, 13, 15, 19, 20, 21]
