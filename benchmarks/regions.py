"""Photographs, texts and series in parts: size, pieces, rows and validity of PPs and PNs, beside other methods.

    python benchmarks/regions.py photos [N ...]    20 photographs, EfficientNet-lite0, every default
    python benchmarks/regions.py peers [N ...]     one grey baseline: ours beside SEDC, occlusion and RISE
    python benchmarks/regions.py rex [N ...]       the same at 2,000 rows, beside ReX (rex-xai)
    python benchmarks/regions.py texts             50 texts of 20 newsgroups, and brute force on short ones
    python benchmarks/regions.py series            GunPoint
    python benchmarks/regions.py cells             brute force on digits in 12 regions

Each command adds its lines to results/regions.json; `show` prints the medians. Seconds are CPU seconds of one core. The
settings of the search were chosen on the photographs with even numbers (TUNED); medians are given for the others, too.
A photograph that the network does not recognise is listed and left out of the medians.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit import part_peers, peer_env
from benchmarks.kit.efficientnet import MEAN, NAMES, STD, network, photographs
from benchmarks.kit.machine import RESULTS, machine
from benchmarks.kit.part_series import CLASSES, series_model
from benchmarks.kit.part_texts import short_texts, text_model, texts
from numpy.typing import NDArray
from scipy import ndimage

import zomirror as zm
from zomirror.drawing.plot import plot_grid
from zomirror.features.image_axes import ImageAxes
from zomirror.features.regions import blurred, superpixels

Array = NDArray[Any]
TUNED = range(0, 20, 2)
HELD_OUT = (1, 5, 9, 13, 17)
PATH = RESULTS / "regions.json"
AXES = ImageAxes(1, 2, 0)
SERIES = Path(__file__).resolve().parent.parent / "docs" / "images" / "series.png"
PICTURES = Path(__file__).resolve().parent.parent / "out" / "regions"


class Net:
    """EfficientNet-lite0 on pixels in 0..1."""

    def __init__(self) -> None:
        self.net = zm.onnx_classifier(network(), threads=1)

    def __call__(self, batch: Array) -> Array:
        """Logits."""
        return np.concatenate([self.net(((b - MEAN) / STD).astype(np.float32)) for b in _batches(batch)])


def _batches(batch: Array) -> list[Array]:
    return np.array_split(batch, -(-len(batch) // 16))


def baselines(photo: Array) -> dict[str, Array]:
    """What surrounds a kept part, made here again to judge every answer by it."""
    mean = np.broadcast_to(photo.mean(axis=(1, 2), keepdims=True), photo.shape)
    return {"blur": blurred(photo, AXES), "grey": np.full(photo.shape, 0.5), "mean": mean}


def judged(net: Net, photo: Array, mask: Array) -> dict[str, Any]:
    """The size of a mask (h, w), its connected pieces, and the baselines over which it alone keeps the class."""
    found = baselines(photo)
    seen = np.stack([np.where(mask, photo, base) for base in found.values()]).astype(np.float32)
    label = int(net(photo[None])[0].argmax())
    keeps = [name for name, row in zip(found, net(seen), strict=True) if int(row.argmax()) == label]
    return {"percent": round(100 * float(mask.mean()), 2), "pieces": int(ndimage.label(mask)[1]), "keeps": keeps}


def mask_of(found: zm.Explanation) -> Array:
    """The pixels of the parts of a PP or PN."""
    chosen: Array = np.isin(np.asarray(found.labels), np.flatnonzero(found.x))
    return np.asarray(np.broadcast_to(chosen, found.x0.shape)[0])


def explained(net: Net, photo: Array, kind: str, **given: Any) -> tuple[dict[str, Any], Array]:
    """One call of explain(), judged anew."""
    baseline = given.pop("baseline", None)
    features = zm.Regions() if baseline is None else zm.Regions(baseline=baseline)
    started = time.process_time()
    found = zm.explain(net, photo, kind=kind, features=features, **given)
    seconds = time.process_time() - started
    mask = mask_of(found)
    line = {"valid": found.valid, "rows": found.nfev, "seconds": round(seconds, 2), **judged(net, photo, mask)}
    if kind == "PN":
        seen = np.where(mask, baselines(photo)["blur"], photo).astype(np.float32)
        line["seen_as"] = int(net(seen[None])[0].argmax())
        line["valid"] = bool(line["valid"] and line["seen_as"] != found.label)
        del line["keeps"]
    return line, mask


def photos(net: Net, numbers: list[int]) -> None:
    """PP and PN with every default."""
    data = photographs()
    for i in numbers or range(len(data)):
        photo, truth = data[i]
        line: dict[str, Any] = {"class": NAMES[truth], "recognised": int(net(photo[None])[0].argmax()) == truth}
        masks = []
        for kind in ("PP", "PN"):
            line[kind], mask = explained(net, photo, kind)
            masks.append(mask)
        keep("photos", str(i), line)
        draw(photo, masks, f"{i:02d}-default")


def peers(net: Net, numbers: list[int]) -> None:
    """One grey baseline for everyone; each method judged at full contrast, every row counted."""
    data = photographs()
    for i in numbers or HELD_OUT:
        photo, _ = data[i]
        label, grey = int(net(photo[None])[0].argmax()), baselines(photo)["grey"]
        rows = 0

        def ask(masks: Array) -> Array:
            nonlocal rows
            rows += len(masks)
            scores = net(np.where(masks[:, None], photo, grey).astype(np.float32))  # noqa: B023
            own = scores[:, label].copy()  # noqa: B023
            scores[:, label] = -np.inf  # noqa: B023
            return np.asarray(scores.max(axis=1) - own, np.float64)

        line: dict[str, Any] = {}
        segments = superpixels(photo, AXES, 60)
        runs: dict[str, Callable[[], Array | None]] = {
            "SEDC": lambda: part_peers.sedc(ask, segments, 400),  # noqa: B023
            "occlusion": lambda: part_peers.occlusion(ask, photo.shape[1:]),  # noqa: B023
            "RISE": lambda: part_peers.rise(ask, photo.shape[1:], 400),  # noqa: B023
        }
        masks = []
        known = stored().get("grey", {}).get(str(i), {})
        for name, run in runs.items():
            if name in known:  # the others are measured once
                line[name] = known[name]
                continue
            rows, started = 0, time.process_time()
            mask = run()
            line[name] = {"rows": rows, "seconds": round(time.process_time() - started, 2)}
            line[name] |= {"percent": None} if mask is None else judged(net, photo, mask)
            masks += [] if mask is None else [mask]
        few = max(100, line["SEDC"]["rows"])  # explain() refuses fewer than 100
        line["zomirror, rows of SEDC or 100"], _ = explained(net, photo, "PP", baseline="grey", budget=few)
        line["zomirror"], mask = explained(net, photo, "PP", baseline="grey")
        keep("grey", str(i), line)
        draw(photo, [mask, *masks], f"{i:02d}-grey")


def rex_run(net: Net, photo: Array, i: int) -> dict[str, Any]:
    """What ReX keeps of a photograph, in its own environment."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "photo.png"
        Image.fromarray((photo.transpose(1, 2, 0) * 255).round().astype(np.uint8)).save(path)
        script = Path(__file__).parent / "kit" / "rex_run.py"
        given = [str(network()), str(path), str(MEAN), str(STD)]
        one = peer_env.run(script, *given, environment="regions", timeout=3600)
    bits = np.unpackbits(np.frombuffer(base64.b64decode(one["mask"]), np.uint8))
    mask = bits[: int(np.prod(one["shape"]))].reshape(one["shape"]).astype(bool)
    draw(photo, [mask], f"{i:02d}-rex")
    return {"rows": one["rows"], "seconds": round(one["seconds"], 2), **judged(net, photo, mask)}


def rex(net: Net, numbers: list[int]) -> None:
    """ReX with its own settings, and ours with 2,000 rows, both over grey."""
    data = photographs()
    for i in numbers or HELD_OUT:
        photo, _ = data[i]
        line = {"ReX": stored().get("rex", {}).get(str(i), {}).get("ReX")}  # it is measured once
        if line["ReX"] is None:
            line["ReX"] = rex_run(net, photo, i)
            keep("rex", str(i), line)
        line["zomirror"], mask = explained(net, photo, "PP", baseline="grey", budget=2000)
        keep("rex", str(i), line)
        draw(photo, [mask], f"{i:02d}-2000")


def brute(model: Any, place: Any, kind: str, label: int) -> int | None:
    """The size of the smallest valid set of at most 12 parts, by asking all of them."""
    d = place.d
    sets = ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(np.float64)
    kept = model(place.inputs(sets)).argmax(axis=1) == label
    sizes = sets.sum(axis=1)[kept if kind == "PP" else ~kept]
    return int(sizes.min()) if sizes.size else None


def words() -> None:
    """PP and PN of 50 texts that the training has not seen; brute force on 60 short ones."""
    model, given = text_model(), texts(50)
    for kind in ("PP", "PN"):
        started = time.process_time()
        found = [zm.explain(model, one, kind=kind) for one in given]
        again = model.predict([one.perturbed for one in found])
        before = model.predict(given)
        line: dict[str, Any] = {
            "texts": len(found),
            "valid": sum(
                one.valid and (a == b) == (kind == "PP") for one, a, b in zip(found, again, before, strict=True)
            ),
            "median_words_of_the_text": float(np.median([one.x.size for one in found])),
            "median_words": float(np.median([one.nnz for one in found])),
            "most_words": max(one.nnz for one in found),
            "median_rows": float(np.median([one.nfev for one in found])),
            "most_rows": max(one.nfev for one in found),
            "seconds": round(time.process_time() - started, 1),
        }
        gaps = []
        features = zm.Words()
        for text in short_texts(60):
            place = features.place(text, kind)
            classifier = features.classifier(model)
            scores = classifier(place.inputs(np.stack([place.as_it_is, place.absent if kind == "PP" else place.start])))
            if kind == "PP" and scores[0].argmax() == scores[1].argmax():
                continue  # the empty text has this class already
            least = brute(classifier, place, kind, int(scores[0].argmax()))
            one = zm.explain(model, text, kind=kind)
            if least is not None:
                gaps.append(one.nnz - least if one.valid else 99)
        keep("texts", kind, line | {"short": gap_line(gaps)})


def gap_line(gaps: list[int]) -> dict[str, Any]:
    """How often the smallest set was found, one part more, or more (also counted: a valid set exists, none found)."""
    return {"compared": len(gaps), "smallest": sum(g == 0 for g in gaps), "one_more": sum(g == 1 for g in gaps),
            "more": sum(g > 1 for g in gaps)}  # fmt: skip


def cells() -> None:
    """Brute force: the twenty bundled digits in 12 regions each, LeNet, over 0, the mean and another digit."""
    model = zm.onnx_classifier(zm.models.path("lenet"), threads=1)
    labels = np.repeat(np.repeat(np.arange(12).reshape(4, 3), 7, axis=0), 10, axis=1)[:, 1:29]
    images = zm.datasets.digits().images.astype(np.float32)[:, None] / 255
    for kind in ("PP", "PN"):
        gaps = []
        for i, x in enumerate(images):
            for baseline in (np.zeros_like(x), "mean", images[(i + 7) % len(images)]):
                features = zm.Regions(labels, baseline=baseline)
                place, classifier = features.place(x, kind), features.classifier(model)
                ends = np.stack([place.as_it_is, place.absent if kind == "PP" else place.start])
                before, after = classifier(place.inputs(ends)).argmax(axis=1)
                if kind == "PP" and before == after:
                    continue  # the background alone has this class
                least = brute(classifier, place, kind, int(before))
                one = zm.explain(model, x, kind=kind, features=features)
                if least is not None:
                    gaps.append(one.nnz - least if one.valid else 99)
        keep("cells", kind, gap_line(gaps))


def series() -> None:
    """The first 40 test series of GunPoint, a linear model of scikit-learn."""
    model, X, accuracy = series_model()
    drawn: list[zm.Explanation] = []
    for kind in ("PP", "PN"):
        found = [zm.explain(model, x, kind=kind, features=zm.Windows(), class_names=CLASSES) for x in X[:40]]
        answered = [one for one in found if one.valid]
        line = {
            "accuracy": round(accuracy, 3),
            "series": len(found),
            "valid": len(answered),
            "median_percent": round(float(np.median([100 * one.l1_norm for one in answered])), 2),
            "median_rows": float(np.median([one.nfev for one in found])),
            "already": sum("baseline alone" in one.message for one in found),
        }
        keep("series", kind, line)
        drawn.append(next(one for one in answered if "baseline alone" not in one.message))
    plot_grid(drawn).savefig(SERIES, dpi=120)


def keep(part: str, name: str, line: dict[str, Any]) -> None:
    """Write a line down at once; other commands may write other parts meanwhile."""
    document = stored()
    lines = document.setdefault(part, {})
    lines[name] = line
    if name.isdecimal():
        document[part] = dict(sorted(lines.items(), key=lambda item: int(item[0])))
    document["machine"] = machine()
    PATH.write_text(json.dumps(document, indent=1) + "\n")
    print(part, name, json.dumps(line), flush=True)


def stored() -> dict[str, Any]:
    """What was measured so far."""
    return json.loads(PATH.read_text()) if PATH.exists() else {}


def draw(photo: Array, masks: list[Array], name: str) -> None:
    """The photograph, and each mask in it, for a look."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.5 * (1 + len(masks)), 2.6), layout="constrained")
    seen = photo.transpose(1, 2, 0)
    pictures = [
        seen,
        *(np.where(mask[..., None], seen, 0.75 + 0.25 * seen.mean(axis=2, keepdims=True)) for mask in masks),
    ]
    for axes, picture in zip(figure.subplots(1, len(pictures)), pictures, strict=True):
        axes.imshow(picture)
        axes.axis("off")
    PICTURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURES / f"{name}.png", dpi=90)


def show() -> None:
    """Medians of what is stored."""
    document = stored()
    lines = {int(i): one for i, one in document.get("photos", {}).items() if one["recognised"]}
    for title, chosen in (
        ("all", list(lines)),
        ("tuned", [i for i in lines if i in TUNED]),
        ("held out", [i for i in lines if i not in TUNED]),
    ):
        for kind in ("PP", "PN"):
            some = [lines[i][kind] for i in chosen]
            if not some:
                continue
            every = sum(len(one["keeps"]) == 3 for one in some) if kind == "PP" else sum(one["valid"] for one in some)
            print(f"{title} {kind}: {every} of {len(some)} valid, {_medians(some)}")
    for part in ("grey", "rex"):
        names = sorted({name for line in document.get(part, {}).values() for name in line})
        for name in names:
            some = [line[name] for line in document[part].values() if line.get(name, {}).get("percent") is not None]
            print(f"{part} {name}: {len(some)} of {len(document[part])} found, {_medians(some)}")
    for part in ("texts", "series", "cells"):
        print(part, json.dumps(document.get(part)))


def _medians(lines: list[dict[str, Any]]) -> str:
    found = {key: np.median([one[key] for one in lines]) for key in ("percent", "pieces", "rows", "seconds")}
    most = max(one["rows"] for one in lines)
    return ", ".join(f"{key} {value:g}" for key, value in found.items()) + f" (medians), at most {most} rows"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["photos", "peers", "rex", "texts", "series", "cells", "show"])
    parser.add_argument("numbers", type=int, nargs="*")
    given = parser.parse_args()
    if given.what in ("show", "texts", "series", "cells"):
        {"show": show, "texts": words, "series": series, "cells": cells}[given.what]()
    else:
        {"photos": photos, "peers": peers, "rex": rex}[given.what](Net(), given.numbers)


if __name__ == "__main__":
    main()
