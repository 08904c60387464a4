"""`train`: load the data, fit the network, export it and write its card."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from rich import progress
from rich.console import Console

from zomirror import datasets
from zomirror.datasets import cache
from zomirror.paper.training import lenet, resnet20
from zomirror.paper.training.batches import prepare
from zomirror.paper.training.export import export, scores
from zomirror.paper.training.loop import Epoch, Watch, fit
from zomirror.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from zomirror.paper.training.plan import Plan

    Build = Callable[[], nn.Module]
    Report = Callable[[str], None]


@dataclass(frozen=True)
class Trained:
    """The exported file, its card, and the accuracy of the exported file on the whole test set."""

    onnx: Path
    card: Path
    accuracy: float


@dataclass(frozen=True)
class Training:
    """A network, its plan, and the data set it is trained on."""

    build: Build
    plan: Plan
    data: str
    load: Callable[[str], datasets.Dataset]


TRAININGS = {
    "lenet": Training(lenet.lenet, lenet.PLAN, "MNIST", datasets.mnist),
    "resnet20": Training(resnet20.resnet20, resnet20.PLAN, "CIFAR-10", datasets.cifar10),
}


def train(name: str, *, seed: int, epochs: int | None, output: Path | None, report: Report) -> Trained:
    """See `zomirror.paper.training.train`."""
    training = TRAININGS[name]
    plan = training.plan if epochs is None else training.plan.shortened(epochs)
    learn, test = training.load("train"), training.load("test")
    directory = Path.cwd() if output is None else output
    return make(training.build, plan, learn, test, data=training.data, seed=seed, output=directory, report=report)


def make(
    build: Build,
    plan: Plan,
    learn: datasets.Dataset,
    test: datasets.Dataset,
    *,
    data: str,
    seed: int,
    output: Path,
    report: Report,
) -> Trained:
    """Fit, export and describe; the checkpoint is in the cache, in training/NAME-DIGEST."""
    checkpoint = cache.directory() / "training" / f"{plan.name}-{plan.digest(seed)}" / "checkpoint.pt"
    with _bar() as bar:
        task = bar.add_task(f"training {plan.name}", total=plan.epochs * (len(learn) // plan.batch_size))
        watch = Watch(
            step=lambda epoch, batch, batches: bar.update(task, completed=epoch * batches + batch),
            epoch=lambda record: report(_line(record, plan)),
        )
        network, history = fit(build, plan, learn, test, seed=seed, checkpoint=checkpoint, watch=watch)
    side = plan.side(plan.epochs)
    onnx, card = output / f"{plan.name}.onnx", output / f"{plan.name}.json"
    export(network, onnx, (len(plan.mean), side, side))
    right = accuracy_of(onnx, test, plan)
    facts = describe(plan, data, seed, history, right)
    facts |= {"sha256": cache.sha256(onnx), "bytes": onnx.stat().st_size}
    with cache.replacing(card) as file:
        file.write((json.dumps(facts, indent=2) + "\n").encode())
    return Trained(onnx, card, right)


def accuracy_of(onnx: Path, data: datasets.Dataset, plan: Plan) -> float:
    """The fraction of the images that an exported file classifies correctly in onnxruntime."""
    images = torch.from_numpy(data.images)
    x = prepare(images if images.ndim == 4 else images[..., None], plan, plan.side(plan.epochs))
    found = scores(onnx.read_bytes(), x.contiguous().numpy()).argmax(axis=1)
    return float(np.mean(found == data.labels))


def describe(plan: Plan, data: str, seed: int, history: tuple[Epoch, ...], right: float) -> dict[str, Any]:
    """The card of a trained network: data, plan, seed and accuracy."""
    side = plan.side(plan.epochs)
    scaling = {"scaling": "(pixel / 255 - mean) / std", "mean": plan.mean, "std": plan.std}
    return {
        "name": plan.name,
        "data": f"{data}, the whole training set",
        "input": {"name": "x", "shape": ["n", len(plan.mean), side, side]} | scaling,
        "output": {"name": "y", "meaning": "logits of the ten classes"},
        "test_accuracy": right,
        "seed": seed,
        "epochs": plan.epochs,
        "plan": asdict(plan),
        "final_training_loss": history[-1].loss,
        "cpu_seconds": round(sum(record.cpu_seconds for record in history)),
        "command": f"zomirror train {plan.name} --seed {seed} --epochs {plan.epochs}",
        "made_with": {"zomirror": __version__, "torch": torch.__version__.split("+")[0]},
        "licence": "as the package",
    }


def _bar() -> progress.Progress:
    console = Console(stderr=True)
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(*columns, console=console, disable=not console.is_terminal)


def _line(record: Epoch, plan: Plan) -> str:
    return (
        f"{plan.name} epoch {record.epoch + 1}/{plan.epochs}: side {record.side}, loss {record.loss:.4f}, "
        f"{record.probe:.2%} of 2,000 test images, {record.seconds:.0f} s"
    )
