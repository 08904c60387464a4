"""An image as an optimisation problem: the box, the start and the loss.

The model sees x0 + x for a pertinent negative x of the image x0, and x alone for a pertinent positive. Vectors are flat
and in the units of the model's input, (pixel / 255 - mean) / std. In the dimension study every pixel is split into
s x s variables and the model sees their averages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.loss import MarginLoss, change_margin, keep_margin
from zomirror.numerics.arrays import Array
from zomirror.paper.settings import Settings

Model = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """min over lower <= x <= upper of loss(margin(x)) + weight (|x|_1 + |x|_2^2 / 2), from `start`."""

    kind: str
    label: int
    base: Array
    """What the model sees at x = 0: x0 for a PN, 0 for a PP."""
    start: Array
    lower: Array
    upper: Array
    weight: float
    loss: MarginLoss
    shape: tuple[int, int, int]
    """Channels, height and width of the model's input."""
    upscale: int = 1

    def seen(self, points: Array) -> Array:
        """The model's inputs at the rows of `points`."""
        s = self.upscale
        channels, height, width = self.shape
        fine = (points + self.base).reshape(-1, channels, height, s, width, s)
        return fine.reshape(-1, *self.shape) if s == 1 else fine.mean(axis=(3, 5), dtype=np.float32)

    def margins(self, model: Model, points: Array) -> Array:
        """Negative where the class is kept (PP) or changed (PN)."""
        return self.margin(model(self.seen(points)))

    def margin(self, scores: Array) -> Array:
        """The margins of scores: negative where the class is kept (PP) or changed (PN)."""
        return keep_margin(scores, self.label) if self.kind == "PP" else change_margin(scores, self.label)


def case(
    settings: Settings,
    data: str,
    kind: str,
    image: NDArray[np.uint8],
    label: int,
    *,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    upscale: int = 1,
    shared: bool = False,
) -> Case:
    """The problem of the PN or PP of an image (height, width) or (height, width, channels) of bytes."""
    pixels = image.astype(np.float32) / np.float32(255)
    planes = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    shape = (planes.shape[0], planes.shape[1], planes.shape[2])
    shift, spread = (np.array(side, np.float32).reshape(-1, 1, 1) for side in (mean, std))
    fine = np.repeat(np.repeat((planes - shift) / spread, upscale, axis=1), upscale, axis=2)
    x0 = fine.ravel()
    weight = settings.weight(data) / (upscale**2 if shared else 1)
    if kind == "PP":
        nothing = np.zeros_like(x0)
        lower, upper = np.minimum(x0, 0), np.maximum(x0, 0)
        return Case(kind, label, nothing, x0, lower, upper, weight, settings.loss, shape, upscale)
    lower, upper, start = (side.ravel() for side in _pn_set(settings, data, fine, shift, spread))
    return Case(kind, label, x0, start, lower, upper, weight, settings.loss, shape, upscale)


def _pn_set(settings: Settings, data: str, x0: Array, mean: Array, std: Array) -> tuple[Array, Array, Array]:
    """Lower bound, upper bound and start of a pertinent negative."""
    if data == "mnist":
        lower = np.zeros_like(x0) if settings.additive else -x0
        upper = 1 - x0
        return lower, upper, (lower + upper) / 2
    if settings.shifted:
        lower, upper = -mean / std - x0, (1 - mean) / std - x0
        return lower, upper, (lower + upper) / 2
    return -1 / std - x0, 1 / std - x0, np.zeros_like(x0)
