"""`zomirror train lenet|resnet20`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from zomirror.cli.arguments import Json
from zomirror.cli.show import say, say_json


class NetworkName(StrEnum):
    """The networks that can be trained."""

    LENET = "lenet"
    RESNET20 = "resnet20"


def train(
    name: Annotated[NetworkName, typer.Argument(help="lenet reads MNIST, resnet20 reads CIFAR-10.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the weights and batches.")] = 0,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Default: the number that the bundled network was trained for.")
    ] = None,
    out: Annotated[Path, typer.Option(file_okay=False, help="Directory for NAME.onnx and NAME.json.")] = Path(),
    *,
    json: Json = False,
) -> None:
    """Train a network as the bundled one was trained; resumes from the last checkpoint (needs the extra `torch`)."""
    from zomirror.paper.training import train as train_network

    out.mkdir(parents=True, exist_ok=True)
    trained = train_network(name.value, seed=seed, epochs=epochs, output=out)
    if json:
        say_json({"onnx": str(trained.onnx), "card": str(trained.card), "accuracy": trained.accuracy})
    else:
        say(f"{trained.onnx}: {trained.accuracy:.2%} of the test set; its card is {trained.card}")
