"""Explain photographs of ImageNet size with EfficientNet-lite0: d = 150,528, one call each for a PP and a PN.

The photographs are explained as they come, by regions and with every default: 300 queries, a PP that keeps the class
over a blurred, a grey and a mean background, a PN that is blurred. The runs are durable in `--out`, so finished
photographs cost no further queries.

    python benchmarks/imagenet.py [--photos 0 5 1]     writes docs/images/imagenet.png and, of the first, photograph.png
    python benchmarks/imagenet.py --accuracy     how many of the 20 photographs are recognised

`benchmarks/regions.py` measures all of them, beside other methods.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.kit.efficientnet import MEAN, NAMES, STD, Array, network, photographs
from matplotlib.figure import Figure

import zomirror as zm
from zomirror.drawing.marked_parts import counted_of, overlay

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "imagenet.png"
FIRST = PICTURE.with_name("photograph.png")
"""The first photograph alone, for the front page."""


def draw(rows: list[tuple[Array, list[zm.Explanation]]], path: Path) -> None:
    """Each photograph, the part that alone keeps its class, and the part that must be blurred to change it."""
    figure = Figure(figsize=(8, 2.9 * len(rows) + 0.1), layout="constrained")
    for line, (photo, found) in zip(figure.subplots(len(rows), 3, squeeze=False), rows, strict=True):
        seen = photo.transpose(1, 2, 0)
        titles = [f"input: {NAMES.get(found[0].label, found[0].label)}"]
        for one in found:
            after = "" if one.kind == "PP" else f", seen as {NAMES.get(one.contrast_label, one.contrast_label)}"
            titles.append(f"{one.kind}: {counted_of(one)}{after}\n{one.nfev} queries")
        for axes, picture, title in zip(line, [seen, *(overlay(one, seen) for one in found)], titles, strict=True):
            axes.imshow(picture)
            axes.set_title(title, fontsize=8)
            axes.axis("off")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, nargs="+", default=[0, 5, 1])
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "imagenet", help="where the runs are written")
    parser.add_argument("--accuracy", action="store_true")
    given = parser.parse_args()
    net, photos = zm.onnx_classifier(network(), threads=1), photographs()
    if given.accuracy:
        right = [int(net(((photo - MEAN) / STD)[None])[0].argmax()) == truth for photo, truth in photos]
        print(f"{sum(right)} of {len(right)} recognised: {[i for i, r in enumerate(right) if r]}")
        return
    features, rows = zm.Regions(mean=MEAN, std=STD), []
    for i in given.photos:
        runs = [
            zm.explain(net, photos[i][0], kind=kind, features=features, budget=given.budget,
                       run_dir=given.out / f"{i:02d}-{kind}")
            for kind in ("PP", "PN")
        ]  # fmt: skip
        rows.append((photos[i][0], runs))
        print(i, *(one.words() for one in runs), sep="\n  ", flush=True)
    draw(rows, PICTURE)
    draw(rows[:1], FIRST)


if __name__ == "__main__":
    main()
