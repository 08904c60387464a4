"""Any model as a classifier of rows of codes, which are decoded into the frames that the model was trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.classifiers.boosted import Boosted
from zomirror.classifiers.function import Function
from zomirror.classifiers.onnx_columns import OnnxColumns
from zomirror.classifiers.pipeline_splits import Splits, column_splits
from zomirror.classifiers.protocol import Classifier, ask
from zomirror.classifiers.regression import Threshold
from zomirror.classifiers.sklearn import Sklearn
from zomirror.classifiers.trees import library_of
from zomirror.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FRAME_MODELS = (Boosted, Function, OnnxColumns, Sklearn, Threshold)
"""Adapters of models that can be given a frame; all others take arrays of numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class FrameModel:
    """Scores rows of codes: the model gets them as a frame.

    Parameters
    ----------
    model : Classifier
        What as_classifier() made of the user's model.
    build : function
        Makes a frame of codes (n, columns).
    names : sequence of str
        The columns of the frame.
    texts : sequence of str
        Those of them that hold no numbers.
    """

    model: Classifier
    build: Callable[[NDArray[np.float64]], Any]
    names: tuple[str, ...]
    texts: tuple[str, ...] = ()
    splits: Splits | None = field(init=False, repr=False)
    """The thresholds of each column, if the model is made of trees."""
    _plain: bool = field(init=False, repr=False)
    """Whether the model takes arrays of numbers."""

    def __post_init__(self) -> None:
        model = self.model
        inner = _inner(model)
        if not isinstance(model, Function):
            self._refuse_other_columns(model, inner)
        plain = not isinstance(model, FRAME_MODELS) or (
            isinstance(model, Sklearn | Threshold)
            and hasattr(inner, "n_features_in_")
            and library_of(inner) is None
            and not hasattr(inner, "feature_names_in_")
        )
        if plain and self.texts:
            raise ArgumentError(
                f"expected a model of frames, got {type(inner).__name__}, which takes arrays of numbers, and the texts "
                f"of {', '.join(self.texts[:5])}: give a function of a frame, or a pipeline that was fitted on frames"
            )
        object.__setattr__(self, "_plain", plain)
        object.__setattr__(self, "splits", None if isinstance(model, Function) else _splits(inner, len(self.names)))

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes, if the model knows them."""
        return getattr(self.model, "class_names", None)

    @property
    def batch_rows(self) -> int | None:
        """The largest number of rows of one call."""
        return getattr(self.model, "batch_rows", None)

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of the rows of codes."""
        if not isinstance(self.model, FRAME_MODELS):
            return self.model(_numbers(self.build(np.asarray(batch, np.float64))))
        return ask(self._answer, batch, self.batch_rows)

    def _answer(self, block: NDArray[Any]) -> object:
        rows = self.build(block)
        if self._plain:
            rows = _numbers(rows)
        return self.model.predict(rows) if isinstance(self.model, Function) else self.model.scores(rows)  # type: ignore[attr-defined]

    def _refuse_other_columns(self, model: Any, inner: Any) -> None:
        """ArgumentError unless the model was fitted on the columns of the table, in the same order."""
        wanted = _wanted(model, inner)
        count = getattr(inner, "n_features_in_", None) if wanted is None else None
        if count is not None and count != len(self.names):
            raise ArgumentError(
                f"expected a table with the {count} columns that the model was fitted on, got {len(self.names)}"
            )
        same = wanted == self.names or (isinstance(model, OnnxColumns) and sorted(wanted or ()) == sorted(self.names))
        if wanted is None or same:
            return
        lacking = [name for name in wanted if name not in self.names]
        extra = [name for name in self.names if name not in wanted]
        said = [f"the table lacks {', '.join(lacking[:5])}"] * bool(lacking)
        said += [f"the model does not know {', '.join(extra[:5])}"] * bool(extra)
        raise ArgumentError(
            "expected a table with the columns that the model was fitted on, in their order "
            f"({', '.join(wanted[:8])}{', ...' if len(wanted) > 8 else ''}): "
            + (" and ".join(said) or "reorder the columns of the reference rows")
        )


def _inner(model: Any) -> Any:
    """The user's model."""
    for name in ("estimator", "booster", "model"):
        if isinstance(model, FRAME_MODELS) and not isinstance(model, OnnxColumns) and hasattr(model, name):
            return getattr(model, name)
    return model


def _wanted(model: Any, inner: Any) -> tuple[str, ...] | None:
    """The columns that the model was fitted on; None if they had no names."""
    names = getattr(model, "feature_names", None)
    if names is None:
        names = getattr(inner, "feature_names_in_", None)
    if names is None and library_of(inner) == "catboost":
        names = inner.feature_names_
    if names is None or list(names) in _made_up(len(names)):
        return None
    return tuple(str(name) for name in names)


def _made_up(count: int) -> list[list[str]]:
    """Names that the libraries give to columns without names."""
    return [[f"{start}{i}" for i in range(count)] for start in ("Column_", "")]


def _splits(inner: Any, columns: int) -> Splits | None:
    try:
        return column_splits(inner, columns)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None  # a model that is like one of ours, but not the same inside: the search does without


def _numbers(rows: Any) -> NDArray[Any]:
    """A table without texts as an array (n, columns) of floats."""
    if isinstance(rows, np.ndarray):
        return rows
    if isinstance(rows, dict):
        return np.column_stack([np.asarray(column, np.float64) for column in rows.values()])
    if hasattr(rows, "column_names"):  # pyarrow
        return np.column_stack([column.to_numpy() for column in rows.columns]).astype(np.float64)
    return np.asarray(rows.to_numpy(), dtype=np.float64)
