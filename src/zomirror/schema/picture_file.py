"""Pictures as arrays of pixels in [0, 1], in the shape that a model takes."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError, DataError

MAX_PIXELS = 1 << 24
FORMATS = ("PNG", "JPEG")


def read_picture(
    source: Path | IO[bytes], shape: tuple[int, ...] | None, name: str, formats: tuple[str, ...] = FORMATS
) -> NDArray[Any]:
    """Pixels in [0, 1]; `shape` decides between grey and colour, and whether channels are first (default) or last.

    A picture for a model of photographs (more than 4,096 pixels) is resized to what the model takes.
    """
    from PIL import Image

    from zomirror.features.default import LARGE

    channels, last = _channels(shape)
    try:
        with Image.open(source, formats=formats) as image:
            if image.width * image.height > MAX_PIXELS:
                raise DataError(f"expected at most {MAX_PIXELS:,} pixels, got {image.width} x {image.height} in {name}")
            grey = channels == 1 or (channels is None and image.mode in ("1", "L", "LA"))
            converted = image.convert("L" if grey else "RGB")
            height, width = _size(shape, last=last) or (image.height, image.width)
            if height * width > LARGE and (height, width) != (image.height, image.width):
                converted = converted.resize((width, height), Image.Resampling.BICUBIC)
            pixels = np.asarray(converted, dtype=np.float32) / np.float32(255)
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"expected a picture, got {name!r}, which cannot be read: {error}") from error
    pixels = pixels[..., None] if grey else pixels
    return shaped(pixels if last else np.moveaxis(pixels, -1, 0), shape, name)


def _size(shape: tuple[int, ...] | None, *, last: bool) -> tuple[int, int] | None:
    """Height and width of a picture of this shape."""
    if shape is None or len(shape) not in (2, 3):
        return None
    return (shape[0], shape[1]) if last or len(shape) == 2 else (shape[1], shape[2])


def _channels(shape: tuple[int, ...] | None) -> tuple[int | None, bool]:
    """The number of channels of a picture of this shape, and whether they are last."""
    if shape is None:
        return None, False
    if len(shape) == 2:
        return 1, False
    if len(shape) == 3 and shape[0] in (1, 3):
        return shape[0], False
    if len(shape) == 3 and shape[2] in (1, 3):
        return shape[2], True
    return None, False


def shaped(x: NDArray[Any], shape: tuple[int, ...] | None, name: str) -> NDArray[Any]:
    """`x` in the shape that the model takes; only flattening and axes of length 1 may differ."""
    if shape is None or x.shape == shape:
        return x
    same = [side for side in x.shape if side != 1] == [side for side in shape if side != 1]
    if not same and (x.size != int(np.prod(shape)) or min(x.ndim, len(shape)) > 1):
        raise ArgumentError(
            f"expected an input of shape {shape}, got {x.shape} from {name}: resize it, or give --shape"
        )
    return x.reshape(shape)
