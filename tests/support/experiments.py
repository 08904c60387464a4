"""Outcomes of runs that never took place, with curves that are known, and a few short runs that can."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from zomirror.paper.grid import Task, grid
from zomirror.paper.images import BundledNetwork
from zomirror.paper.outcome import RunOutcome, steps
from zomirror.paper.settings import PAPER, RECOMMENDED, Algorithm

Shape = Callable[[int], float]
"""F(x_t) / F(x_1) after so many steps."""


def falling(to: float, within: float = 50.0) -> Shape:
    """An exponential fall to a value."""
    return lambda t: to + (1 - to) * float(np.exp(-5 * t / within))


def power(shape: Shape, exponent: float) -> Shape:
    """The same curve, a little lower."""
    return lambda t: float(shape(t) ** exponent)


def made(algorithm: str, shape: Shape, *, image: int = 0, start: float = 40.0, **other: Any) -> RunOutcome:
    known: dict[str, Any] = {
        "data": "mnist",
        "settings": "printed",
        "kind": "PN",
        "algorithm": algorithm,
        "image": image,
        "label": image % 10,
        "iterations": 200,
        "valid": True,
        "nnz": 20,
        "queries": 40_201,
        "seconds": 1.0,
    } | other
    key = hashlib.sha256(repr(sorted(known.items())).encode()).hexdigest()[:20]
    fun = tuple(start * shape(t) for t in steps(int(known["iterations"])))
    return RunOutcome(key=key, fun=fun, **known)


def study(shapes: dict[str, Shape], images: Iterable[int] = range(10), **other: Any) -> list[RunOutcome]:
    """All algorithms on some images, a little different on each; those without a shape of their own stay high."""
    return [
        made(name, power(shapes.get(name, falling(0.9)), 1 + image / 100), image=image, **other)
        for image in images
        for name in [one.name for one in (*PAPER, RECOMMENDED)]
    ]


GOOD: dict[str, Shape] = {
    "adaexpmd": falling(0.05),
    "expmd-1": falling(0.05, 45),
    "expmd-10": falling(0.2, 200),
    "psgd-1": falling(0.3),
    "psgd-10": falling(0.053, 120),
    "recommended": falling(0.04, 20),
}
"""What the paper claims of PN on MNIST."""


def small(lenet: BundledNetwork, images: Any, count: int = 4, iterations: int = 3) -> list[Task]:
    """Some runs of a few iterations."""
    algorithms = [Algorithm.named(name) for name in ("adaexpmd", "psgd-10", "recommended")]
    return grid("mnist", "printed", lenet, images, algorithms=algorithms, iterations=iterations)[:count]
