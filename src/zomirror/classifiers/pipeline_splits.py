"""The split thresholds of a model in units of the columns that a pipeline is given.

Scalers, imputers and selections are undone; what comes out of any other transformer (an encoder, a projection) has no
threshold of its own in a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.classifiers.trees import thresholds

Splits = tuple[NDArray[np.float64] | None, ...]
"""For each column its thresholds, sorted; None if it has none."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """column = factor * feature + shift, for one feature that a transformer puts out."""

    column: int
    factor: float = 1.0
    shift: float = 0.0


_Origins = list[_Origin | None]


def column_splits(model: Any, columns: int) -> Splits | None:
    """The thresholds of a model with this many columns; None if it is not made of trees, or cannot be read."""
    origins: _Origins | None = [_Origin(j) for j in range(columns)]
    while hasattr(model, "steps") or hasattr(model, "best_estimator_"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
            continue
        for _, step in model.steps[:-1]:
            origins = _through(step, origins)
            if origins is None:
                return None
        model = model.steps[-1][1]
    splits = thresholds(model)
    if splits is None or origins is None:
        return None
    found: list[list[NDArray[np.float64]]] = [[] for _ in range(columns)]
    for feature in np.unique(splits[0]).tolist():
        origin = origins[feature] if feature < len(origins) else None
        if origin is not None:
            found[origin.column].append(splits[1][splits[0] == feature] * origin.factor + origin.shift)
    return tuple(np.unique(np.concatenate(parts)) if parts else None for parts in found)


def _through(step: Any, given: _Origins | None) -> _Origins | None:
    """The origins of what a fitted transformer puts out; None if their number is not known."""
    if given is None:
        return None
    if step is None or step == "passthrough":
        return given
    if hasattr(step, "steps"):
        for _, inner in step.steps:
            given = _through(inner, given)
        return given
    name = type(step).__name__
    if hasattr(step, "output_indices_"):
        return _branches(step, given)
    if name in _SCALERS and _count(step, given) == len(given):
        factor, shift = _SCALERS[name](step)
        pairs = zip(given, _each(factor, 1.0, given), _each(shift, 0.0, given), strict=True)
        return [one and _Origin(one.column, one.factor * f, one.factor * s + one.shift) for one, f, s in pairs]
    if name == "FunctionTransformer" and step.func is None:
        return given
    if name in ("SimpleImputer", "KNNImputer", "IterativeImputer") and _count(step, given) == len(given):
        return given
    if hasattr(step, "get_support"):
        kept = np.asarray(step.get_support())
        return [one for one, keep in zip(given, kept, strict=True) if keep] if kept.size == len(given) else None
    count = _count(step, given)
    return None if count is None else [None] * count


def _branches(step: Any, given: _Origins) -> _Origins | None:
    """The origins of what a ColumnTransformer puts out."""
    columns = getattr(step, "_transformer_to_input_indices", {})
    total = max((part.stop for part in step.output_indices_.values()), default=0)
    found: _Origins = [None] * total
    for name, transformer, _ in step.transformers_:
        part = step.output_indices_.get(name, slice(0, 0))
        if part.start == part.stop or name not in columns:
            continue
        out = _through(transformer, [given[j] for j in columns[name]])
        if out is not None and len(out) == part.stop - part.start:
            found[part] = out
    return found


def _count(step: Any, given: _Origins) -> int | None:
    """The number of features that a transformer puts out."""
    try:
        names = getattr(step, "feature_names_in_", [f"x{i}" for i in range(len(given))])
        return len(step.get_feature_names_out(names))
    except Exception:  # noqa: BLE001 - a transformer of the user's
        return None


def _each(values: Any, default: float, given: _Origins) -> list[float]:
    if values is None:
        return [default] * len(given)
    return [float(one) for one in np.broadcast_to(values, len(given))]


def _standard(step: Any) -> tuple[Any, Any]:
    return step.scale_, step.mean_ if step.with_mean else None


def _robust(step: Any) -> tuple[Any, Any]:
    return step.scale_, step.center_


def _min_max(step: Any) -> tuple[Any, Any]:
    return 1.0 / step.scale_, -step.min_ / step.scale_


def _max_abs(step: Any) -> tuple[Any, Any]:
    return step.scale_, None


_SCALERS = {
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
}
"""For each scaler the factor and shift that undo it."""
