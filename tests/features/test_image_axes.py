"""Which axes of a shape are rows, columns and channels, and what is counted in which unit."""

from __future__ import annotations

import numpy as np
import pytest

from zomirror.features.image_axes import ImageAxes, counted, image_axes, shown_axes


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((28, 28), (0, 1, None)),
        ((1, 28, 28), (1, 2, 0)),
        ((3, 32, 24), (1, 2, 0)),
        ((32, 24, 3), (0, 1, 2)),
        ((32, 24, 4), (0, 1, 2)),
        ((3, 8, 3), (1, 2, 0)),
        ((8,), None),
        ((9, 9, 9), None),
        ((5, 3, 5), None),
        ((2, 3, 8, 8), None),
    ],
)
def test_the_channels_are_the_shorter_end(shape: tuple[int, ...], axes: tuple[int, int, int | None] | None) -> None:
    assert image_axes(shape) == (None if axes is None else ImageAxes(*axes))


@pytest.mark.parametrize(
    ("shape", "names", "shown"),
    [
        ((8, 8), None, True),
        ((3, 40), None, False),
        ((3, 8, 8), None, True),
        ((8, 8, 1), None, True),
        ((8, 8, 4), None, False),
        ((8, 8), ("a",) * 64, False),
    ],
)
def test_grey_and_rgb_without_names_are_shown_as_images(
    shape: tuple[int, ...], names: tuple[str, ...] | None, shown: bool
) -> None:
    assert (shown_axes(shape, names) is not None) == shown


def test_a_pixel_counts_once_whatever_its_channels() -> None:
    x = np.zeros((3, 8, 8))
    x[:, 2, 3] = 1
    assert counted(x, 3) == "1 pixel"
    x[0, 4, 4] = -1
    assert counted(x, 4) == "2 pixels"
    assert counted(x, 4, ["name"] * x.size) == "4 features"
    assert counted(np.array([0.0, 2.0]), 1) == "1 feature"
    assert counted(np.zeros(3), 0) == "0 features"
