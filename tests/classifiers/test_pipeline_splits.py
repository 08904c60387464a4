"""Thresholds through pipelines: in the units of the columns, they are where the scores change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zomirror.classifiers.pipeline_splits import column_splits

loan: Any = None


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    global loan
    from tests.support import loan_table as loan


def changes_at_splits_only(model: Any, frame: Any, column: int, splits: Any) -> bool:
    """Whether the probabilities are constant between neighbouring thresholds of one column."""
    middle = (splits[:-1] + splits[1:]) / 2
    wide = np.diff(splits) > 1e-6 * np.abs(splits).max()
    rows = np.repeat(np.arange(8), 2 * wide.sum())
    low, high = splits[:-1][wide], splits[1:][wide]
    ends = np.stack([low + 1e-3 * (middle[wide] - low), high - 1e-3 * (high - middle[wide])], axis=1)
    made = frame.iloc[rows].copy() if hasattr(frame, "iloc") else frame[rows].copy()
    values = np.tile(ends.ravel(), 8)
    if hasattr(frame, "iloc"):
        made[frame.columns[column]] = values
    else:
        made[:, column] = values
    said = model.predict_proba(made)[:, 1].reshape(-1, 2)
    return bool((said[:, 0] == said[:, 1]).all())


def test_scalers_and_imputers_in_a_column_transformer_are_undone():
    model, frame = loan.pipeline("RandomForestClassifier"), loan.loans()
    splits = column_splits(model, frame.shape[1])
    assert splits is not None
    names = dict(zip(frame.columns, splits, strict=True))
    assert names["housing"] is None
    assert names["purpose"] is None
    assert names["phone"].tolist() == [0.5]
    for j, name in enumerate(frame.columns[:4]):
        inside = names[name]
        assert frame[name].min() < inside.min() < inside.max() < frame[name].max()
        assert changes_at_splits_only(model, frame, j, inside)


@pytest.mark.parametrize(
    "step", ["RobustScaler", "MaxAbsScaler", "MinMaxScaler", "SelectKBest", "passthrough", "identity", "nested"]
)
def test_steps_that_keep_columns_apart(step):
    from sklearn import feature_selection, pipeline, preprocessing
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    X = rng.random((300, 3)) * [1.0, 100.0, 3.0] - 1.0
    y = X[:, 1] / 100 + X[:, 2] / 3 > 0.4
    made = {
        "SelectKBest": feature_selection.SelectKBest(k=2),
        "passthrough": "passthrough",
        "identity": preprocessing.FunctionTransformer(),
        "nested": pipeline.make_pipeline(preprocessing.StandardScaler(with_mean=False), None),
    }
    before = made[step] if step in made else getattr(preprocessing, step)()
    model = pipeline.make_pipeline(before, DecisionTreeClassifier(max_depth=6, random_state=0)).fit(X, y)
    splits = column_splits(model, 3)
    assert splits is not None
    for j in (1, 2):
        assert changes_at_splits_only(model, X, j, splits[j])
    if step == "SelectKBest":
        assert splits[0] is None


def test_columns_that_are_mixed_have_no_thresholds():
    from sklearn.compose import make_column_transformer
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
    from sklearn.tree import DecisionTreeClassifier

    X = np.random.default_rng(0).random((100, 3))
    y = X[:, 0] > 0.5
    tree = DecisionTreeClassifier(random_state=0)
    assert column_splits(make_pipeline(PCA(2), tree).fit(X, y), 3) == (None, None, None)
    some = make_column_transformer((PolynomialFeatures(2), [0]), ("drop", [1]), remainder="passthrough")
    splits = column_splits(make_pipeline(some, tree).fit(X, y), 3)
    assert splits is not None
    assert splits[1] is None
    unknown = make_pipeline(FunctionTransformer(lambda x: x[:, ::-1]), tree).fit(X, y)
    assert column_splits(unknown, 3) is None
    assert column_splits(make_pipeline(LogisticRegression()).fit(X, y), 3) is None
    searched = GridSearchCV(make_pipeline("passthrough", tree), {}, cv=2).fit(X, y)
    found = column_splits(searched, 3)
    assert found is not None
    assert found[0] is not None
