"""A fitted scikit-learn classifier, or a pipeline that ends in one, as a classifier."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zomirror.classifiers.protocol import ask, check_batch_rows
from zomirror.classifiers.trees import library_of, thresholds
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Method = Literal["decision_function", "predict_log_proba", "predict_proba"]
_METHODS: tuple[Method, ...] = ("decision_function", "predict_log_proba", "predict_proba")


REGRESSOR = "zm.above(model, value) and zm.between(model, low, high) make classes of a regressor's predictions"
"""What to do with a model that predicts numbers."""


def is_estimator(model: object) -> bool:
    """Whether `model` is a scikit-learn estimator or has its methods, without importing scikit-learn."""
    names = [(cls.__module__, cls.__name__) for cls in type(model).__mro__]
    return ("sklearn.base", "BaseEstimator") in names or any(
        callable(getattr(model, method, None)) for method in _METHODS
    )


@dataclass(frozen=True, slots=True)
class Sklearn:
    """Calls a fitted `estimator` with inputs flattened to (n, features).

    Parameters
    ----------
    estimator : scikit-learn estimator
        A fitted classifier, or a pipeline or search that ends in one.
    method : {"decision_function", "predict_log_proba", "predict_proba"}, optional
        The scores. By default decision_function, if the estimator has one; else the logarithms of its probabilities;
        but plain probabilities for votes of trees (forests, bagging), which are often 0. The logarithm of 0 becomes
        that of the smallest positive float. The single column s of a binary decision_function becomes the two columns
        (-s, s), so that margins are 2 s.
    batch_rows : int, optional
        The largest number of rows of one call.
    """

    estimator: Any
    method: Method | None = None
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        name = type(self.estimator).__name__
        if not is_estimator(self.estimator):
            raise ArgumentTypeError(
                f"expected estimator to be a scikit-learn classifier, got {name}: give a fitted classifier"
            )
        if is_regressor(self.estimator):
            raise ArgumentError(f"expected a fitted classifier, got the regressor {name}: {REGRESSOR}")
        if not hasattr(self.estimator, "classes_"):
            raise ArgumentError(f"expected a fitted classifier, got {name} without classes_: fit it, on class labels")
        has = [method for method in _METHODS if hasattr(self.estimator, method)]
        if self.method is None:
            last = last_step(self.estimator)
            boosted = library_of(last) is not None
            piecewise = "predict_proba" in has and not boosted and thresholds(last) is not None
            wanted = [one for one in has if not (piecewise and one == "predict_log_proba")]
            if boosted and "predict_proba" in has:  # never 0, and their logarithms are sums over the trees
                wanted = ["predict_log_proba"]
        else:
            wanted = [one for one in has if one == self.method]
        if not wanted:
            asked = self.method or " or ".join(_METHODS)
            raise ArgumentError(
                f"expected an estimator with {asked}, got {name} with {has or 'none'}: wrap it in a function"
            )
        if wanted[0] == "decision_function" and _is_one_vs_one(self.estimator):
            raise ArgumentError(
                f"expected one score per class, got {name} with decision_function_shape='ovo': "
                "set decision_function_shape='ovr'"
            )
        object.__setattr__(self, "method", wanted[0])
        check_batch_rows(self.batch_rows)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes, unless they are 0, 1, 2 and so on."""
        classes = [str(one) for one in np.asarray(self.estimator.classes_).tolist()]
        return None if classes == [str(i) for i in range(len(classes))] else tuple(classes)

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of `batch`, columns in the order of `estimator.classes_`."""
        features = getattr(self.estimator, "n_features_in_", None)
        width = int(np.prod(np.shape(batch)[1:]))
        if features is not None and width != features:
            raise ArgumentError(
                f"expected {features} features per input, got {width} (batch of shape {np.shape(batch)}): "
                f"give inputs with {features} values"
            )
        return ask(self._answer, batch, self.batch_rows)

    def radius_hint(self, x0: NDArray[Any], /) -> NDArray[np.float64] | None:
        """Return the radius that crosses half of the splits of each feature; None unless all members are trees.

        It is the median distance from x0 to the thresholds: at smaller radii the few changed votes are noise. A
        feature without splits gets the median of the others. None for a pipeline, whose thresholds are not in the
        units of x0.
        """
        splits = None if hasattr(self.estimator, "steps") else thresholds(last_step(self.estimator))
        if splits is None or not len(splits[0]):
            return None
        feature, threshold = splits
        flat = np.asarray(x0, dtype=np.float64).ravel()
        order = np.argsort(feature, kind="stable")
        used, starts = np.unique(feature[order], return_index=True)
        distance = np.split(np.abs(threshold - flat[feature])[order], starts[1:])
        radius = np.full(flat.shape, np.nan)
        radius[used] = [np.median(part) for part in distance]
        radius[np.isnan(radius)] = np.median(radius[used])
        floor = np.finfo(np.float32).eps * np.maximum(np.abs(flat), 1.0)  # trees compare in float32
        return np.maximum(radius * 1.001, floor).reshape(np.shape(x0))  # past the split, not onto it

    def _answer(self, block: NDArray[Any]) -> object:
        return self.scores(block.reshape(len(block), -1))

    def scores(self, rows: Any) -> object:
        """The scores of an array (n, features) or of a frame."""
        absent = self.method == "predict_log_proba" and not hasattr(self.estimator, "predict_log_proba")
        method = "predict_proba" if absent else str(self.method)
        try:
            with _unnamed_columns(self.estimator), np.errstate(divide="ignore"):
                scores = getattr(self.estimator, method)(rows)
                scores = np.log(scores) if absent else scores
        except Exception as error:
            raise OracleError(
                f"{type(self.estimator).__name__}.{method} failed on a batch of shape {np.shape(rows)}: {error}"
            ) from error
        if self.method == "decision_function" and np.ndim(scores) == 1:
            return np.stack([-scores, scores], axis=1)
        if self.method == "predict_log_proba" and isinstance(scores, np.ndarray):
            zero = np.log(np.finfo(scores.dtype).smallest_subnormal)
            return np.where(np.isneginf(scores), zero, scores)
        return scores


@contextmanager
def _unnamed_columns(estimator: Any) -> Iterator[None]:
    """Ignore scikit-learn's warning of missing column names: the columns of x0 are in the order of the fit."""
    if not hasattr(estimator, "feature_names_in_"):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def is_regressor(model: object) -> bool:
    """Whether the model, or the end of the pipeline, predicts numbers."""
    names = [cls.__name__ for cls in type(last_step(model)).__mro__]
    return any(name.endswith(("Regressor", "RegressorMixin")) for name in names)


def last_step(estimator: Any) -> Any:
    """Return the classifier at the end of pipelines and searches."""
    while hasattr(estimator, "steps") or hasattr(estimator, "best_estimator_"):
        estimator = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator.best_estimator_
    return estimator


def _is_one_vs_one(estimator: Any) -> bool:
    """Whether the classifier scores pairs of classes instead of classes."""
    last = last_step(estimator)
    return len(estimator.classes_) > 2 and getattr(last, "decision_function_shape", "ovr") == "ovo"
