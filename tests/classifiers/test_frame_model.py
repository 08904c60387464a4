"""Models of frames: they get the frame of the reference, and other columns are refused before the first query."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.loan_names import BOOSTED, PIPELINES
from zomirror.classifiers import Boosted, FrameModel, Function, Sklearn, as_classifier
from zomirror.errors import ArgumentError

loan: Any = None
pd: Any = None


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    global loan, pd
    import pandas as pd

    from tests.support import loan_table as loan


def made(name: str) -> tuple[Any, Any]:
    return (loan.pipeline(name), loan.loans()) if name in PIPELINES else loan.boosted(name)


@pytest.mark.parametrize("name", PIPELINES + BOOSTED)
def test_the_scores_are_those_of_the_frame(name):
    model, frame = made(name)
    table = zm.Table(frame)
    classifier: Any = table.classifier(model)
    assert isinstance(classifier, FrameModel)
    scores, inner = classifier(table.reference[:50]), as_classifier(model)
    assert isinstance(inner, Sklearn | Boosted)
    np.testing.assert_array_equal(scores, np.asarray(inner.scores(frame.iloc[:50])))
    np.testing.assert_allclose(classifier(table.reference[7:8]), scores[7:8], rtol=1e-12)
    assert (classifier.splits is None) == (name == "LogisticRegression")
    assert table.classifier(classifier) is classifier


def test_the_model_sees_the_types_of_the_reference():
    seen = []

    def model(frame):
        seen.append(frame)
        return loan.scores(frame)

    frame = loan.categories(loan.loans())
    table = zm.Table(frame)
    classifier: Any = table.classifier(Function(model, batch_rows=4))
    classifier(table.reference[:10])
    assert [len(one) for one in seen] == [4, 4, 2]
    assert all(one.dtypes.equals(frame.dtypes) for one in seen)
    assert classifier.class_names is None
    assert classifier.batch_rows == 4


@pytest.mark.parametrize("name", ["LogisticRegression", "xgboost", "lightgbm", "catboost", *BOOSTED[3:]])
def test_a_model_that_wants_other_columns_is_refused(name):
    model, frame = made(name)
    with pytest.raises(ArgumentError, match="the table lacks rate"):
        zm.Table(frame.drop(columns="rate")).classifier(model)
    with pytest.raises(ArgumentError, match="the model does not know extra"):
        zm.Table(frame.assign(extra=1.5)).classifier(model)
    with pytest.raises(ArgumentError, match="reorder the columns"):
        zm.Table(frame[list(frame.columns[::-1])]).classifier(model)


def test_a_model_of_arrays_gets_arrays():
    from sklearn.linear_model import LogisticRegression

    frame = loan.loans()[["income", "children", "rate"]]
    model = LogisticRegression().fit(frame.to_numpy(), loan.verdict(loan.loans()))
    import polars as pl

    wanted = model.decision_function(frame.to_numpy())
    for rows in (
        frame,
        pl.from_pandas(frame),
        pl.from_pandas(frame).to_arrow(),
        {n: frame[n].to_numpy() for n in frame},
    ):
        table = zm.Table(rows)
        np.testing.assert_allclose(table.classifier(model)(table.reference)[:, 1], wanted)
    table = zm.Table(frame.to_numpy())
    np.testing.assert_allclose(table.classifier(model)(table.reference)[:, 1], wanted)
    with pytest.raises(ArgumentError, match="the 3 columns that the model was fitted on, got 2"):
        zm.Table(frame[["income", "rate"]]).classifier(model)
    with pytest.raises(ArgumentError, match="takes arrays of numbers, and the texts of housing"):
        zm.Table(loan.loans()[["income", "children", "housing"]]).classifier(model)


def test_an_onnx_model_of_numbers_gets_an_array():
    from tests.support.onnx_models import WEIGHTS, linear
    from zomirror.classifiers import Onnx

    X = np.random.default_rng(0).normal(size=(9, 4))
    table = zm.Table(pd.DataFrame(X, columns=list("abcd")))
    np.testing.assert_allclose(table.classifier(Onnx(linear()))(table.reference), X @ WEIGHTS, rtol=1e-5)
    with pytest.raises(ArgumentError, match="expected a model of frames, got Onnx"):
        zm.Table(loan.loans()).classifier(Onnx(linear()))


def test_regressors_of_frames():
    model = loan.pipeline("LinearRegression")
    table = zm.Table(loan.loans())
    scores = table.classifier(zm.above(model, 0.0))(table.reference)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], model.predict(loan.loans()))
    with pytest.raises(ArgumentError, match=r"zm\.above"):
        table.classifier(model)
