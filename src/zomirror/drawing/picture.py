"""An input as an image: from its numbers to pixels in [0, 1], and the PP or PN drawn over it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.drawing.colour import PALE, ramp_of
from zomirror.drawing.marked_parts import in_parts, is_series, overlay, pixels_of
from zomirror.drawing.subject import Drawable
from zomirror.features.image_axes import shown_axes

Pixels = NDArray[np.float64]
RGB = NDArray[np.uint8]

LARGEST = 1e9
"""Inputs with larger numbers are shown as tables."""


@dataclass(frozen=True, slots=True)
class Picture:
    """How inputs of one shape become pixels: the axis of the channels, the normalisation to undo, black and white."""

    channels: int | None
    """The axis of the channels; None for (h, w)."""
    mean: Pixels
    std: Pixels
    low: float
    high: float
    inverted: bool
    """Whether `low` is shown white: a grey image with a dark background, such as a digit, is ink on paper."""

    def pixels(self, x: NDArray[Any]) -> Pixels:
        """`x` as (h, w) or (h, w, 3) in [0, 1]."""
        shown = self._channels_last(x * self.std + self.mean)
        return np.clip((shown - self.low) / (self.high - self.low), 0.0, 1.0)

    def grey(self, x: NDArray[Any]) -> Pixels:
        """`x` as brightness (h, w) in [0, 1], 1 being white."""
        shown = self.pixels(x)
        if shown.ndim == 3:
            shown = shown @ np.array([0.299, 0.587, 0.114])  # luma of ITU-R BT.601
        return 1.0 - shown if self.inverted else shown

    def change(self, x: NDArray[Any]) -> Pixels:
        """A PP or PN as one number per pixel: the size of its largest channel, with the sign of the channels' sum."""
        change = self._channels_last(x * self.std)
        if change.ndim == 3:
            size, total = np.abs(change).max(axis=2), change.sum(axis=2)
            change = np.where(total < 0, -size, size)
        return np.asarray(change, dtype=np.float64)

    def image(self, x: NDArray[Any]) -> RGB:
        """`x` as it is shown, (h, w, 3)."""
        pixels = self.pixels(x)
        return _bytes(pixels if pixels.ndim == 3 else _in_colour(self.grey(x)))

    def overlay(self, one: Drawable) -> RGB:
        """The PP or PN in its hue over a pale input, (h, w, 3); parts in their own colours, with outlines."""
        if in_parts(one):
            return _bytes(overlay(one, self.image(one.x0) / 255))
        shown, change = _in_colour(1 - PALE * (1 - self.grey(one.x0))), drawn_change(one, self)
        for sign, ramp in ((1, ramp_of(one.kind, 0.0, 1.0)), (-1, ramp_of(one.kind, -1.0, 0.0)[::-1])):
            where = sign * change > 0
            if where.any():
                tint, hue = (np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]) for _, colour in ramp)
                share = np.abs(change[where]) / np.abs(change[where]).max()
                shown[where] = tint + (hue - tint) * share[:, None]
        return _bytes(shown)

    def _channels_last(self, x: Pixels) -> Pixels:
        if self.channels is None:
            return x
        moved = np.moveaxis(x, self.channels, -1)
        return moved[..., 0] if moved.shape[-1] == 1 else moved


def drawn_change(one: Drawable, picture: Picture) -> Pixels:
    """The change whose size is drawn: a PP has no sign, since what is present may lie above or below the baseline."""
    change = pixels_of(one).astype(np.float64) if in_parts(one) else picture.change(one.x)
    return np.abs(change) if one.kind == "PP" else change


def picture_of(x0: NDArray[Any], perturbed: NDArray[Any], settings: Mapping[str, Any]) -> Picture | None:
    """How to show x0, or None for a table: (h, w), (1, h, w), (3, h, w), (h, w, 1) and (h, w, 3) are images."""
    shape = x0.shape
    axes = shown_axes(shape)
    if axes is None:
        return None
    mean, std = (_like(shape, settings.get(name), default) for name, default in (("mean", 0.0), ("std", 1.0)))
    raw = np.stack([x0, perturbed]).astype(np.float64) * std + mean
    low, high = _range(raw)
    grey = axes.channels is None or shape[axes.channels] == 1
    inverted = bool(grey and np.median(raw[0]) <= low + 0.1 * (high - low))
    return Picture(axes.channels, mean, std, low, high, inverted)


def picture_in(one: Drawable) -> Picture | None:
    """How to show the explained input as an image; None for a table and for any input with feature names."""
    if not isinstance(one.x0, np.ndarray) or one.space == "table" or is_series(one):
        return None
    # An explanation read from a file may hold any numbers.
    visible = one.x0.size and all(np.abs(part).max() < LARGEST for part in (one.x0, one.x, one.perturbed))
    return (
        picture_of(one.x0, one.perturbed, one.settings)
        if visible and (in_parts(one) or one.feature_names is None)
        else None
    )


def as_uri(kind: str, content: bytes) -> str:
    """A file of a kind such as image/png as a data: URI, for a page that loads nothing."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _in_colour(grey: Pixels) -> Pixels:
    return np.repeat(grey[..., None], 3, axis=2)


def _bytes(pixels: Pixels) -> RGB:
    return (pixels * 255).round().astype(np.uint8)


def _like(shape: tuple[int, ...], value: Any, default: float) -> Pixels:
    """One number, one per channel or one per feature, broadcast to the shape; `default` where that fails."""
    try:
        given = np.asarray(default if value is None else value, dtype=np.float64)
        if given.ndim == 1 and given.size == shape[0]:
            given = given.reshape(-1, *(1,) * (len(shape) - 1))
        return given.reshape(shape) if given.size == np.prod(shape) else np.broadcast_to(given, shape)
    except (TypeError, ValueError):  # settings read from a file may hold anything
        return np.full(shape, default)


def _range(raw: Pixels) -> tuple[float, float]:
    """The numbers shown black and white: [0, 1] or [0, 255] where all numbers fit, else their own range."""
    low, high = float(raw.min()), float(raw.max())
    slack = 1e-3
    for top in (1.0, 255.0):
        if low >= -slack * top and high <= top * (1 + slack):
            return 0.0, top
    return (low, high) if low < high else (low, low + 1.0)
