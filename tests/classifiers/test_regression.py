"""Regressors as models of two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.classifiers import as_classifier
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

X = np.random.default_rng(0).normal(size=(50, 3))


def value(batch: Any) -> Any:
    return batch.reshape(len(batch), -1) @ np.array([1.0, 2.0, 3.0]) * 100


def test_above_is_the_sign_of_the_difference_and_margins_are_in_units_of_the_prediction():
    scores = zm.above(value, 30)(X)
    np.testing.assert_array_equal(scores.argmax(axis=1), value(X) > 30)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], value(X) - 30)
    assert zm.above(value, 300_000).class_names == ("at most 300,000", "above 300,000")
    assert zm.above(value, 3, names=("low", "high")).class_names == ("low", "high")


def test_between_is_inside_the_interval():
    model = zm.between(value, -50, 80)
    np.testing.assert_array_equal(model(X).argmax(axis=1), (value(X) > -50) & (value(X) < 80))
    assert model.class_names == ("outside -50 to 80", "-50 to 80")
    assert as_classifier(model) is model


def test_a_column_of_predictions_is_a_prediction():
    np.testing.assert_array_equal(zm.above(lambda b: value(b)[:, None], 3)(X), zm.above(value, 3)(X))


def fitted(library: str) -> Any:
    y = value(X)
    if library == "sklearn":
        from sklearn.linear_model import LinearRegression

        return LinearRegression().fit(X, y)
    if library == "xgboost":
        import xgboost

        return xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(X, y)
    if library == "xgboost native":
        import xgboost

        return xgboost.train({"nthread": 1}, xgboost.DMatrix(X, y), 3)
    if library == "lightgbm":
        import lightgbm

        return lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1).fit(X, y)
    import catboost

    return catboost.CatBoostRegressor(iterations=3, verbose=0, thread_count=1, allow_writing_files=False).fit(X, y)


@pytest.mark.parametrize("library", ["sklearn", "xgboost", "xgboost native", "lightgbm", "catboost"])
def test_regressors_are_refused_by_name_and_taken_by_above(library):
    model = fitted(library)
    with pytest.raises(ArgumentError, match=r"zm\.above\(model, value\) and zm\.between"):
        zm.explain(model, X[0], bounds=(-9, 9))
    scores = zm.above(model, 0.0, batch_rows=20)(X.reshape(50, 3, 1))
    assert ((scores[:, 1] > 0) == (value(X) > 0)).mean() > 0.6


def test_an_answer_about_a_regressor():
    e = zm.explain(zm.above(value, 700), np.zeros(3), bounds=(-9, 9), budget=500, kappa=0.0)
    assert e.valid
    assert value(e.perturbed[None])[0] > 700
    assert e.name_of(e.contrast_label) == "above 700"


def test_wrong_arguments_are_refused():
    with pytest.raises(ArgumentError, match="low < high"):
        zm.between(value, 2, 1)
    with pytest.raises(ArgumentError, match="two classes, got 1"):
        zm.above(value, 2, names=["x"])
    with pytest.raises(ArgumentTypeError, match="expected a regressor, got int"):
        zm.above(3, 2)
    with pytest.raises(ArgumentTypeError, match="value to be a number"):
        zm.above(value, "x")  # type: ignore[arg-type]
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(ArgumentError, match="got the classifier LogisticRegression"):
        zm.above(LogisticRegression().fit(X, X[:, 0] > 0), 2)
    with pytest.raises(OracleError, match="one number for each row"):
        zm.above(lambda b: b, 2)(X)
    with pytest.raises(OracleError, match="<lambda> failed"):
        zm.above(lambda b: 1 / 0, 2)(X)
