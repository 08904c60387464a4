"""The three images of an explained image, as PNG files inside data: URIs."""

from __future__ import annotations

import io
from dataclasses import dataclass

from zomirror.contrast import Explanation
from zomirror.drawing.picture import RGB, Picture, as_uri


@dataclass(frozen=True, slots=True)
class Panels:
    """The URIs of the input, of the PP or PN over a pale input, and of what the model saw; one pixel per pixel."""

    original: str
    overlay: str
    seen: str


def panels(one: Explanation, picture: Picture) -> Panels:
    """The three images, in the colours of `plot`."""
    return Panels(_png(picture.image(one.x0)), _png(picture.overlay(one)), _png(picture.image(one.perturbed)))


def _png(image: RGB) -> str:
    from PIL import Image  # a dependency of matplotlib, only needed by those who draw

    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", optimize=True)
    return as_uri("image/png", file.getvalue())
