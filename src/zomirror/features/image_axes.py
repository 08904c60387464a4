"""Which axes of an input's shape are the rows, columns and channels of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_CHANNELS = 4
"""Red, green, blue and alpha."""
SMALLEST_SIDE = 4
"""A 2-D input with a shorter side is shown as a table."""


class ImageAxes(NamedTuple):
    """The numbers of the axes; `channels` is None for a shape (h, w)."""

    rows: int
    columns: int
    channels: int | None


def image_axes(shape: tuple[int, ...]) -> ImageAxes | None:
    """The axes of (h, w), (channels, h, w) or (h, w, channels); None for any other shape.

    The channels are the shorter of the first and the last axis, and at most 4.
    """
    if len(shape) == 2:
        return ImageAxes(0, 1, None)
    if len(shape) != 3 or min(shape[0], shape[2]) > MOST_CHANNELS:
        return None
    return ImageAxes(1, 2, 0) if shape[0] <= shape[2] else ImageAxes(0, 1, 2)


def shown_axes(shape: tuple[int, ...], names: Sequence[str] | None = None) -> ImageAxes | None:
    """The axes of an input that is shown as an image, grey or RGB; None for an input that is shown as a table.

    Inputs with feature names are tables.
    """
    axes = image_axes(shape)
    if axes is None or names is not None:
        return None
    if axes.channels is None:
        return axes if min(shape) >= SMALLEST_SIDE else None
    return axes if shape[axes.channels] in (1, 3) else None


def counted(x: NDArray[Any], nnz: int, names: Sequence[str] | None = None) -> str:
    """The size of a change x in words: `6 pixels` with a non-zero channel if it is an image, else its nnz features."""
    axes = shown_axes(x.shape, names)
    if axes is None:
        return f"{nnz} feature{'' if nnz == 1 else 's'}"
    pixels = np.count_nonzero(np.any(x, axis=() if axes.channels is None else axes.channels))
    return f"{pixels} pixel{'' if pixels == 1 else 's'}"
