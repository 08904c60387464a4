"""What can be picked in the studio: samples, rows of a table, uploaded and drawn pictures, texts."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import shown
from zomirror.contrast.candidate import Glimpse
from zomirror.drawing.picture import as_uri
from zomirror.errors import ArgumentError
from zomirror.features import Table
from zomirror.features.image_axes import image_axes
from zomirror.features.tabular.frames import row_values
from zomirror.schema.explainer import Explainer
from zomirror.schema.feature_space import like
from zomirror.schema.picture_file import read_picture

WAYS = ("sample", "row", "text", "picture")
"""How a request gives its input."""
INK = 4096
"""Grey pictures of at most this number of pixels can be drawn by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """The samples by name, and for a table all rows."""

    samples: Sequence[tuple[str, Any]] = ()
    table: Table | None = None
    shape: tuple[int, ...] | None = None
    """The shape of a picture or an array."""

    @property
    def pictured(self) -> bool:
        """Whether inputs are shown as pictures."""
        return self.table is None and self.shape is not None and image_axes(self.shape) is not None

    def document(self) -> dict[str, Any]:
        """What the page needs to offer inputs."""
        found: dict[str, Any] = {"samples": [name for name, _ in self.samples]}
        if self.table is not None:
            found["columns"] = [
                {"name": one.name, "kind": one.kind, "categories": one.categories, "ordered": not one.nominal}
                for one in self.table.columns
            ]
        if self.pictured and self.shape is not None:
            axes = image_axes(self.shape)
            assert axes is not None  # noqa: S101 - `pictured` says so
            height, width = self.shape[axes.rows], self.shape[axes.columns]
            grey = axes.channels is None or self.shape[axes.channels] == 1
            found["picture"] = {"height": height, "width": width, "drawn": grey and height * width <= INK}
        return found

    def sample(self, number: int) -> dict[str, Any]:
        """One sample for the page; IndexError if there is none."""
        x = self.samples[number][1]
        if isinstance(x, str):
            return {"text": x}
        if self.table is not None:
            return {"row": row_values(x, self.table.names)}
        return {"picture": png_of(x)}

    def read(self, given: object) -> tuple[str, Any]:
        """The name and the value of the input of a request; ArgumentError if it cannot be read."""
        if not isinstance(given, Mapping) or len(given) != 1 or (way := next(iter(given))) not in WAYS:
            raise ArgumentError(f"expected input with one of {', '.join(WAYS)}, got {shown(given, 60)}")
        value = given[way]
        if way == "sample":
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < len(self.samples):
                raise ArgumentError(f"expected a sample in 0..{len(self.samples) - 1}, got {shown(value, 60)}")
            name, x = self.samples[value]
            return name, x if self.table is None else row_values(x, self.table.names)
        if way == "picture":
            return "picture", self._picture(value)
        return way, value

    def _picture(self, value: object) -> NDArray[Any]:
        try:
            content = base64.b64decode(value if isinstance(value, str) else "-", validate=True)
        except (binascii.Error, ValueError):
            raise ArgumentError("expected a picture as a PNG file in base64, got something else") from None
        return read_picture(io.BytesIO(content), self.shape, "the picture", ("PNG",))

    def raw(self, x: NDArray[Any], explainer: Explainer, glimpse: Glimpse) -> NDArray[Any]:
        """What the model saw, in pixels from 0 to 1."""
        vector = glimpse.place is not None and glimpse.place.space == "vector"
        if vector and explainer.is_normalised and explainer.mean is not None and explainer.std is not None:
            return x * like(explainer.std, x) + like(explainer.mean, x)
        return x


def png_of(x: NDArray[Any]) -> str:
    """A picture with pixels from 0 to 1 as a PNG in a data: URI."""
    from PIL import Image

    axes = image_axes(x.shape)
    if axes is None:
        raise ArgumentError(f"expected a picture, got an array of shape {x.shape}")
    pixels = x if axes.channels is None else np.moveaxis(x, axes.channels, -1)
    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[-1] == 1 else pixels
    file = io.BytesIO()
    Image.fromarray((np.clip(pixels, 0, 1) * 255).round().astype(np.uint8)).save(file, "PNG")
    return as_uri("image/png", file.getvalue())
