"""Small ONNX models, built in memory, for the tests of what reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = np.random.default_rng(7).normal(size=(4, 3))
TYPES: dict[Any, int] = {
    np.float32: TensorProto.FLOAT,
    np.float64: TensorProto.DOUBLE,
    np.float16: TensorProto.FLOAT16,
    np.int64: TensorProto.INT64,
}


def linear(
    *,
    dtype: Any = np.float32,
    rows: int | str = "n",
    inputs: int = 1,
    outputs: int = 1,
    weights: Any = WEIGHTS,
    tensor: Any = None,
) -> bytes:
    """Return the model x -> x W (4 features, 3 classes); further inputs are added, further outputs are copies."""
    kind = TYPES[dtype]
    weights = np.asarray(weights, dtype=dtype)
    names = [f"x{i}" for i in range(inputs)]
    nodes = [helper.make_node("MatMul", ["x0", "w"], ["y0" if inputs == 1 else "p0"])]
    nodes += [helper.make_node("Add", [f"p{i - 1}", names[i]], ["y0"]) for i in range(1, inputs)]
    nodes += [helper.make_node("Identity", ["y0"], [f"y{i}"]) for i in range(1, outputs)]
    width = weights.shape[1]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info(name, kind, [rows, 4 if name == "x0" else width]) for name in names],
        [helper.make_tensor_value_info(f"y{i}", kind, [rows, width]) for i in range(outputs)],
        [numpy_helper.from_array(weights, "w") if tensor is None else tensor],
    )
    return model(graph)


def model(graph: Any) -> bytes:
    """Return the serialised model around `graph`."""
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())


def external(location: str, values: Any = WEIGHTS) -> Any:
    """Return a float tensor `w` whose data is said to be in the file `location`."""
    tensor = TensorProto(name="w", dims=np.shape(values), data_type=TensorProto.FLOAT)
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    return tensor
