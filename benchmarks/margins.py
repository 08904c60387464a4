"""Measure whether answers about images survive rounding to 8 bits and a little noise, and what that costs in l1.

Test images of MNIST and CIFAR-10 that the bundled network classifies correctly are explained (PN, PP) and attacked,
once with the default `kappa=None`, which asks for a small margin and gives images of 8 bits answers of 8 bits, and once
with `kappa=0`, the paper's. Each valid answer is rounded to 8 bits, and 20 times Gaussian noise with a standard
deviation of 0.001 of the range is added (clipped to the range); the network is asked again.

The l1 of both are compared on the images for which both are valid, as a ratio of means with its standard error
(jackknife), and as the median of the ratios: one search that has not settled can outweigh all others. The budget is
small (1,000 queries for a digit, 600 for CIFAR-10) and so are the images of CIFAR-10 (30), to save time.

    python benchmarks/margins.py                       runs what results/margins.json lacks, prints the table
    python benchmarks/margins.py --fresh               repeats everything
    python benchmarks/margins.py --model lenet --images 10     fewer images, prints only
    python benchmarks/margins.py --quick               prints the stored table
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit.machine import RESULTS, machine, store
from numpy.typing import NDArray

import zomirror as zm
from zomirror import datasets, models

Array = NDArray[Any]
BUDGETS = {"lenet": 1_000, "resnet20": 600}
IMAGES = {"lenet": 100, "resnet20": 30}
"""Images of each: of CIFAR-10 fewer, whose network is 50 times slower."""
KINDS = ("PN", "PP", "attack")
KAPPAS: dict[str, float | None] = {"default": None, "kappa=0": 0.0}
FROM, NOISE, DRAWS, CHUNK = 8_000, 0.001, 20, 10
"""Position in the test set, standard deviation of the noise, draws of it, images between two files."""


class Network:
    """A bundled network on images in [0, 1]."""

    def __init__(self, name: str) -> None:
        card = models.card(name)
        shape = (-1, 1, 1)
        self.mean, self.std = (np.array(one, np.float32).reshape(shape) for one in (card.mean, card.std))
        self.model = zm.as_classifier(models.path(name))

    def __call__(self, batch: Array) -> Array:
        """The scores."""
        return self.model(((batch - self.mean) / self.std).astype(np.float32))


def images_of(name: str, count: int) -> Array:
    """Test images that the network classifies correctly, channels first."""
    test = datasets.mnist("test") if name == "lenet" else datasets.cifar10("test")
    some: Array = test.images[FROM : FROM + 2 * count].astype(np.float32) / np.float32(255)
    some = some[:, None] if some.ndim == 3 else np.ascontiguousarray(some.transpose(0, 3, 1, 2))
    right = np.flatnonzero(Network(name)(some).argmax(axis=1) == test.labels[FROM : FROM + 2 * count])
    return some[right[:count]]


def tested(model: Network, x0: Array, kind: str, kappa: float | None, budget: int, seed: int) -> dict[str, Any]:
    """One answer, and how it fares."""
    start = time.process_time()
    if kind == "attack":
        e = zm.attack(model, x0, kappa=kappa, budget=budget, rng=seed)
    else:
        e = zm.explain(model, x0, kind=kind, kappa=kappa, budget=budget, rng=seed)
    seconds = time.process_time() - start
    seen = np.asarray(e.perturbed, np.float64)
    noise = NOISE * np.random.default_rng(seed).standard_normal((DRAWS, *seen.shape))
    batch = np.concatenate((seen[None], np.rint(seen * 255)[None] / 255, np.clip(seen + noise, 0, 1)))
    same = model(batch.astype(np.float32)).argmax(axis=1) == e.label
    holds = same if kind == "PP" else ~same
    return {
        "valid": bool(e.valid and holds[0]),
        "l1": float(f"{np.abs(e.x).sum(dtype=np.float64):.5g}"),
        "rounded": bool(holds[1]),
        "noisy": float(holds[2:].mean()),
        "queries": e.nfev,
        "seconds": round(seconds, 3),
    }


def line(rows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The summary of one model and kind: rows of both kappas."""
    found: dict[str, Any] = {}
    for name in KAPPAS:
        valid = [row for row in rows[name] if row["valid"]]
        found[name] = {
            "count": len(rows[name]),
            "valid": len(valid),
            "rounded": sum(row["rounded"] for row in valid),
            "noisy": float(np.mean([row["noisy"] for row in valid])) if valid else float("nan"),
        }
    pairs = [(a["l1"], b["l1"]) for a, b in zip(*(rows[name] for name in KAPPAS), strict=True)
             if a["valid"] and b["valid"]]  # fmt: skip
    if len(pairs) < 2:
        return found | {"more_l1": float("nan"), "error": float("nan"), "median_more": float("nan")}
    ours, papers = np.array(pairs).T
    without = (ours.sum() - ours) / (papers.sum() - papers)
    error = np.sqrt((ours.size - 1) * np.mean((without - without.mean()) ** 2))
    return (
        found
        | {"more_l1": float(ours.sum() / papers.sum() - 1), "error": float(error)}
        | {"median_more": float(np.median(ours / papers) - 1)}
    )


def keep(stored: dict[str, Any]) -> None:
    """Write results/margins.json."""
    table = [
        {"model": name, "kind": kind} | line(rows) for name, kinds in stored.items() for kind, rows in kinds.items()
    ]
    document = {"from": FROM, "budgets": BUDGETS, "noise": NOISE, "machine": machine(), "table": table}
    store("margins", document | {"answers": stored}, flat=True)


def show(stored: dict[str, Any]) -> None:
    """Print the table."""
    head = f"{'model':<10}{'kind':<8}{'kappa':<9}{'images':>7}{'valid':>7}{'rounded':>9}{'noisy':>8}"
    print(f"{head}{'more l1':>18}{'median':>8}")
    for name, kinds in stored.items():
        for kind, rows in kinds.items():
            one = line(rows)
            for kappa in KAPPAS:
                mine = one[kappa]
                more = f"{one['more_l1']:+.1%} +- {one['error']:.1%}".rjust(18) if kappa == "default" else ""
                more += f"{one['median_more']:>+8.1%}" if kappa == "default" else ""
                print(
                    f"{name:<10}{kind:<8}{kappa:<9}{mine['count']:>7}{mine['valid']:>7}{mine['rounded']:>9}"
                    f"{mine['noisy']:>8.1%}{more}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=tuple(BUDGETS))
    parser.add_argument("--images", type=int)
    parser.add_argument("--fresh", action="store_true", help="repeat stored runs")
    parser.add_argument("--quick", action="store_true", help="run nothing, print the stored table")
    given = parser.parse_args()
    path = RESULTS / "margins.json"
    whole = given.images is None
    stored: dict[str, Any] = json.loads(path.read_text())["answers"] if path.exists() and whole else {}
    if given.quick:
        show(stored)
        return
    for name in BUDGETS if given.model is None else (given.model,):
        model, images = Network(name), images_of(name, given.images or IMAGES[name])
        if given.fresh:
            stored.pop(name, None)
        kinds = stored.setdefault(name, {})
        for kind in KINDS:
            rows = kinds.setdefault(kind, {kappa: [] for kappa in KAPPAS})
            while (done := len(rows["kappa=0"])) < len(images):
                for i in range(done, min(done + CHUNK, len(images))):
                    for kappa, value in KAPPAS.items():
                        rows[kappa].append(tested(model, images[i], kind, value, BUDGETS[name], i))
                if whole:
                    keep(stored)
    show(stored)


if __name__ == "__main__":
    main()
