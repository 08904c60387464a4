"""A regressor as a model of two classes: its prediction is above a value or not, between two values or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.checks import number
from zomirror.classifiers.boosted import booster_names, is_booster, xgboost_matrix
from zomirror.classifiers.protocol import ask, check_batch_rows
from zomirror.classifiers.trees import library_of
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def above(model: Any, value: float, *, names: Sequence[str] | None = None, batch_rows: int | None = None) -> Threshold:
    """A regressor as a model of two classes: class 1 where it predicts more than `value`, class 0 elsewhere.

    Margins are in units of the prediction: `kappa=1_000` asks for a prediction of 1,000 more (or less) than `value`.

    Parameters
    ----------
    model : estimator, booster or function
        Predicts one number for each row: a fitted scikit-learn, XGBoost, LightGBM or CatBoost regressor, or a function
        of a batch or frame.
    value : float
        The value between the two classes.
    names : sequence of str, optional
        The names of the classes; by default "at most 300,000" and "above 300,000".
    batch_rows : int, optional
        The largest number of rows of one call.
    """
    value = number("value", value)
    default = (f"at most {value:,.6g}", f"above {value:,.6g}")
    return Threshold(model, value, None, tuple(names or default), batch_rows)


def between(
    model: Any, low: float, high: float, *, names: Sequence[str] | None = None, batch_rows: int | None = None
) -> Threshold:
    """A regressor as a model of two classes: class 1 where it predicts between `low` and `high`, class 0 elsewhere.

    Parameters
    ----------
    model
        As for above().
    low, high : float
        The ends of the interval.
    names : sequence of str, optional
        The names of the classes; by default "outside 200 to 300" and "200 to 300".
    batch_rows : int, optional
        The largest number of rows of one call.
    """
    low, high = number("low", low), number("high", high)
    if not low < high:
        raise ArgumentError(f"expected low < high, got {low:g} and {high:g}")
    default = (f"outside {low:,.6g} to {high:,.6g}", f"{low:,.6g} to {high:,.6g}")
    return Threshold(model, low, high, tuple(names or default), batch_rows)


@dataclass(frozen=True, slots=True)
class Threshold:
    """What above() and between() return: the scores (-s/2, s/2), s the distance by which the prediction is inside."""

    model: Any
    low: float
    high: float | None
    """None: there is no upper end."""
    class_names: tuple[str, ...]
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        check_batch_rows(self.batch_rows)
        if len(self.class_names) != 2:
            raise ArgumentError(f"expected the names of two classes, got {len(self.class_names)}")
        if not (callable(self.model) or hasattr(self.model, "predict")):
            raise ArgumentTypeError(
                f"expected a regressor, got {type(self.model).__name__}: give a fitted regressor or a function"
            )
        if np.size(getattr(self.model, "classes_", ())):
            raise ArgumentError(
                f"expected a regressor, got the classifier {type(self.model).__name__}: give it as it is"
            )

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The columns of a native booster, if they had names."""
        return booster_names(self.model) if is_booster(self.model) else None

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of `batch`; an estimator gets it flattened to (n, features)."""
        flat = hasattr(self.model, "predict")
        return ask(lambda block: self.scores(block.reshape(len(block), -1) if flat else block), batch, self.batch_rows)

    def scores(self, rows: Any) -> object:
        """The scores of an array or of a frame."""
        try:
            predicted = self._predicted(rows)
        except Exception as error:
            name = getattr(self.model, "__name__", type(self.model).__name__)
            raise OracleError(f"{name} failed on a batch of shape {np.shape(rows)}: {error}") from error
        value = np.asarray(predicted, dtype=np.float64)
        if value.ndim == 2 and value.shape[1] == 1:
            value = value[:, 0]
        if value.ndim != 1:
            raise OracleError(f"expected one number for each row from a regressor, got shape {value.shape}")
        inside = value - self.low if self.high is None else np.minimum(value - self.low, self.high - value)
        return np.stack([-inside / 2, inside / 2], axis=1)

    def _predicted(self, rows: Any) -> Any:
        if is_booster(self.model) and library_of(self.model) == "xgboost":
            return self.model.predict(xgboost_matrix(self.model, rows))
        return self.model.predict(rows) if hasattr(self.model, "predict") else self.model(rows)
