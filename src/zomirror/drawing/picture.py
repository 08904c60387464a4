"""An input as a picture: which axes are rows, columns and channels, and from its numbers to pixels in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from zomirror.contrast.explanation import Explanation

Pixels = NDArray[np.float64]

SMALLEST_SIDE = 4
"""A 2-D input with a shorter side is a table, not a picture."""


@dataclass(frozen=True, slots=True)
class Picture:
    """How inputs of one shape are shown: where the channels are, the normalisation to undo, black and white."""

    channels: int | None
    """The axis of the channels; None for (h, w)."""
    mean: Pixels
    std: Pixels
    low: float
    high: float
    paper: bool
    """Ink on paper: the low end is the background, and is shown white."""

    def pixels(self, x: NDArray[Any]) -> Pixels:
        """`x` as (h, w) or (h, w, 3) in [0, 1]."""
        shown = self._channels_last(x * self.std + self.mean)
        return np.clip((shown - self.low) / (self.high - self.low), 0.0, 1.0)

    def grey(self, x: NDArray[Any]) -> Pixels:
        """`x` as brightness (h, w) in [0, 1], 1 being white; colours lose their hue."""
        shown = self.pixels(x)
        if shown.ndim == 3:
            shown = shown @ np.array([0.299, 0.587, 0.114])  # how bright red, green and blue look
        return 1.0 - shown if self.paper else shown

    def change(self, x: NDArray[Any]) -> Pixels:
        """A PP or PN as one signed number a pixel: the size of the largest channel, the sign of their sum."""
        change = self._channels_last(x * self.std)
        if change.ndim == 3:
            size, total = np.abs(change).max(axis=2), change.sum(axis=2)
            change = np.where(total < 0, -size, size)
        return np.asarray(change, dtype=np.float64)

    def _channels_last(self, x: Pixels) -> Pixels:
        if self.channels is None:
            return x
        moved = np.moveaxis(x, self.channels, -1)
        return moved[..., 0] if moved.shape[-1] == 1 else moved


def picture_of(x0: NDArray[Any], perturbed: NDArray[Any], settings: Mapping[str, Any]) -> Picture | None:
    """How to show x0, or None when it is no picture: (h, w), (1, h, w), (3, h, w), (h, w, 1) and (h, w, 3) are."""
    shape = x0.shape
    axes = _channels(shape)
    if axes is None:
        return None
    channels = axes[0] if axes else None
    mean, std = (_like(shape, settings.get(name), otherwise) for name, otherwise in (("mean", 0.0), ("std", 1.0)))
    raw = np.stack([x0, perturbed]).astype(np.float64) * std + mean
    low, high = _range(raw)
    grey = shape[channels] == 1 if channels is not None else True
    paper = bool(grey and np.median(raw[0]) <= low + 0.1 * (high - low))
    return Picture(channels, mean, std, low, high, paper)


def picture_in(one: Explanation) -> Picture | None:
    """How to show what was explained, or None: a table, or whatever has feature names, is no picture."""
    return None if one.feature_names is not None else picture_of(one.x0, one.perturbed, one.settings)


def counted(one: Explanation) -> str:
    """`6 pixels` of a picture, in whichever of their colours they take part; `6 features` of anything else."""
    channels = None if one.feature_names is not None else _channels(one.x0.shape)
    count, what = (one.nnz, "feature") if channels is None else (np.count_nonzero(one.x.any(axis=channels)), "pixel")
    return f"{count} {what}{'' if count == 1 else 's'}"


def _channels(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axis of the channels, if there is one; None when this is no shape of a picture."""
    if len(shape) == 2 and min(shape) >= SMALLEST_SIDE:
        return ()
    return next(((axis,) for axis in (0, 2) if len(shape) == 3 and shape[axis] in (1, 3)), None)


def _like(shape: tuple[int, ...], value: Any, otherwise: float) -> Pixels:
    """A number, one per channel, or all: as something that broadcasts over the shape; `otherwise` when it does not."""
    try:
        given = np.asarray(otherwise if value is None else value, dtype=np.float64)
        if given.ndim == 1 and given.size == shape[0]:
            given = given.reshape(-1, *(1,) * (len(shape) - 1))
        return given.reshape(shape) if given.size == np.prod(shape) else np.broadcast_to(given, shape)
    except (TypeError, ValueError):  # read from a file, where anything may stand
        return np.full(shape, otherwise)


def _range(raw: Pixels) -> tuple[float, float]:
    """What is black and what is white: [0, 1] or [0, 255] where the numbers fit, else their own range."""
    low, high = float(raw.min()), float(raw.max())
    slack = 1e-3
    for top in (1.0, 255.0):
        if low >= -slack * top and high <= top * (1 + slack):
            return 0.0, top
    return (low, high) if low < high else (low, low + 1.0)
