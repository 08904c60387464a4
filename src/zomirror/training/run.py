"""`train`: data, loop, export and card of one network, in that order."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import zomirror
from zomirror import datasets
from zomirror.datasets import cache
from zomirror.training.batches import prepare
from zomirror.training.export import export, scores
from zomirror.training.loop import Epoch, Watch, fit

if TYPE_CHECKING:
    from zomirror.training.plan import Plan

_DATA = {"lenet": datasets.mnist, "resnet20": datasets.cifar10}


@dataclass(frozen=True)
class Trained:
    """The exported file, its card, and the accuracy of that very file on the whole test set."""

    onnx: Path
    card: Path
    accuracy: float


def train(name: str, *, seed: int, epochs: int | None, output: Path | None) -> Trained:
    """See `zomirror.training.train`; the checkpoint lies in the cache, in training/NAME-DIGEST."""
    module = importlib.import_module(f"zomirror.training.{name}")
    plan: Plan = module.PLAN if epochs is None else module.PLAN.shortened(epochs)
    output = Path.cwd() if output is None else output
    learn, test = _DATA[name]("train"), _DATA[name]("test")
    checkpoint = cache.directory() / "training" / f"{name}-{plan.digest(seed)}" / "checkpoint.pt"
    # The lanes are the parallelism; threads inside an operator would only wait for each other.
    torch.set_num_threads(1)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"training {name}", total=plan.epochs * (len(learn) // plan.batch_size))
        watch = Watch(
            step=lambda epoch, batch, batches: bar.update(task, completed=epoch * batches + batch),
            epoch=lambda record: console.print(_line(record, plan), highlight=False, soft_wrap=True),
        )
        build = getattr(module, name)
        network, history = fit(build, plan, learn, test, seed=seed, checkpoint=checkpoint, watch=watch)
    side = plan.side(plan.epochs)
    onnx, card = output / f"{name}.onnx", output / f"{name}.json"
    export(network, onnx, (len(plan.mean), side, side))
    right = accuracy_of(onnx, test, plan)
    facts = describe(plan, seed, history, right) | {"sha256": cache.sha256(onnx), "bytes": onnx.stat().st_size}
    with cache.replacing(card) as file:
        file.write((json.dumps(facts, indent=2) + "\n").encode())
    return Trained(onnx, card, right)


def accuracy_of(onnx: Path, data: datasets.Dataset, plan: Plan) -> float:
    """Share of the images that an exported file classifies correctly in onnxruntime."""
    images = torch.from_numpy(data.images)
    x = prepare(images if images.ndim == 4 else images[..., None], plan, plan.side(plan.epochs))
    found = scores(onnx.read_bytes(), x.contiguous().numpy()).argmax(axis=1)
    return float(np.mean(found == data.labels))


def describe(plan: Plan, seed: int, history: tuple[Epoch, ...], right: float) -> dict[str, Any]:
    """The card of a trained network: what it was made from and how, and what it reached."""
    catalogue = {"lenet": "MNIST", "resnet20": "CIFAR-10"}
    shape = ["n", len(plan.mean), plan.side(plan.epochs), plan.side(plan.epochs)]
    return {
        "name": plan.name,
        "data": f"{catalogue[plan.name]}, the whole training set",
        "input": {"name": "x", "shape": shape, "scaling": "(pixel / 255 - mean) / std"}
        | {"mean": plan.mean, "std": plan.std},
        "output": {"name": "y", "meaning": "logits of the ten classes"},
        "test_accuracy": right,
        "seed": seed,
        "epochs": plan.epochs,
        "plan": asdict(plan),
        "final_training_loss": history[-1].loss,
        "cpu_seconds": round(sum(record.cpu_seconds for record in history)),
        "command": f"zomirror train {plan.name} --seed {seed} --epochs {plan.epochs}",
        "made_with": {"zomirror": zomirror.__version__, "torch": torch.__version__.split("+")[0]},
        "licence": "as the package",
    }


def _line(record: Epoch, plan: Plan) -> str:
    return (
        f"{plan.name} epoch {record.epoch + 1}/{plan.epochs}: side {record.side}, loss {record.loss:.4f}, "
        f"{record.probe:.2%} of 2,000 test images, {record.seconds:.0f} s"
    )
