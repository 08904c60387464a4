"""The thresholds of boosted trees: between two of them the scores do not change, and each one changes some."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.loan_names import BOOSTED
from zomirror.classifiers import Sklearn, radius_hint
from zomirror.classifiers.boosted import Boosted
from zomirror.classifiers.sklearn import is_estimator
from zomirror.classifiers.trees import library_of, thresholds

loan: Any = None


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    global loan
    from tests.support import loan_table as loan


@pytest.mark.parametrize("name", BOOSTED)
def test_the_scores_change_at_the_thresholds_only(name):
    model, frame = loan.boosted(name)
    assert library_of(model) == name.split()[0]
    found = thresholds(model)
    assert found is not None
    feature, threshold = found
    scores = Sklearn(model).scores if is_estimator(model) else Boosted(model).scores
    used = 0
    for j in (0, 2):  # income and rate
        splits = np.unique(threshold[feature == j])
        assert splits.size > 3
        rows = frame.iloc[np.repeat(np.arange(20), 2 * splits.size)].copy()
        column = frame.columns[j]
        size = np.float32(np.abs(splits).max())
        # Just above each threshold and on it: trees of XGBoost and CatBoost compare in float32.
        ends = np.stack([splits, splits + 4 * np.spacing(size)], axis=1)
        rows[column] = np.tile(ends.ravel(), 20)
        said = np.asarray(scores(rows))[:, 1].reshape(20, -1, 2)
        # From just above one threshold up to the next one nothing changes.
        np.testing.assert_array_equal(said[:, :-1, 1], said[:, 1:, 0])
        used += int((said[..., 0] != said[..., 1]).any(axis=0).sum())
    assert used > 5


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_an_array_gets_a_radius_that_crosses_the_thresholds(library):
    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    y = (X[:, 0] > 0.5).astype(int)
    if library == "xgboost":
        import xgboost

        model: Any = xgboost.XGBClassifier(n_estimators=3, n_jobs=1).fit(X, y)
    else:
        import lightgbm

        model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(X, y)
    radius = radius_hint(Sklearn(model), X[0])
    assert radius is not None
    assert radius.shape == (3,)
    assert (radius > 0).all()
