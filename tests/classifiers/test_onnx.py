"""ONNX files: what is loaded gives the model's scores, and what should not be loaded is refused by name."""

from __future__ import annotations

import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.support.onnx_models import WEIGHTS, external, linear, model
from zomirror.classifiers import Onnx, onnx_classifier
from zomirror.classifiers.onnx_file import check_onnx
from zomirror.errors import ArgumentError, DataError, OracleError

X = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("dtype", "out", "error"),
    [(np.float32, np.float32, 1e-6), (np.float64, np.float64, 1e-14), (np.float16, np.float32, 1e-2)],
)
@pytest.mark.parametrize("given", [np.float32, np.float64, np.float16])
def test_input_is_cast_to_what_the_model_wants(dtype, out, error, given):
    scores = Onnx(linear(dtype=dtype))(X.astype(given))
    assert scores.dtype == out
    np.testing.assert_allclose(
        scores, X.astype(given).astype(dtype).astype(np.float64) @ WEIGHTS.astype(dtype), atol=error * 4
    )


def test_a_batch_that_fits_is_not_copied():
    """The session receives the very memory of the batch; a strided or foreign one is made to fit."""
    received = []

    class Spy:
        def run(self, names, feed):
            received.append(feed["x0"])
            return [feed["x0"][:, :3]]

    classifier = Onnx(linear())
    object.__setattr__(classifier, "_session", Spy())
    frozen = X.copy()
    frozen.flags.writeable = False
    classifier(frozen)
    assert received[-1] is frozen
    classifier(X[::2])
    assert received[-1].flags.c_contiguous
    np.testing.assert_array_equal(received[-1], X[::2])


@pytest.mark.parametrize("batch_rows", [None, 1, 2, 4, 5, 9])
def test_blocks_give_the_scores_of_the_whole(batch_rows):
    classifier = Onnx(linear(), batch_rows=batch_rows)
    np.testing.assert_allclose(classifier(X), X @ WEIGHTS.astype(np.float32), rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 5, 8])
def test_a_fixed_batch_size_is_split_and_filled_up(rows):
    classifier = Onnx(linear(rows=rows))
    for n in (1, 2, 3, 5):
        scores = classifier(X[:n])
        assert scores.shape == (n, 3)
        np.testing.assert_allclose(scores, X[:n] @ WEIGHTS.astype(np.float32), rtol=1e-5)
    with pytest.raises(ArgumentError, match=f"expected batch_rows {rows} or None, got 3: the batch size"):
        Onnx(linear(rows=rows), batch_rows=3)


def test_a_pickle_carries_the_model_and_opens_a_new_session(tmp_path):
    path = tmp_path / "linear.onnx"
    path.write_bytes(linear(outputs=2))
    classifier = onnx_classifier(path, output="y1", threads=2, batch_rows=2)
    path.unlink()
    again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
    assert again == classifier
    assert repr(again) == "Onnx(output='y1', threads=2, batch_rows=2, name='linear.onnx')"
    np.testing.assert_array_equal(again(X), classifier(X))


@pytest.mark.parametrize("shape", [(5, 3), (5, 5), (5, 4, 1), (5, 2, 2), (4,)])
def test_an_input_of_another_shape_is_refused_before_it_is_asked(shape):
    with pytest.raises(ArgumentError, match=r"expected a batch of shape \(n, 4\) for 'model.onnx', got \("):
        Onnx(linear())(np.zeros(shape, np.float32))


def test_an_empty_batch_is_refused():
    with pytest.raises(ArgumentError, match=r"with n >= 1, got \(0, 4\)"):
        Onnx(linear())(X[:0])


def test_several_outputs_need_a_name():
    with pytest.raises(ArgumentError, match=r"\['y0', 'y1'\]: choose the scores with onnx_classifier"):
        Onnx(linear(outputs=2))
    with pytest.raises(ArgumentError, match=r"expected output one of \['y0', 'y1'\].*got 'scores'"):
        Onnx(linear(outputs=2), output="scores")
    np.testing.assert_allclose(Onnx(linear(outputs=2), output="y1")(X), X @ WEIGHTS, rtol=1e-5)


def test_models_that_cannot_be_asked_are_refused_at_once():
    with pytest.raises(
        ArgumentError, match=r"expected a model with one input, got 'model.onnx' with 2 \(\['x0', 'x1'\]\)"
    ):
        Onnx(linear(inputs=2))
    with pytest.raises(ArgumentError, match=r"float input, got tensor\(int64\)"):
        Onnx(linear(dtype=np.int64, weights=np.ones((4, 3), int)))
    with pytest.raises(ArgumentError, match=r"classes >= 2\), got tensor\(float\) of shape \['n', 1\]"):
        Onnx(linear(weights=WEIGHTS[:, :1]))
    with pytest.raises(ArgumentError, match="expected threads >= 1, got 0"):
        Onnx(linear(), threads=0)


def test_labels_instead_of_scores_are_refused():
    node = helper.make_node("ArgMax", ["x"], ["label"], axis=1, keepdims=0)
    graph = helper.make_graph(
        [node],
        "labels",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("label", TensorProto.INT64, ["n"])],
    )
    with pytest.raises(ArgumentError, match=r"got tensor\(int64\) of shape .* in output 'label'"):
        Onnx(model(graph))


def test_a_model_that_fails_while_asked_says_so():
    """A reshape to (2, 6) is accepted by the graph and fails for every batch but one of three rows."""
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "broken",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])],
        [numpy_helper.from_array(np.array([2, 6]), "shape")],
    )
    with pytest.raises(OracleError, match=r"the ONNX model 'broken.onnx' failed on a batch of shape \(5, 4\)"):
        Onnx(model(graph), name="broken.onnx")(X)
    with pytest.raises(OracleError, match=r"expected scores of shape \(3, classes >= 2\), got \(2, 6\)"):
        Onnx(model(graph))(X[:3])


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04 a zip", b"<html></html>" * 9, b"\x00" * 99, b"\x80" * 99, linear()[:60], os.urandom(999)]
)
def test_a_file_that_is_not_onnx_is_refused(tmp_path, data):
    path = tmp_path / "wrong.onnx"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"expected an ONNX model.*'wrong.onnx'"):
        onnx_classifier(path)


def test_a_missing_or_too_large_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="found no file at"):
        onnx_classifier(tmp_path / "none.onnx")
    with pytest.raises(DataError, match="found no file at"):
        onnx_classifier(tmp_path)
    path = tmp_path / "large.onnx"
    path.write_bytes(linear())
    with pytest.raises(DataError, match=r"expected at most 50 bytes in 'large.onnx', got more"):
        onnx_classifier(path, max_bytes=50)


@pytest.mark.parametrize("location", ["secret.bin", "./secret.bin", "../secret.bin", "*/_ORT_MEM_ADDR_/*"])
def test_external_data_never_reaches_another_file(tmp_path, monkeypatch, location):
    """onnxruntime itself would read the file: relative to the working directory, even from bytes."""
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    for directory in (tmp_path, inside):
        (directory / "secret.bin").write_bytes(WEIGHTS.astype(np.float32).tobytes())
    data = linear(tensor=external(location))
    Path("model.onnx").write_bytes(data)
    for load in (partial(onnx_classifier, "model.onnx"), partial(Onnx, data)):
        with pytest.raises(DataError, match=r"a self-contained ONNX model, got 'model.onnx' with external data"):
            load()


def branch(*tensors: Any) -> Any:
    """Return a graph that holds `tensors` as initialisers, as a branch of an If has them."""
    out = [helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 3])]
    return helper.make_graph([], "branch", [], out, list(tensors))


def test_external_data_is_found_wherever_a_tensor_may_hide():
    tensor = external("secret.bin")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    info = helper.make_tensor_value_info
    ends = ([info("x", TensorProto.FLOAT, ["n", 4])], [info("y", TensorProto.FLOAT, ["n", 3])])
    constant = helper.make_node("Constant", [], ["w"], value=tensor)
    sparse = helper.make_sparse_tensor(tensor, numpy_helper.from_array(np.arange(12), "i"), [12])
    hidden = {
        "attribute": helper.make_graph([constant, node], "g", *ends),
        "list of attributes": helper.make_graph(
            [helper.make_node("Odd", [], ["w"], values=[tensor]), node], "g", *ends
        ),
        "subgraph": helper.make_graph(
            [helper.make_node("If", ["c"], ["w"], then_branch=branch(tensor), else_branch=branch()), node], "g", *ends
        ),
        "sparse initialiser": helper.make_graph([node], "g", *ends, sparse_initializer=[sparse]),
    }
    for place, graph in hidden.items():
        with pytest.raises(DataError, match="with external data"):
            check_onnx(model(graph), place)
    function = helper.make_function("f", "F", [], ["w"], [constant], [helper.make_opsetid("", 17)])
    made = helper.make_model(helper.make_graph([node], "g", *ends), functions=[function])
    with pytest.raises(DataError, match="with external data"):
        check_onnx(made.SerializeToString(), "function")
    check_onnx(linear(), "self-contained")


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_damaged_bytes_are_refused_whenever_protobuf_sees_external_data_in_them(data):
    """Our reading of the file and protobuf's own must agree, or a crafted file could slip between them."""
    damaged = bytearray(linear(tensor=external("secret.bin")))
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        parsed = ModelProto.FromString(bytes(damaged))
    except DecodeError:
        dangerous = False
    else:
        dangerous = any(one.external_data or one.data_location for one in parsed.graph.initializer)
    try:
        check_onnx(bytes(damaged), "damaged")
    except DataError:
        return
    assert not dangerous


def test_onnx_scores_of_an_image_model_keep_their_rank():
    graph = helper.make_graph(
        [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["y"])],
        "image",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(WEIGHTS.astype(np.float32), "w")],
    )
    classifier = Onnx(model(graph))
    np.testing.assert_allclose(classifier(X.reshape(5, 1, 2, 2)), X @ WEIGHTS, rtol=1e-5)
    with pytest.raises(ArgumentError, match=r"expected a batch of shape \(n, 1, 2, 2\)"):
        classifier(X)
