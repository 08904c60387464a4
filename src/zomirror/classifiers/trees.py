"""The split thresholds of each feature of a fitted tree ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def thresholds(estimator: object) -> tuple[NDArray[np.intp], NDArray[np.float64]] | None:
    """Return the (feature, threshold) of every split in a fitted ensemble of trees; None for any other model.

    Supported are scikit-learn's trees, forests, gradient and histogram boosting, and bagging and voting of them.
    """
    trees = _trees(estimator)
    if not trees:
        return None
    return np.concatenate([tree[0] for tree in trees]), np.concatenate([tree[1] for tree in trees])


def _trees(estimator: Any) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Return the splits of each tree; an empty list if a member is not a tree."""
    if hasattr(estimator, "tree_"):
        tree = estimator.tree_
        inner = tree.children_left != tree.children_right  # a leaf has no children: both are -1
        return [(tree.feature[inner].astype(np.intp), tree.threshold[inner])]
    if hasattr(estimator, "_predictors"):  # histogram boosting keeps one array of nodes per tree
        return [_histogram_splits(tree.nodes) for step in estimator._predictors for tree in step]
    found = []
    for member, features in _members(estimator):
        trees = _trees(member)
        if not trees:
            return []
        found += trees if features is None else [(features[feature], value) for feature, value in trees]
    return found


def _members(ensemble: Any) -> Iterator[tuple[object, NDArray[np.intp] | None]]:
    """Yield the members of an ensemble, each with the columns it sees (None: all)."""
    members = np.ravel(np.asarray(getattr(ensemble, "estimators_", []), dtype=object))
    columns = getattr(ensemble, "estimators_features_", [None] * len(members))
    for member, seen in zip(members, columns, strict=True):
        yield member, None if seen is None else np.asarray(seen, dtype=np.intp)


def _histogram_splits(nodes: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    inner = (nodes["is_leaf"] == 0) & (nodes["is_categorical"] == 0)
    return nodes["feature_idx"][inner].astype(np.intp), nodes["num_threshold"][inner]
