"""A booster of XGBoost, LightGBM or CatBoost (their native interfaces) as a classifier."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.classifiers.protocol import ask, check_batch_rows
from zomirror.classifiers.sklearn import REGRESSOR, is_estimator
from zomirror.classifiers.trees import library_of
from zomirror.errors import ArgumentError, OracleError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CLASSES = ("binary", "multi", "logloss", "cross")
"""How the names of objectives for classes begin; those of other objectives do not."""


def is_booster(model: object) -> bool:
    """Whether the model is a Booster of XGBoost or LightGBM, or a plain CatBoost, not one of their estimators."""
    return library_of(model) is not None and not is_estimator(model) and hasattr(model, "predict")


def xgboost_matrix(booster: Any, rows: Any) -> Any:
    """The rows as XGBoost takes them; an array gets the names that the booster knows."""
    names = booster.feature_names if isinstance(rows, np.ndarray) else None
    return importlib.import_module("xgboost").DMatrix(rows, feature_names=names, enable_categorical=True)


def raw_predictions(model: Any, rows: Any) -> NDArray[Any]:
    """What the trees add up to, for an array or a frame."""
    library = library_of(model)
    if library == "xgboost":
        return np.asarray(model.predict(xgboost_matrix(model, rows), output_margin=True))
    if library == "lightgbm":
        return np.asarray(model.predict(rows, raw_score=True))
    return np.asarray(model.predict(rows, prediction_type="RawFormulaVal"))


@dataclass(frozen=True, slots=True)
class Boosted:
    """Asks a native booster for its raw scores: log-odds for two classes, logits for more.

    Parameters
    ----------
    booster : xgboost.Booster, lightgbm.Booster or catboost.CatBoost
        A model trained for classes.
    batch_rows : int, optional
        The largest number of rows of one call.
    """

    booster: Any
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        check_batch_rows(self.batch_rows)
        if not is_booster(self.booster):
            raise ArgumentError(f"expected a booster, got {type(self.booster).__name__}")
        objective = _objective(self.booster)
        if objective and not objective.lower().startswith(_CLASSES):
            raise ArgumentError(f"expected a model of classes, got one trained for {objective!r}: {REGRESSOR}")

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The columns that it was trained on, if they had names."""
        return booster_names(self.booster)

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of `batch`, flattened to (n, features)."""
        return ask(lambda block: self.scores(block.reshape(len(block), -1)), batch, self.batch_rows)

    def scores(self, rows: Any) -> object:
        """The scores of an array (n, features) or of a frame."""
        try:
            raw = raw_predictions(self.booster, rows)
        except Exception as error:
            name = f"{type(self.booster).__module__.split('.')[0]}.{type(self.booster).__name__}"
            raise OracleError(f"{name}.predict failed on {np.shape(rows)} rows and columns: {error}") from error
        return np.stack([-raw / 2, raw / 2], axis=1) if raw.ndim == 1 else raw


def booster_names(booster: Any) -> tuple[str, ...] | None:
    """The columns that a booster was trained on, if they had names."""
    library = library_of(booster)
    if library == "xgboost":
        names = booster.feature_names
    elif library == "lightgbm":
        names = booster.feature_name()
    else:
        names = booster.feature_names_
    if not names or list(names) in ([f"Column_{i}" for i in range(len(names))], [str(i) for i in range(len(names))]):
        return None  # made up by the library
    return tuple(names)


def _objective(booster: Any) -> str:
    library = library_of(booster)
    if library == "xgboost":
        return str(json.loads(booster.save_config())["learner"]["objective"]["name"])
    if library == "lightgbm":
        lines = (line for line in booster.model_to_string(num_iteration=1).split("\n") if line.startswith("objective="))
        return next(lines, "").partition("=")[2].split(" ")[0]
    return str(booster.get_all_params().get("loss_function", ""))
