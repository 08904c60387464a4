"""From a feature space by name and rules in plain types to the features of explain()."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError
from zomirror.features import Regions, Table, Vector, Windows, Words
from zomirror.features.image_axes import image_axes
from zomirror.features.place import Features
from zomirror.features.regions import CELLS, SUPERPIXELS, grid, superpixels
from zomirror.schema.parameter import PIXELS, REGIONS, SPACES, TABLE, VECTOR, WINDOWS, WORDS

__all__ = ["SPACES", "features_of", "like", "normalised"]

Numbers = Sequence[float] | None


def features_of(
    space: str,
    rules: Mapping[str, Any],
    *,
    x0: Any = None,
    frame: Any = None,
    mean: Numbers = None,
    std: Numbers = None,
) -> Features:
    """The features of this space with these rules; `frame` are the reference rows of a table.

    `mean` and `std` are those of a model that takes (input - mean) / std; x0 of a vector is normalised already, and the
    rules speak of raw values.
    """
    if space == TABLE:
        return Table(frame, **rules)
    if space == WORDS:
        return Words(**rules)
    if space == WINDOWS:
        return Windows(**rules)
    scaled: dict[str, Any] = {} if mean is None or std is None else {"mean": mean, "std": std}
    if space == REGIONS:
        labels = rules.get("regions", "grid")
        return Regions(_labels(labels, rules["fixed"], x0) if rules.get("fixed") else labels, **scaled)
    rest = {name: value for name, value in rules.items() if name != "regions"}
    if rest.get("fixed"):
        rest["fixed"] = _whole(rest["fixed"], np.shape(x0))
    if scaled:
        rest |= {name: like(values, x0) for name, values in scaled.items()}
        rest["baseline"] = normalised(np.full(np.shape(x0), rest.get("baseline", 0.0), x0.dtype), mean, std)
    return Vector(**rest)


def space_of(rules: Mapping[str, Any], space: str) -> str:
    """The space that the rule `regions` asks for: a picture is explained by regions or by single pixels."""
    if space in (REGIONS, VECTOR) and rules.get("regions") is not None:
        return VECTOR if rules["regions"] == PIXELS else REGIONS
    return space


def _mask(fixed: object, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """A mask of the pixels that must not change."""
    try:
        given: NDArray[Any] = np.asarray(fixed)
    except ValueError:
        given = np.empty(0, object)
    if given.dtype.kind not in "biu" or given.shape != shape or not np.isin(given, (0, 1)).all():
        raise ArgumentError(
            f"expected fixed as a mask of the picture, {shape[0]} rows of {shape[1]} zeros and ones, got an array of "
            f"shape {given.shape}"
        )
    if (given == 1).all():
        raise ArgumentError("expected fixed to leave pixels that may change, got a mask of the whole picture")
    return given.astype(bool)


def _whole(fixed: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A mask of the pixels for all channels."""
    axes = image_axes(shape)
    if axes is None:
        return np.asarray(fixed, dtype=bool)
    mask = _mask(fixed, (shape[axes.rows], shape[axes.columns]))
    return np.broadcast_to(mask if axes.channels is None else np.expand_dims(mask, axes.channels), shape)


def _labels(labels: str, fixed: Any, image: NDArray[Any]) -> NDArray[Any]:
    """The regions of the image, without the pixels that must not change."""
    axes = image_axes(image.shape)
    if axes is None:
        raise ArgumentError(f"expected a picture for regions, got an input of shape {image.shape}")
    shape = image.shape[axes.rows], image.shape[axes.columns]
    whole = grid(shape, CELLS) if labels == "grid" else superpixels(image, axes, SUPERPIXELS)
    return np.where(_mask(fixed, shape), -1, whole)


def normalised(x: NDArray[Any], mean: Numbers, std: Numbers) -> NDArray[Any]:
    """(x - mean) / std in the type of x; x itself without them."""
    if mean is None or std is None:
        return x
    return np.asarray(((x - like(mean, x)) / like(std, x)).astype(x.dtype))


def like(values: Sequence[float], x: NDArray[Any]) -> NDArray[np.float64]:
    """One value for all features, one per channel (first axis, or last), or one per feature, in the shape of x."""
    given = np.array(values, dtype=np.float64)
    if given.size == x.size:
        return given.reshape(x.shape)
    if x.ndim > 1 and given.size == x.shape[0]:
        given = given.reshape(-1, *(1,) * (x.ndim - 1))
    try:
        return np.broadcast_to(given, x.shape)
    except ValueError:
        raise ArgumentError(
            f"expected mean and std with one number, or one for each channel of {x.shape}, got {given.size}"
        ) from None
