"""The split thresholds of each feature of a fitted tree ensemble.

A threshold t separates x <= t from x > t.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

BOOSTERS = ("xgboost", "lightgbm", "catboost")


def thresholds(estimator: object) -> tuple[NDArray[np.intp], NDArray[np.float64]] | None:
    """Return the (feature, threshold) of every split in a fitted ensemble of trees; None for any other model.

    Supported are scikit-learn's trees, forests, gradient and histogram boosting, bagging and voting of them, and the
    models of XGBoost, LightGBM and CatBoost. Splits of categories have no threshold and are left out.
    """
    trees = _trees(estimator)
    if not trees:
        return None
    return np.concatenate([tree[0] for tree in trees]), np.concatenate([tree[1] for tree in trees])


def library_of(model: object) -> str | None:
    """xgboost, lightgbm or catboost if the model, or a class it inherits from, is theirs."""
    modules = {cls.__module__.split(".")[0] for cls in type(model).__mro__}
    return next((name for name in BOOSTERS if name in modules), None)


def _trees(estimator: Any) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Return the splits of each tree; an empty list if a member is not a tree."""
    library = library_of(estimator)
    if library is not None:
        return _BOOSTED[library](estimator)
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


def _xgboost(model: Any) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    gradient = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]
    gradient = gradient.get("gbtree", gradient)  # "dart" wraps "gbtree"
    found = []
    for tree in gradient.get("model", {}).get("trees", []):
        inner = (np.array(tree["left_children"]) != -1) & (np.array(tree["split_type"]) == 0)
        # x < t in float32: the largest float32 that goes left is the one below t.
        below = np.nextafter(np.array(tree["split_conditions"], np.float32)[inner], np.float32(-np.inf))
        found.append((np.array(tree["split_indices"], np.intp)[inner], below.astype(np.float64)))
    return found


def _lightgbm(model: Any) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    booster = model.booster_ if hasattr(model, "booster_") else model
    found, tree = [], {}
    for line in booster.model_to_string().split("\n"):
        name, _, numbers = line.partition("=")
        if name in ("split_feature", "threshold", "decision_type"):
            tree[name] = np.array(numbers.split(), np.float64)
        if name == "decision_type":
            ordered = tree["decision_type"].astype(np.intp) & 1 == 0  # bit 0: the split is of categories
            found.append((tree["split_feature"][ordered].astype(np.intp), tree["threshold"][ordered]))
    return found


def _catboost(model: Any) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    borders = {feature: np.array(values, np.float64) for feature, values in model.get_borders().items()}
    return [(np.full(len(values), feature, np.intp), values) for feature, values in borders.items()]


_BOOSTED = {"xgboost": _xgboost, "lightgbm": _lightgbm, "catboost": _catboost}
