"""Native boosters: the scores are their raw predictions, for frames and for arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zomirror.classifiers import Boosted, Sklearn, as_classifier
from zomirror.classifiers.boosted import is_booster
from zomirror.errors import ArgumentError, OracleError

loan: Any = None
NATIVE = ("xgboost native", "lightgbm native", "catboost native")


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    global loan
    from tests.support import loan_table as loan


@pytest.mark.parametrize("name", NATIVE)
def test_the_largest_score_is_the_class_and_margins_are_log_odds(name):
    model, frame = loan.boosted(name)
    adapter = as_classifier(model)
    assert isinstance(adapter, Boosted)
    assert is_booster(model)
    scores = np.asarray(adapter.scores(frame))
    refused = loan.verdict(loan.loans()) == "refused"
    assert ((scores[:, 1] > scores[:, 0]) == refused).mean() > 0.9
    if name != "xgboost native":
        odds = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
        known = (
            model.predict(frame) if "lightgbm" in name else model.predict(frame, prediction_type="Probability")[:, 1]
        )
        np.testing.assert_allclose(odds, known, rtol=1e-6)
    assert adapter.feature_names == tuple(frame.columns)


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost"])
def test_estimators_give_logarithms_of_probabilities(name):
    model, frame = loan.boosted(name)
    adapter = as_classifier(model)
    assert isinstance(adapter, Sklearn)
    assert adapter.method == "predict_log_proba"
    odds = np.exp(np.asarray(adapter.scores(frame)))
    np.testing.assert_allclose(odds, model.predict_proba(frame), rtol=1e-5, atol=1e-30)
    assert adapter.class_names == (None if name == "xgboost" else ("granted", "refused"))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_arrays_are_flattened_and_several_classes_have_a_score_each(library):
    rng = np.random.default_rng(0)
    X = rng.random((120, 4))
    y = (X[:, 0] * 3).astype(int)
    if library == "xgboost":
        import xgboost

        model: Any = xgboost.train(
            {"objective": "multi:softprob", "num_class": 3, "nthread": 1}, xgboost.DMatrix(X, y), 5
        )
    elif library == "lightgbm":
        import lightgbm

        given = {"objective": "multiclass", "num_class": 3, "verbose": -1, "num_threads": 1}
        model = lightgbm.train(given, lightgbm.Dataset(X, y), 5)
    else:
        import catboost

        given = {"iterations": 5, "loss_function": "MultiClass", "verbose": 0, "allow_writing_files": False}
        model = catboost.CatBoost(given).fit(X, y)
    adapter = Boosted(model, batch_rows=50)
    scores = adapter(X.reshape(-1, 2, 2))
    assert scores.shape == (120, 3)
    assert (scores.argmax(axis=1) == y).mean() > 0.9
    assert adapter.feature_names is None
    np.testing.assert_array_equal(adapter(X[:7]), scores[:7])
    with pytest.raises(OracleError, match="predict failed"):
        adapter.scores(np.full((2, 2), "x", dtype=object))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_boosters_for_numbers_name_the_remedy(library):
    X, y = np.random.default_rng(0).random((60, 2)), np.arange(60.0)
    if library == "xgboost":
        import xgboost

        model: Any = xgboost.train({"objective": "reg:squarederror", "nthread": 1}, xgboost.DMatrix(X, y), 2)
    elif library == "lightgbm":
        import lightgbm

        model = lightgbm.train({"objective": "regression", "verbose": -1}, lightgbm.Dataset(X, y), 2)
    else:
        import catboost

        model = catboost.CatBoost({"iterations": 2, "verbose": 0, "allow_writing_files": False}).fit(X, y)
    with pytest.raises(ArgumentError, match=r"zm\.above\(model, value\)"):
        as_classifier(model)
    with pytest.raises(ArgumentError, match="expected a booster"):
        Boosted(3)
