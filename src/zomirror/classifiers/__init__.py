"""Adapters that make a Classifier, (n, *shape) -> scores (n, classes), of each kind of model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zomirror.checks import reading
from zomirror.classifiers.boosted import Boosted, is_booster
from zomirror.classifiers.command.program import Command, CommandFunction, command_classifier, command_function
from zomirror.classifiers.frame_model import FrameModel
from zomirror.classifiers.function import Function
from zomirror.classifiers.http.server_model import Http, http_classifier
from zomirror.classifiers.label import LabelOnly
from zomirror.classifiers.onnx import Onnx, onnx_classifier
from zomirror.classifiers.onnx_columns import OnnxColumns
from zomirror.classifiers.protocol import Classifier, Stepped, radius_hint
from zomirror.classifiers.regression import Threshold, above, between
from zomirror.classifiers.sklearn import Sklearn, is_estimator
from zomirror.classifiers.torch import Torch, is_torch_module
from zomirror.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "Boosted",
    "Classifier",
    "Command",
    "CommandFunction",
    "FrameModel",
    "Function",
    "Http",
    "LabelOnly",
    "Onnx",
    "OnnxColumns",
    "Sklearn",
    "Stepped",
    "Threshold",
    "Torch",
    "above",
    "as_classifier",
    "between",
    "command_classifier",
    "command_function",
    "http_classifier",
    "is_model",
    "onnx_classifier",
    "radius_hint",
]

_ADAPTERS = (Boosted, Command, FrameModel, Function, Http, LabelOnly, Onnx, OnnxColumns, Sklearn, Threshold, Torch)


def as_classifier(model: Any, *, batch_rows: int | None = None) -> Classifier:
    """Return `model` as a Classifier.

    Models that need further options have their own functions: `onnx_classifier`, `http_classifier`,
    `command_classifier`, and the class `zomirror.classifiers.Sklearn`.

    Parameters
    ----------
    model : callable, str, Path, torch.nn.Module, scikit-learn estimator, booster or Classifier
        A function (n, *shape) -> (n, classes), the path of an .onnx file, a torch module, a fitted classifier or
        pipeline of scikit-learn, XGBoost, LightGBM or CatBoost, their native boosters, or a Classifier, which is
        returned as it is.
    batch_rows : int, optional
        The largest number of rows of one call of the model.
    """
    with reading("model", model):
        return _adapted(model, batch_rows)


def is_model(given: Any) -> bool:
    """Whether it can only be a model: an adapter, a path, a torch module, an estimator or a booster; no function."""
    return (
        isinstance(given, (*_ADAPTERS, str, Path)) or is_torch_module(given) or is_booster(given) or is_estimator(given)
    )


def _adapted(model: Any, batch_rows: int | None) -> Classifier:
    if isinstance(model, _ADAPTERS):
        if batch_rows not in (None, model.batch_rows):
            raise ArgumentError(
                f"expected batch_rows None or {model.batch_rows}, got {batch_rows}: set it in {model!r}"
            )
        return model
    if isinstance(model, (str, Path)):
        return _from_path(str(model), batch_rows)
    if is_torch_module(model):
        return Torch(model, batch_rows=batch_rows)
    if is_booster(model):
        return Boosted(model, batch_rows=batch_rows)
    if is_estimator(model):
        return Sklearn(model, batch_rows=batch_rows)
    if callable(model):
        return Function(model, batch_rows=batch_rows)
    raise ArgumentTypeError(
        f"expected a model, got {type(model).__name__}: give a function, the path of an "
        ".onnx file, a torch module, a fitted scikit-learn classifier or a booster"
    )


_WEIGHTS = "build the module, load its weights with torch.load(path, weights_only=True) and give the module"
_PICKLE = "opening a pickle runs what is in it; if you trust it, open it yourself and give the estimator"
_REMEDIES = {
    ".pt": _WEIGHTS,
    ".pth": _WEIGHTS,
    ".pkl": _PICKLE,
    ".joblib": _PICKLE,
}


def _from_path(path: str, batch_rows: int | None) -> Classifier:
    """Load an .onnx file; say what to do with any other string."""
    if path.lower().startswith(("http://", "https://")):
        raise ArgumentError("expected the path of a model, got a URL: use http_classifier")
    suffix = Path(path).suffix.lower()
    if suffix != ".onnx":
        remedy = _REMEDIES.get(suffix, "give the path of an .onnx file, or the model itself")
        raise ArgumentError(f"expected the path of an .onnx file, got {path!r}: {remedy}")
    return onnx_classifier(path, batch_rows=batch_rows)
