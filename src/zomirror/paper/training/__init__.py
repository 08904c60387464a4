"""Training of the bundled networks. It needs the extra `torch`, which is imported when training starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zomirror.errors import ArgumentError, ZomirrorError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zomirror.paper.training.run import Trained

__all__ = ["NAMES", "train"]

NAMES = ("lenet", "resnet20")


def train(
    name: str,
    *,
    seed: int = 0,
    epochs: int | None = None,
    output: Path | None = None,
    report: Callable[[str], None] = lambda _line: None,
) -> Trained:
    """Train "lenet" on MNIST or "resnet20" on CIFAR-10 and export it to ONNX; an interrupted training is resumed.

    Parameters
    ----------
    name : {"lenet", "resnet20"}
        The network.
    seed : int
        The seed of the weights and of the batches.
    epochs : int, optional
        By default those of the network's plan.
    output : Path, optional
        The directory of the files NAME.onnx and NAME.json (the card); by default the working directory.
    report : callable
        Called with one line of text per epoch. A progress bar is shown on a terminal.
    """
    if name not in NAMES:
        raise ArgumentError(f"name: expected one of {list(NAMES)}, got {name!r}")
    try:
        from zomirror.paper.training import run
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "onnx"):
            raise
        raise ZomirrorError(
            f"training needs {error.name}, which is not installed: pip install 'zomirror[torch]'"
        ) from error
    return run.train(name, seed=seed, epochs=epochs, output=output, report=report)
