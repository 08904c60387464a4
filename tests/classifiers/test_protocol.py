"""The contract of every classifier adapter, and the choice of the adapter."""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support.onnx_models import WEIGHTS, linear
from zomirror.classifiers import Function, Onnx, Sklearn, Stepped, Torch, as_classifier, radius_hint
from zomirror.classifiers.protocol import check_scores
from zomirror.errors import ArgumentError, ArgumentTypeError, DataError, OracleError, ZomirrorError

if TYPE_CHECKING:
    import torch
    from sklearn.linear_model import LogisticRegression

W = WEIGHTS.astype(np.float32)
X = np.random.default_rng(2).normal(size=(11, 4)).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def _frameworks() -> None:
    """Imported by the worker that runs these tests, and not by all that collect them: they take three seconds."""
    global LogisticRegression, torch
    import torch
    from sklearn.linear_model import LogisticRegression


def predict(batch: Any) -> Any:
    return batch @ W


def torch_linear() -> torch.nn.Linear:
    module = torch.nn.Linear(4, 3, bias=False)
    module.weight.data = torch.from_numpy(W.T.copy())
    return module


def sklearn_linear() -> LogisticRegression:
    model = LogisticRegression()
    model.classes_, model.n_features_in_ = np.arange(3), 4
    model.coef_, model.intercept_ = WEIGHTS.T, np.zeros(3)
    return model


ADAPTERS = [
    pytest.param(lambda **rows: Function(predict, **rows), id="function"),
    pytest.param(lambda **rows: Onnx(linear(), **rows), id="onnx"),
    pytest.param(lambda **rows: Torch(torch_linear(), **rows), id="torch"),
    pytest.param(lambda **rows: Sklearn(sklearn_linear(), **rows), id="sklearn"),
]


@pytest.mark.parametrize("make", ADAPTERS)
class TestEveryAdapter:
    def test_gives_the_scores_of_the_model(self, make):
        scores = make()(X)
        assert scores.shape == (11, 3)
        np.testing.assert_allclose(scores, X @ WEIGHTS, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("batch_rows", [1, 3, 10, 11, 12])
    def test_asked_in_blocks_gives_the_same(self, make, batch_rows):
        np.testing.assert_allclose(make(batch_rows=batch_rows)(X), make()(X), rtol=1e-5, atol=1e-6)

    def test_leaves_the_batch_alone_and_takes_a_read_only_one(self, make):
        batch = X.copy()
        first = make()(batch)
        batch.flags.writeable = False
        np.testing.assert_array_equal(make()(batch), first)
        np.testing.assert_array_equal(batch, X)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8, ">f4"])
    def test_takes_any_real_dtype(self, make, dtype):
        batch = np.arange(8).reshape(2, 4).astype(dtype)
        np.testing.assert_allclose(make()(batch), batch.astype(float) @ WEIGHTS, rtol=1e-3, atol=1e-3)

    def test_takes_any_layout(self, make):
        for batch in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X[::-1][::-1], np.ascontiguousarray(X.T).T):
            np.testing.assert_allclose(make()(batch), X @ WEIGHTS, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(make()(X[::-1]), X[::-1] @ WEIGHTS, rtol=1e-5, atol=1e-6)

    def test_survives_a_pickle(self, make):
        classifier = make(batch_rows=4)
        again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
        assert again.batch_rows == 4
        np.testing.assert_array_equal(again(X), classifier(X))

    def test_reads_well(self, make):
        assert len(repr(make(batch_rows=4))) < 120
        assert "batch_rows=4" in repr(make(batch_rows=4))

    def test_refuses_a_batch_without_rows(self, make):
        for batch in (X[:0], X[0]):
            with pytest.raises(ArgumentError, match="expected"):
                make()(batch)

    @pytest.mark.parametrize("batch_rows", [0, -1, 2.0, "2", True])
    def test_refuses_bad_batch_rows_when_made(self, make, batch_rows):
        with pytest.raises(ZomirrorError, match="expected batch_rows"):
            make(batch_rows=batch_rows)

    def test_is_frozen_and_chosen_once(self, make):
        classifier = make(batch_rows=4)
        with pytest.raises(AttributeError):
            classifier.batch_rows = 5
        assert as_classifier(classifier) is classifier
        assert as_classifier(classifier, batch_rows=4) is classifier
        with pytest.raises(ArgumentError, match="expected batch_rows None or 4, got 5"):
            as_classifier(classifier, batch_rows=5)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.eye(3, dtype=np.float32), np.float32),
        (np.eye(3), np.float64),
        (np.eye(3, dtype=np.float16), np.float32),
        (np.eye(3, dtype=int), np.float64),
        (np.eye(3, dtype=bool), np.float64),
        (np.eye(3).tolist(), np.float64),
        (lambda: torch.eye(3), np.float32),
        (np.full((3, 3), np.nan), np.float64),
    ],
)
def test_real_scores_come_through(values, dtype):
    values = values() if callable(values) else values
    scores = check_scores(values, 3)
    assert scores.dtype == dtype
    np.testing.assert_array_equal(scores, np.asarray(values, dtype))
    if isinstance(values, np.ndarray) and values.dtype == dtype:
        assert scores is values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(3), r"expected scores of shape \(3, classes >= 2\), got \(3,\): turn one score s per row"),
        (np.zeros((3, 1)), r"got \(3, 1\): turn one score s per row"),
        (np.zeros((2, 4)), r"got \(2, 4\): return one row per input"),
        (np.zeros((3, 4, 1)), r"got \(3, 4, 1\)"),
        (0.5, r"got \(\)"),
        (None, r"got \(\)"),
        ([[1.0, 2.0], [1.0], [3.0, 4.0]], "expected scores that numpy can read, got list"),
        (np.zeros((3, 2), complex), "expected real scores, got dtype complex128"),
        (np.array([["a", "b"]] * 3), "expected real scores, got dtype <U1"),
        (np.array([[None, 1]] * 3), "expected real scores, got dtype object"),
        (lambda: torch.zeros(3, 2, requires_grad=True), "expected scores that numpy can read, got Tensor"),
    ],
)
def test_other_scores_are_refused(values, message):
    values = values() if callable(values) else values
    with pytest.raises(OracleError, match=message):
        Function(lambda batch: values)(X[:3])


def test_blocks_must_agree_on_the_classes():
    with pytest.raises(OracleError, match=r"expected the same number of classes for every block, got \[2, 3\]"):
        Function(lambda batch: np.zeros((len(batch), 3 if len(batch) == 4 else 2)), batch_rows=4)(X)


def test_a_function_cannot_write_into_its_input():
    def careless(batch):
        batch *= 0
        return batch

    batch = X.copy()
    with pytest.raises(ValueError, match="read-only"):
        Function(careless)(batch)
    np.testing.assert_array_equal(batch, X)
    assert batch.flags.writeable


def test_what_a_function_raises_comes_through():
    def broken(batch):
        raise KeyError("column")

    with pytest.raises(KeyError, match="column"):
        as_classifier(broken)(X)


def test_the_adapter_is_chosen_by_what_the_model_is(tmp_path: Path):
    path = tmp_path / "linear.onnx"
    path.write_bytes(linear())
    models: list[tuple[Any, type]] = [
        (predict, Function),
        (functools.partial(predict), Function),
        (path, Onnx),
        (str(path), Onnx),
        (torch_linear(), Torch),
        (torch.nn.Sequential(torch_linear(), torch.nn.Identity()), Torch),
        (torch.nn.Sequential(torch_linear()).double(), Torch),
        (sklearn_linear(), Sklearn),
    ]
    for model, adapter in models:
        classifier = as_classifier(model, batch_rows=5)
        assert type(classifier) is adapter
        np.testing.assert_allclose(classifier(X), X @ WEIGHTS, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        ("https://host/v2", ArgumentError, "use http_classifier"),
        ("HTTP://host", ArgumentError, "http_classifier"),
        ("net.pt", ArgumentError, "weights_only=True"),
        ("forest.pkl", ArgumentError, "opening a pickle runs what is in it"),
        ("forest.JOBLIB", ArgumentError, "opening a pickle runs what is in it"),
        (Path("net.h5"), ArgumentError, "expected the path of an .onnx file, got 'net.h5'"),
        ("none.onnx", DataError, "found no file"),
        (3, ArgumentTypeError, "expected a model, got int"),
        (None, ArgumentTypeError, "got NoneType"),
    ],
)
def test_what_is_not_a_model_is_refused(model, error, message):
    with pytest.raises(error, match=message):
        as_classifier(model)


def test_no_radius_is_known_of_a_smooth_model():
    classifier = as_classifier(predict)
    assert not isinstance(classifier, Stepped)
    assert radius_hint(classifier, X[0]) is None
    assert radius_hint(as_classifier(sklearn_linear()), X[0]) is None


def test_no_framework_is_imported_before_it_is_used():
    code = (
        "import sys, zomirror.classifiers as c\n"
        "c.as_classifier(lambda batch: batch)\n"
        "print(*sorted({'torch', 'sklearn', 'onnx', 'onnxruntime', 'urllib3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
