"""Write a LeNet of the paper's size, for timing: 431,080 weights, ten times those of the bundled one.

Its weights are random: the time of a network does not depend on their values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = {"first": (20, 1, 5, 5), "second": (50, 20, 5, 5), "third": (500, 800), "last": (10, 500)}
POOL: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
LAYERS: list[tuple[str, str, dict[str, Any]]] = [
    ("Conv", "first", {}),
    ("Tanh", "", {}),
    ("MaxPool", "", POOL),
    ("Conv", "second", {}),
    ("Tanh", "", {}),
    ("MaxPool", "", POOL),
    ("Flatten", "", {}),
    ("Gemm", "third", {"transB": 1}),
    ("Tanh", "", {}),
    ("Gemm", "last", {"transB": 1}),
]
"""Layers: operation, weights, attributes."""


def content() -> bytes:
    """The ONNX file, from digits (n, 1, 28, 28) to ten logits."""
    rng = np.random.default_rng(0)
    weights, nodes, value = [], [], "x"
    for name, shape in WEIGHTS.items():
        most = 1 / np.sqrt(np.prod(shape[1:]))
        for part, size in (("weight", shape), ("bias", shape[:1])):
            entries = rng.uniform(-most, most, size).astype(np.float32)
            weights.append(numpy_helper.from_array(entries, f"{name}.{part}"))
    for i, (kind, name, options) in enumerate(LAYERS):
        given = [f"{name}.weight", f"{name}.bias"] if name else []
        after = "y" if name == "last" else f"value{i}"
        nodes.append(helper.make_node(kind, [value, *given], [after], **options))
        value = after
    graph = helper.make_graph(
        nodes,
        "LeNet",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 28, 28])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())
