"""Writes a trained network as an ONNX file: input `x`, output `y`, any number of rows, batch norms folded in."""

from __future__ import annotations

import copy
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from zomirror.datasets import cache
from zomirror.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_OPSET = 17
_IR = 8  # the one of opset 17, which old versions of onnxruntime read too


def export(network: nn.Module, path: Path, shape: tuple[int, ...], classes: int = 10) -> None:
    """Write the network for inputs (n, *shape) to `path`; DataError if onnxruntime and torch disagree on it."""
    model = to_onnx(network, shape, classes)
    rows = np.random.default_rng(0).normal(size=(5, *shape)).astype(np.float32)
    with torch.no_grad():
        wanted = copy.deepcopy(network).eval()(torch.from_numpy(rows)).numpy()
    content = model.SerializeToString()
    for n in (5, 1):  # any number of rows
        got = scores(content, rows[:n])
        if got.shape != (n, classes) or not np.allclose(got, wanted[:n], rtol=1e-4, atol=1e-4):
            apart = np.abs(got - wanted[:n]).max()
            raise DataError(f"export: expected the scores of torch from onnxruntime, got a difference of {apart}")
    with cache.replacing(path) as file:
        file.write(content)


def scores(content: bytes, rows: NDArray[np.float32], batch_rows: int = 500) -> NDArray[np.float32]:
    """The logits that onnxruntime computes for the rows, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    blocks = [rows[start : start + batch_rows] for start in range(0, len(rows), batch_rows)]
    result: NDArray[np.float32] = np.concatenate([session.run(["y"], {"x": block})[0] for block in blocks])
    return result


def to_onnx(network: nn.Module, shape: tuple[int, ...], classes: int) -> onnx.ModelProto:
    """The graph of a network; DataError names a layer that `_operator` does not know."""
    traced = fx.symbolic_trace(_folded(copy.deepcopy(network).eval()))
    layers = dict(traced.named_modules())
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value: dict[str, str] = {}  # the name of the tensor of each traced node
    for node in traced.graph.nodes:
        inputs = [value[str(before)] for before in node.all_input_nodes]
        value[node.name] = name = str(node.name)
        if node.op == "placeholder":
            value[node.name] = "x"
        elif node.op == "output":
            nodes.append(helper.make_node("Identity", inputs, ["y"]))
        elif node.op == "call_function" and node.target in (operator.add, torch.add):
            nodes.append(helper.make_node("Add", inputs, [name], name))
        elif node.op == "call_module":
            layer = layers[str(node.target)]
            kind, attributes = _operator(layer)
            for part, tensor in layer.named_parameters(recurse=False):
                inputs.append(f"{name}_{part}")
                array = np.ascontiguousarray(tensor.detach().numpy())
                weights.append(numpy_helper.from_array(array, inputs[-1]))
            nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        else:
            raise DataError(f"export: expected a layer that can be exported, got {node.format_node()}")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", classes])
    graph = helper.make_graph(nodes, "zomirror", [x], [y], weights)
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, producer_name="zomirror", opset_imports=opsets, ir_version=_IR)
    onnx.checker.check_model(model, full_check=True)
    return model


def _operator(layer: nn.Module) -> tuple[str, dict[str, Any]]:
    """The ONNX operator of a layer, and its attributes."""
    if isinstance(layer, nn.Conv2d) and layer.groups == 1 and not isinstance(layer.padding, str):
        pads = [*layer.padding, *layer.padding]
        return "Conv", {"kernel_shape": layer.kernel_size, "strides": layer.stride, "pads": pads}
    if isinstance(layer, nn.MaxPool2d) and isinstance(layer.kernel_size, int) and layer.padding == 0:
        side, step = layer.kernel_size, layer.stride
        return "MaxPool", {"kernel_shape": [side, side], "strides": [step, step]}
    if isinstance(layer, nn.AdaptiveAvgPool2d) and layer.output_size == 1:
        return "GlobalAveragePool", {}
    if isinstance(layer, nn.Linear) and layer.bias is not None:
        return "Gemm", {"transB": 1}
    for kind, name in ((nn.ReLU, "Relu"), (nn.Flatten, "Flatten"), (nn.Identity, "Identity")):
        if isinstance(layer, kind):
            return name, {}
    raise DataError(f"export: expected a layer that can be exported, got {layer}")


def _folded(network: nn.Module) -> nn.Module:
    """Fold every batch norm into the convolution before it, in place."""
    for part in network.children():
        _folded(part)
    if isinstance(network, nn.Sequential):
        for i in range(len(network) - 1):
            first, second = network[i], network[i + 1]
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                network[i], network[i + 1] = fuse_conv_bn_eval(first, second), nn.Identity()
    return network
