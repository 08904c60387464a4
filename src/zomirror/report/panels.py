"""The panels of an explained picture, one pixel a pixel, as PNG inside data: addresses."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast import Explanation
from zomirror.drawing.colour import PALE, ramp_of
from zomirror.drawing.picture import Picture, Pixels, picture_in

LARGEST = 1e9
"""Numbers beyond are no brightness."""


@dataclass(frozen=True, slots=True)
class Panels:
    """The addresses of three pictures: the input, the PP or PN over a pale input, and what the model saw."""

    original: str
    overlay: str
    seen: str


def picture(one: Explanation) -> Picture | None:
    """How the explained input is shown as a picture; None for a table, and for whatever has feature names."""
    # A file may hold anything; what no screen can show is listed instead.
    shown = one.x0.size and all(np.abs(part).max() < LARGEST for part in (one.x0, one.x, one.perturbed))
    return picture_in(one) if shown else None


def panels(one: Explanation, how: Picture) -> Panels:
    """The three pictures, in the colours of plot()."""
    return Panels(_png(_colours(how, one.x0)), _png(_overlay(one, how)), _png(_colours(how, one.perturbed)))


def _colours(how: Picture, x: NDArray[Any]) -> Pixels:
    pixels = how.pixels(x)
    return pixels if pixels.ndim == 3 else np.repeat(how.grey(x)[..., None], 3, axis=2)


def _overlay(one: Explanation, how: Picture) -> Pixels:
    change = np.abs(how.change(one.x)) if one.kind == "PP" else how.change(one.x)
    shown = np.repeat((1 - PALE * (1 - how.grey(one.x0)))[..., None], 3, axis=2)
    for sign in (1, -1):
        reach = float(np.max(sign * change))
        if reach <= 0:
            continue
        ramp = ramp_of(one.kind, 0.0, 1.0) if sign > 0 else ramp_of(one.kind, -1.0, 0.0)[::-1]
        tint, hue = (np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]) for _, colour in ramp)
        where = sign * change > 0
        shown[where] = tint + (hue - tint) * (sign * change[where] / reach)[:, None]
    return shown


def _png(pixels: Pixels) -> str:
    from PIL import Image  # comes with matplotlib; wanted by those who draw

    file = io.BytesIO()
    Image.fromarray((pixels * 255).round().astype(np.uint8)).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
