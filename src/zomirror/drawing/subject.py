"""What a figure needs to know of an explanation, and which of its features and classes are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Drawable(Protocol):
    """An input, the PP or PN found for it, and the scores before and after, as `zomirror.Explanation` defines them."""

    # ruff: noqa: D102
    @property
    def kind(self) -> str: ...
    @property
    def valid(self) -> bool: ...
    @property
    def label(self) -> int: ...
    @property
    def contrast_label(self) -> int: ...
    @property
    def x(self) -> NDArray[Any]: ...
    @property
    def x0(self) -> Any: ...
    @property
    def perturbed(self) -> Any: ...
    @property
    def scale(self) -> NDArray[Any]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def scores_before(self) -> NDArray[np.float64]: ...
    @property
    def scores_after(self) -> NDArray[np.float64]: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def feature_names(self) -> tuple[str, ...] | None: ...
    @property
    def space(self) -> str: ...
    @property
    def labels(self) -> NDArray[Any] | None: ...
    @property
    def changes(self) -> Sequence[tuple[str, Any, Any]]: ...
    @property
    def input_key(self) -> tuple[object, ...]: ...
    def name_of(self, label: int) -> str: ...
    def words(self) -> str: ...


def largest_features(one: Drawable) -> NDArray[np.intp]:
    """The non-zero features of x, the largest in units of its range first."""
    size = np.abs(one.x / one.scale).ravel()
    order = np.argsort(-size, kind="stable")
    shown: NDArray[np.intp] = order[size[order] != 0]
    return shown


def feature_name(one: Drawable, i: int) -> str:
    """The name of a feature, or `feature 3`."""
    return one.feature_names[i] if one.feature_names else f"feature {i}"


def shown_classes(ones: Sequence[Drawable], most: int) -> list[int]:
    """The classes of one input to show, in order: all; of many, its labels and the classes with the highest scores."""
    count = ones[0].scores_before.size
    if count <= most:
        return list(range(count))
    columns = [ones[0].scores_before, *(one.scores_after for one in ones)]
    height = np.max([np.nan_to_num(column, nan=-np.inf) for column in columns if column.size == count], axis=0)
    height[[i for one in ones for i in (one.label, one.contrast_label) if i >= 0]] = np.inf
    return sorted(np.argsort(-height, kind="stable")[:most].tolist())
