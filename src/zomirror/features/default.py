"""The feature space of an input for which none was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from zomirror.features.image_model import axes_of, is_pillow
from zomirror.features.place import Features
from zomirror.features.regions import Regions
from zomirror.features.vector import Vector
from zomirror.features.words import Words

LARGE = 4096
"""Images with more pixels are explained by regions: nobody reads single pixels of them."""
_SHORT = {item.name for item in fields(Vector)} | {"feature_names", "method"}


def default_features(x0: object, given: Mapping[str, Any], task: str = "explain") -> dict[str, Features]:
    """The keyword `features` for x0, or nothing where every entry is a feature or the call says it otherwise."""
    if any(given.get(name) is not None for name in ("features", *_SHORT)):
        return {}
    if isinstance(x0, str):
        return {"features": Words()}
    if task == "attack":
        return {}  # the nearest adversarial image differs by pixels
    if is_pillow(x0):
        return {"features": Regions()}
    shape = np.shape(x0) if hasattr(x0, "shape") else ()
    if len(shape) == 4 and shape[0] == 1:
        shape = shape[1:]
    axes = axes_of(shape)
    if axes is not None and shape[axes.rows] * shape[axes.columns] > LARGE:
        return {"features": Regions()}
    return {}
