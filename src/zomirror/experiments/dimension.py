"""The study of the dimension: the same digits and the same network, every pixel split into s x s.

The network sees averages of the squares, so that d grows from 784 to 3,136 and 12,544 while what it can be shown
stays the same. Counted are the queries until F(x_t) / F(x_1) falls to a fixed value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from zomirror.experiments.grid import Task
from zomirror.experiments.outcome import Outcome, steps
from zomirror.experiments.pictures import Network
from zomirror.experiments.settings import ADAPTIVE, ETAS, ITERATIONS, QUERIES, Algorithm

SCALES = (1, 2, 4)
SIDE = 28
TARGET = 0.1
PSGD = tuple(Algorithm("psgd", eta) for eta in ETAS[:3])


@dataclass(frozen=True, slots=True)
class Growth:
    """How the queries to the target grow with the dimension."""

    algorithm: Algorithm
    title: str
    dimensions: tuple[int, ...]
    queries: tuple[int | None, ...]
    """Medians over images; None where most images did not get there."""
    images: int
    reached: tuple[int, ...]
    """How many images got there."""
    chosen: tuple[float | None, ...]
    """The step size that was best in each dimension, where there is one."""


def tasks(network: Network, images: Sequence[Sequence[int]], *, iterations: int = ITERATIONS) -> list[Task]:
    """AdaExpMD and PSGD with its likely step sizes, PN, in each dimension."""
    return [
        Task("mnist", "printed", "PN", one.name, index, network.path, network.digest, network.name, iterations, scale)
        for row in images
        for index in row
        for scale in SCALES
        for one in (ADAPTIVE, *PSGD)
    ]


def growths(runs: Iterable[Outcome], *, iterations: int = ITERATIONS, target: float = TARGET) -> list[Growth]:
    """For the adaptive method, and for PSGD with the step size that is best in each dimension."""
    found: dict[tuple[int, str], dict[int, float]] = {}
    for one in runs:
        if one.data == "mnist" and one.kind == "PN" and one.iterations == iterations:
            found.setdefault((one.upscale, one.algorithm), {})[one.image] = queries_to(one, target)
    made = []
    for title, family in (("ZO-AdaExpMD", (ADAPTIVE,)), ("ZO-PSGD, best step size", PSGD)):
        keys = [(scale, one.name) for scale in SCALES for one in family]
        if not all(key in found for key in keys):
            continue
        images = sorted(set.intersection(*(set(found[key]) for key in keys)))
        if images:
            made.append(_growth(title, family, found, images))
    return made


def _growth(
    title: str, family: Sequence[Algorithm], found: dict[tuple[int, str], dict[int, float]], images: Sequence[int]
) -> Growth:
    queries: list[int | None] = []
    reached, chosen = [], []
    for scale in SCALES:
        columns = {one: [found[scale, one.name][image] for image in images] for one in family}
        best = min(columns, key=lambda one: (float(np.median(columns[one])), -np.isfinite(columns[one]).sum()))
        median = float(np.median(columns[best]))
        queries.append(int(median) if np.isfinite(median) else None)
        reached.append(int(np.isfinite(columns[best]).sum()))
        chosen.append(best.eta)
    dimensions = tuple((SIDE * scale) ** 2 for scale in SCALES)
    return Growth(family[0], title, dimensions, tuple(queries), len(images), tuple(reached), tuple(chosen))


def queries_to(one: Outcome, target: float) -> float:
    """Queries until F / F(start) is at most `target`; infinite when it never was."""
    curve = np.array(one.fun) / one.fun[0]
    below = np.flatnonzero(curve <= target)
    return float(QUERIES * steps(one.iterations)[below[0]]) if below.size else np.inf
