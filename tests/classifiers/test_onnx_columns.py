"""ONNX models with an input for each column."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.classifiers import Onnx, OnnxColumns, onnx_classifier
from zomirror.errors import ArgumentError, OracleError

FRAME: dict[str, Any] = {
    "income": [1.5, 2.5, 3.5, 4.5, 2.0],
    "children": [0, 1, 2, 3, 1],
    "housing": ["rent", "own", "free", "own", "rent"],
}


def model(*, outputs: int = 1, wide: bool = False) -> bytes:
    """income - children / 2 + (housing == own) - 2 as two scores."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Cast", ["children"], ["count"], to=TensorProto.FLOAT),
        helper.make_node(
            "LabelEncoder",
            ["housing"],
            ["owner"],
            domain="ai.onnx.ml",
            keys_strings=["own"],
            values_floats=[1.0],
            default_float=0.0,
        ),
        helper.make_node("Concat", ["income", "count", "owner"], ["row"], axis=1),
        helper.make_node("MatMul", ["row", "weights"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0),
        *(helper.make_node("Identity", ["scores"], [f"copy{i}"]) for i in range(1, outputs)),
    ]
    graph = helper.make_graph(
        nodes,
        "columns",
        [
            helper.make_tensor_value_info("income", TensorProto.FLOAT, ["n", 1]),
            helper.make_tensor_value_info("children", TensorProto.INT64, ["n", 1]),
            helper.make_tensor_value_info("housing", TensorProto.STRING, ["n", 1]),
            *([helper.make_tensor_value_info("unused", TensorProto.FLOAT, ["n", 2])] if wide else []),
        ],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 2]),
            *(helper.make_tensor_value_info(f"copy{i}", TensorProto.FLOAT, ["n", 2]) for i in range(1, outputs)),
        ],
        [
            helper.make_tensor("weights", TensorProto.FLOAT, [3, 2], [-1.0, 1.0, 0.5, -0.5, -1.0, 1.0]),
            helper.make_tensor("bias", TensorProto.FLOAT, [2], [2.0, -2.0]),
        ],
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return bytes(helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString())


def worth(rows: Any) -> Any:
    own = np.array([value == "own" for value in rows["housing"]], float)
    return np.asarray(rows["income"]) - np.asarray(rows["children"]) / 2 + own - 2


@pytest.mark.parametrize("library", ["dict", "pandas", "polars", "pyarrow"])
def test_rows_of_every_library(tmp_path: Path, library: str) -> None:
    import pandas as pd
    import polars as pl

    path = tmp_path / "columns.onnx"
    path.write_bytes(model())
    found = onnx_classifier(path)
    assert isinstance(found, OnnxColumns)
    assert found.input_shape is None
    frames = {"dict": FRAME, "pandas": pd.DataFrame(FRAME), "polars": pl.DataFrame(FRAME)}
    frame = pl.DataFrame(FRAME).to_arrow() if library == "pyarrow" else frames[library]
    table = zm.Table(frame, increasing=["income"])
    for classifier in (table.classifier(path), table.classifier(pickle.loads(pickle.dumps(found)))):  # noqa: S301
        scores = classifier(table.reference)
        np.testing.assert_allclose(scores[:, 1], worth(FRAME), rtol=1e-6)
    e = zm.explain(path, [1.5, 0, "rent"], features=table, budget=200)
    assert e.valid
    assert e.changes


def test_columns_in_another_order_and_missing_texts() -> None:
    import pandas as pd

    frame = pd.DataFrame(FRAME)[["housing", "income", "children"]]
    frame.loc[0, "housing"] = None
    table = zm.Table(frame)
    scores = table.classifier(OnnxColumns(model()))(table.reference)
    np.testing.assert_allclose(scores[:, 1], worth(frame), rtol=1e-6)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(FRAME)
    with pytest.raises(ArgumentError, match="the table lacks housing"):
        zm.Table(frame[["income", "children"]]).classifier(OnnxColumns(model()))
    with pytest.raises(ArgumentError, match="which has an input for each column, got an array"):
        zm.explain(OnnxColumns(model()), np.zeros(3))
    with pytest.raises(ArgumentError, match="choose it with onnx_classifier"):
        OnnxColumns(model(outputs=2))
    assert OnnxColumns(model(outputs=2), "copy1").output == "copy1"
    (tmp_path / "wide.onnx").write_bytes(model(wide=True))
    with pytest.raises(ArgumentError, match="expected a model with one input"):
        onnx_classifier(tmp_path / "wide.onnx")
    with pytest.raises(OracleError, match="failed on rows of a table"):
        OnnxColumns(model()).scores({"income": ["x"]})
    with pytest.raises(ArgumentError, match="one input"):
        Onnx(model())
