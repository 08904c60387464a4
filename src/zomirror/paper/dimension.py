"""The dimension study: queries to a fixed loss when every pixel of the digits is split into s x s variables.

The network sees the averages of the squares, so d grows from 784 to 3,136 and 12,544 while the set of images it can be
shown stays the same. Queries are counted until F(x_t) / F(x_1) <= 0.1, with two choices of the weights:

    weights as printed      l1 = l2 = 0.1 for every d: the penalty of the same change grows like d
    weights shared          l1 = l2 = 0.1 / s^2: F of the same change is the same for every d
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from zomirror.paper.grid import Task
from zomirror.paper.images import BundledNetwork
from zomirror.paper.outcome import RunOutcome, steps
from zomirror.paper.settings import ADAPTIVE, ETAS, ITERATIONS, QUERIES, RECOMMENDED, Algorithm

SCALES = (1, 2, 4)
SIDE = 28
TARGET = 0.1
FAMILIES = ("adaexpmd", "psgd", "recommended")


@dataclass(frozen=True, slots=True)
class Growth:
    """The queries to the target of one method in each dimension."""

    family: str
    shared: bool
    dimensions: tuple[int, ...]
    queries: tuple[int | None, ...]
    """Medians over images; None where the median image did not reach the target."""
    reached: tuple[int, ...]
    """How many images reached the target."""
    images: int
    chosen: tuple[float | None, ...]
    """The best step size in each dimension; None for a method without one."""

    @property
    def title(self) -> str:
        """The name of the method."""
        titles = {"adaexpmd": "ZO-AdaExpMD", "psgd": "ZO-PSGD, best step size", "recommended": "recommended"}
        return titles[self.family]

    @property
    def words(self) -> str:
        """The counts in a sentence."""
        counts = ", ".join("not reached" if count is None else f"{count:,}" for count in self.queries)
        etas = ", ".join(f"{eta:g}" for eta in self.chosen if eta is not None)
        weights = "weights shared" if self.shared else "weights as printed"
        return f"{self.title}, {weights}: {counts}" + (f" (η = {etas})" if etas else "")


def algorithms(family: str, scale: int, *, shared: bool) -> tuple[Algorithm, ...]:
    """The algorithms of a family that are run; shared weights make gradients, and the best eta, s^2 times smaller."""
    if family == "psgd":
        return tuple(Algorithm("psgd", eta / (scale**2 if shared else 1)) for eta in ETAS[:3])
    return (ADAPTIVE if family == "adaexpmd" else RECOMMENDED,)


def tasks(network: BundledNetwork, images: Sequence[Sequence[int]], *, iterations: int = ITERATIONS) -> list[Task]:
    """The PN runs of every method in each dimension, shared weights first."""
    made = [
        Task(
            data="mnist",
            settings="printed",
            kind="PN",
            algorithm=one.name,
            image=index,
            model=network.path,
            digest=network.digest,
            network=network.name,
            iterations=iterations,
            upscale=scale,
            shared=shared and scale > 1,
        )
        for shared in (True, False)
        for row in images
        for index in row
        for scale in SCALES
        for family in FAMILIES
        for one in algorithms(family, scale, shared=shared)
    ]
    return list(dict.fromkeys(made))


def growths(runs: Iterable[RunOutcome], *, iterations: int = ITERATIONS, target: float = TARGET) -> list[Growth]:
    """One for each method and choice of the weights that was run in every dimension."""
    found: dict[tuple[int, bool, str], dict[int, float]] = {}
    for one in runs:
        if one.repeat or one.replayed:
            continue
        if (one.data, one.settings, one.kind, one.iterations) == ("mnist", "printed", "PN", iterations):
            key = (one.upscale, one.shared, one.algorithm)
            found.setdefault(key, {})[one.image] = queries_to(one, target)
    made = [_growth(found, family, shared=shared) for shared in (True, False) for family in FAMILIES]
    return [one for one in made if one is not None]


def _growth(found: dict[tuple[int, bool, str], dict[int, float]], family: str, *, shared: bool) -> Growth | None:
    tried = {
        scale: {one: found.get((scale, shared and scale > 1, one.name), {}) for one in candidates}
        for scale in SCALES
        for candidates in [algorithms(family, scale, shared=shared)]
    }
    images = sorted(set.intersection(*(set(known) for column in tried.values() for known in column.values())))
    if not images:
        return None
    queries: list[int | None] = []
    reached, chosen = [], []
    for column in tried.values():
        counts = {one: np.array([known[image] for image in images]) for one, known in column.items()}
        best = min(counts, key=lambda one: (float(np.median(counts[one])), -int(np.isfinite(counts[one]).sum())))
        median = float(np.median(counts[best]))
        queries.append(int(median) if np.isfinite(median) else None)
        reached.append(int(np.isfinite(counts[best]).sum()))
        chosen.append(best.eta)
    dimensions = tuple((SIDE * scale) ** 2 for scale in SCALES)
    return Growth(family, shared, dimensions, tuple(queries), tuple(reached), len(images), tuple(chosen))


def queries_to(one: RunOutcome, target: float) -> float:
    """Queries until F / F(start) <= target; infinite if that was not reached."""
    curve = np.array(one.fun) / one.fun[0]
    below = np.flatnonzero(curve <= target)
    return float(QUERIES * steps(one.iterations)[below[0]]) if below.size else np.inf
