"""What explanations cost beside their model, and how F falls with the budget; explain.py stores the results."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.kit import paper_lenet
from numpy.typing import NDArray

import zomirror as zm
from zomirror import datasets, models
from zomirror.classifiers import Classifier

Array = NDArray[Any]
LIMITS = {"bundled lenet": 0.5, "paper's lenet": 0.1, "bundled resnet20": 0.02}
"""The aim for the time outside the model in units of the time inside it."""
POSITIONS = {"digits": 8_800, "photographs": 6_000}
"""Where the test sets of the curve begin; no input from there on was used for tuning."""
BUDGETS = {"PN": (500, 1_000, 2_000), "PP": (1_000, 2_000)}
LOCKSTEPS = (1, 8, 32)


class Kept:
    """A model that keeps a copy of every batch."""

    def __init__(self, model: Classifier) -> None:
        self.model, self.batches = model, list[Array]()

    def __call__(self, batch: Array) -> Array:
        """Scores of the batch."""
        self.batches.append(batch.copy())
        return self.model(batch)


def inputs(data: str, position: int, of_each: int, model: Classifier) -> tuple[list[int], list[Array]]:
    """Test inputs from a position on that the model classifies correctly, of each class as many; and their places."""
    test = datasets.mnist("test") if data == "digits" else datasets.cifar10("test")
    images = test.images[position : position + 600].astype(np.float32) / np.float32(255)
    images = images[:, None] if data == "digits" else np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    labels = test.labels[position : position + 600]
    right = np.argmax(model(images), axis=1) == labels
    chosen = [int(i) for label in range(10) for i in np.flatnonzero(right & (labels == label))[:of_each]]
    return [position + i for i in chosen], [images[i] for i in chosen]


def curve(data: str, of_each: int) -> Iterator[dict[str, Any]]:
    """Median, mean and largest F of each kind and budget, kappa = 0."""
    model = zm.as_classifier(models.path("lenet" if data == "digits" else "resnet20"))
    _, chosen = inputs(data, POSITIONS[data], of_each, model)
    for kind, budgets in BUDGETS.items():
        for budget in budgets:
            found = zm.explain_many(
                model, chosen, kind=kind, budget=budget, kappa=0.0, lockstep=10, rng=0, progress=False
            )
            F = [e.objective for e in found]
            yield {
                "kind": kind,
                "budget": budget,
                "inputs": len(found),
                "median": statistics.median(F),
                "mean": statistics.fmean(F),
                "largest": max(F),
                "valid": sum(e.valid for e in found) / len(found),
            }


def cost(count: int) -> Iterator[dict[str, Any]]:
    """Processor time outside and inside the model at the default budget: the model is given the same batches again."""
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder, "lenet.onnx")
        large.write_bytes(paper_lenet.content())
        named = {
            "bundled lenet": models.path("lenet"),
            "paper's lenet": large,
            "bundled resnet20": models.path("resnet20"),
        }
        for name, path in named.items():
            model, data = zm.as_classifier(path), "photographs" if "resnet" in name else "digits"
            right = zm.as_classifier(models.path("resnet20" if data == "photographs" else "lenet"))
            _, chosen = inputs(data, 3_000, 1, right)
            for kind in BUDGETS:
                yield {"model": name, "kind": kind, "limit": LIMITS[name]} | _measured(model, chosen[:count], kind)


def _measured(model: Classifier, chosen: list[Array], kind: str) -> dict[str, Any]:
    outside, inside, rows, calls = [], [], 0, 0
    for x0 in chosen:
        kept = Kept(model)
        began = time.process_time()
        zm.explain(kept, x0, kind=kind, rng=0, progress=False)
        both = time.process_time() - began
        began = time.process_time()
        for batch in kept.batches:
            model(batch)
        inside.append(time.process_time() - began)
        outside.append(both - inside[-1])
        rows, calls = rows + sum(map(len, kept.batches)), calls + len(kept.batches)
    return {
        "inputs": len(chosen),
        "outside_milliseconds": 1e3 * statistics.median(outside),
        "inside_milliseconds": 1e3 * statistics.median(inside),
        "ratio": statistics.median(out / within for out, within in zip(outside, inside, strict=True)),
        "rows": rows / len(chosen),
        "calls": calls / len(chosen),
    }


def lockstep(count: int) -> Iterator[dict[str, Any]]:
    """Processor time of one explanation of many, by how many are searched at a time."""
    model = zm.as_classifier(models.path("lenet"))
    _, chosen = inputs("digits", 3_000, -(-count // 10), model)
    for kind in BUDGETS:
        for together in LOCKSTEPS:
            began = time.process_time()
            zm.explain_many(model, chosen[:count], kind=kind, lockstep=together, rng=0, progress=False)
            seconds = (time.process_time() - began) / count
            yield {"kind": kind, "lockstep": together, "inputs": count, "milliseconds_each": 1e3 * seconds}
