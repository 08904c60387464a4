"""Images as they come, and the model that takes them in its own layout and type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import real_array
from zomirror.classifiers import Classifier, Onnx, Torch, as_classifier
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.image_axes import MOST_CHANNELS, ImageAxes

LAYOUTS = ("HWC", "CHW")
SMALLEST = 8
"""Pixels of the shorter side of an image."""
BATCH_ROWS = 32
"""Images that are converted at a time."""


def is_pillow(x0: object) -> bool:
    """Whether x0 is a PIL image, without importing Pillow."""
    return any((cls.__module__, cls.__name__) == ("PIL.Image", "Image") for cls in type(x0).__mro__)


def as_image(x0: object) -> tuple[NDArray[Any], ImageAxes]:
    """x0 as an array of at least 8 x 8 pixels, and its axes.

    A PIL image becomes (height, width) or (height, width, 3) of uint8; a batch of one loses its first axis.
    """
    if is_pillow(x0):
        picture: Any = x0
        x0 = np.asarray(picture if picture.mode == "L" else picture.convert("RGB"))
    array = real_array("x0", x0)
    if array.ndim == 4 and array.shape[0] == 1:
        array = array[0]
    axes = axes_of(array.shape)
    if axes is None:
        raise ArgumentError(
            f"expected x0 to be an image of height x width, or with 1 to 4 channels first or last, got {array.shape}: "
            "give one image, or use zm.Groups(labels) for other arrays"
        )
    if not np.isfinite(array).all():
        raise ArgumentError("expected a finite image, got one with NaN or infinite pixels")
    if array.dtype not in (np.uint8, np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    array = np.array(array, order="C", copy=True)
    array.flags.writeable = False
    return array, axes


def axes_of(shape: tuple[int, ...]) -> ImageAxes | None:
    """The axes of an image of at least 8 x 8 pixels; None for any other shape."""
    if len(shape) == 2 and min(shape) >= SMALLEST:
        return ImageAxes(0, 1, None)
    if len(shape) != 3:
        return None
    if shape[2] <= MOST_CHANNELS and min(shape[:2]) >= SMALLEST:
        return ImageAxes(0, 1, 2)
    if shape[0] <= MOST_CHANNELS and min(shape[1:]) >= SMALLEST:
        return ImageAxes(1, 2, 0)
    return None


def described(array: NDArray[Any], axes: ImageAxes) -> str:
    """What an image looks like, as in `height x width x channel (224 x 224 x 3) in 0..255`."""
    words = {axes.rows: "height", axes.columns: "width"} | ({} if axes.channels is None else {axes.channels: "channel"})
    order = " x ".join(words[i] for i in range(array.ndim))
    return f"{order} ({' x '.join(map(str, array.shape))}) in {_range(array)}"


def _range(array: NDArray[Any]) -> str:
    low, high = float(array.min()), float(array.max())
    if low >= 0 and high <= 1:
        return "0..1"
    return "0..255" if low >= 0 and high <= 255 else f"{low:.3g}..{high:.3g}"


@dataclass(frozen=True, slots=True)
class ImageModel:
    """A classifier that gets images in its own layout and type.

    Pixels in 0..255 of type uint8 are divided by 255 for a model that takes floats (ONNX, torch), or with mean and
    std, after which they are (pixel - mean) / std.
    """

    inner: Classifier
    layout: str | None = None
    """HWC, CHW, or None: as the images are."""
    channels: int | None = None
    """How many the model takes; None: as many as the images have."""
    size: tuple[int, int] | None = None
    """Height and width that the model takes, if it says so."""
    floats: bool = False
    """Whether the model takes floats."""
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    batch_rows: int | None = BATCH_ROWS

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes, if the model knows them."""
        return getattr(self.inner, "class_names", None)

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """The scores of every image."""
        axes = axes_of(batch.shape[1:])
        if axes is None:
            raise ArgumentError(f"expected a batch of images, got shape {batch.shape}")
        if self.size is not None and self.size != (batch.shape[1 + axes.rows], batch.shape[1 + axes.columns]):
            height, width = self.size
            raise ArgumentError(
                f"expected an image of {height} x {width} pixels, as the model says, got one that looks like "
                f"{described(batch[0], axes)}: resize it, or give Regions(size=({height}, {width}))"
            )
        rows = BATCH_ROWS if self.batch_rows is None else self.batch_rows
        found = [self.inner(self._converted(batch[i : i + rows], axes)) for i in range(0, len(batch), rows)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _converted(self, batch: NDArray[Any], axes: ImageAxes) -> NDArray[Any]:
        if self.layout is not None:
            batch = batch[..., None] if axes.channels is None else np.moveaxis(batch, axes.channels + 1, -1)
            if self.channels == 3 and batch.shape[-1] == 1:
                batch = np.repeat(batch, 3, axis=-1)
        if batch.dtype == np.uint8 and (self.floats or self.mean is not None):
            batch = (batch / np.float32(255)).astype(np.float32)
        if self.mean is not None and self.std is not None:
            side = -1 if self.layout is not None or axes.channels is None else axes.channels + 1
            shape = [1] * batch.ndim
            if len(self.mean) > 1 or len(self.std) > 1:
                shape[side] = -1
            mean, std = (np.asarray(one, batch.dtype).reshape(shape) for one in (self.mean, self.std))
            batch = (batch - mean) / std
        if self.layout == "CHW":
            batch = np.moveaxis(batch, -1, 1)
        return np.ascontiguousarray(batch)


def image_model(model: Any, layout: str | None, mean: Any, std: Any) -> ImageModel:
    """The model with its layout, size and type, asked of an ONNX file or a torch module."""
    inner = as_classifier(model)
    if isinstance(inner, ImageModel):
        return inner
    taken: Sequence[int | None] | None = None
    if isinstance(inner, Onnx):
        taken = inner.input_shape
    found, channels, size = _asked(taken)
    if isinstance(inner, Torch):
        found = "CHW"
    if (mean is None) != (std is None):
        raise ArgumentError("expected both mean and std, or neither: the model gets (pixel - mean) / std")
    return ImageModel(
        inner,
        layout or found,
        channels,
        size,
        isinstance(inner, Onnx | Torch),
        numbers("mean", mean),
        numbers("std", std),
        getattr(inner, "batch_rows", None) or BATCH_ROWS,
    )


def _asked(shape: Sequence[int | None] | None) -> tuple[str | None, int | None, tuple[int, int] | None]:
    """Layout, channels and size from the shape of one input of a model."""
    if shape is None or len(shape) != 3:
        return None, None, None
    few = [side is not None and side <= MOST_CHANNELS for side in shape]
    if few[0] == few[2]:  # it does not say, or it says both
        return None, None, None
    layout = "CHW" if few[0] else "HWC"
    height, width = (shape[1], shape[2]) if few[0] else (shape[0], shape[1])
    size = None if height is None or width is None else (height, width)
    return layout, shape[0] if few[0] else shape[2], size


def numbers(name: str, given: Any) -> tuple[float, ...] | None:
    """One number, or one for each channel, as a tuple."""
    if given is None:
        return None
    try:
        return tuple(float(one) for one in np.atleast_1d(np.asarray(given, dtype=np.float64)))
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"expected {name} to be one number, or one for each channel, got {given!r}") from None


def resized(array: NDArray[Any], axes: ImageAxes, size: tuple[int, int]) -> NDArray[Any]:
    """The image in another size, by cubic interpolation of Pillow."""
    from zomirror.features.optional import need

    images = need("PIL.Image", "pillow", "images")
    if (array.shape[axes.rows], array.shape[axes.columns]) == size:
        return array
    last = array[..., None] if axes.channels is None else np.moveaxis(array, axes.channels, -1)
    kept, planes = last.dtype, []
    for k in range(last.shape[-1]):
        plane = images.fromarray(last[..., k].astype(np.float32), mode="F").resize(
            size[::-1], images.Resampling.BICUBIC, reducing_gap=3.0
        )
        planes.append(np.asarray(plane))
    out = np.stack(planes, axis=-1)
    out = np.clip(out, float(array.min()), float(array.max()))
    out = (out.round() if kept.kind in "iu" else out).astype(kept)
    return out[..., 0] if axes.channels is None else np.ascontiguousarray(np.moveaxis(out, -1, axes.channels))
