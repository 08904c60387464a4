"""The trained networks that come with the package: ONNX files, each with a card that says how it was made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from zomirror.errors import ArgumentError

__all__ = ["Card", "card", "names", "path"]


@dataclass(frozen=True)
class Card:
    """What a bundled network is: its data, its accuracy on the whole test set, how to make it again.

    The network reads (pixel / 255 - mean) / std, channels first; `facts` is the whole card as stored.
    """

    name: str
    data: str
    test_accuracy: float
    seed: int
    epochs: int
    sha256: str
    command: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    facts: dict[str, Any]


def names() -> tuple[str, ...]:
    """The names of the bundled networks."""
    found = [entry.name for entry in resources.files(__name__).iterdir()]
    return tuple(sorted(name.removesuffix(".onnx") for name in found if name.endswith(".onnx")))


def path(name: str) -> Path:
    """The ONNX file of a bundled network: input `x` (n, channels, height, width), output `y` (n, 10) logits."""
    return _file(name, ".onnx")


def card(name: str) -> Card:
    """The card of a bundled network."""
    facts = json.loads(_file(name, ".json").read_text(encoding="utf-8"))
    keys = ("name", "data", "test_accuracy", "seed", "epochs", "sha256", "command")
    mean, std = tuple(facts["input"]["mean"]), tuple(facts["input"]["std"])
    return Card(**{key: facts[key] for key in keys}, mean=mean, std=std, facts=facts)


def _file(name: str, suffix: str) -> Path:
    if name not in names():
        raise ArgumentError(f"name: expected one of {list(names())}, got {name!r}")
    # Wheels are installed as plain files, so a resource has a path that outlives this call.
    return Path(str(resources.files(__name__).joinpath(f"{name}{suffix}")))
