"""Curves of F(x_t) / F(x_1): means over images, with their quartiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import DataError
from zomirror.paper.outcome import RunOutcome, steps
from zomirror.paper.settings import (
    ADAPTIVE,
    ALGORITHMS,
    DATA_TITLES,
    ITERATIONS,
    QUERIES,
    RECOMMENDED,
    TUNED,
    Algorithm,
)

Floats = NDArray[np.float64]
TOPICS = ("convergence", *TUNED)
PUBLISHED: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("mnist", "PN"): {"adaexpmd": 0.053, "expmd-1": 0.053, "expmd-10": 0.212, "psgd-10": 0.055},
    ("mnist", "PP"): {"adaexpmd": 0.081, "expmd-1": 0.081, "psgd-10": 0.084},
    ("cifar", "PN"): {"adaexpmd": 0.347, "psgd": 0.485},
    ("cifar", "PP"): {"adaexpmd": 0.0013, "psgd": 0.018},
}
"""Means over 200 images at iteration 200, read off the authors' plots; `psgd` is their best step size."""


@dataclass(frozen=True, eq=False)
class Curve:
    """An algorithm on some images, one row of F(x_t) / F(x_1) per image."""

    algorithm: Algorithm
    rows: Floats
    valid: int
    """Images whose last iterate is an explanation."""
    nnz: float
    """Median number of non-zero coordinates at the end."""

    @property
    def images(self) -> int:
        """The number of images."""
        return len(self.rows)

    @cached_property
    def mean(self) -> Floats:
        """The mean over images, which the paper plots."""
        return np.asarray(self.rows.mean(axis=0))

    @cached_property
    def band(self) -> tuple[Floats, Floats]:
        """The quartiles over images."""
        low, high = np.quantile(self.rows, [0.25, 0.75], axis=0)
        return low, high


@dataclass(frozen=True, eq=False)
class Group:
    """The finished runs of one data set, kind, settings and network."""

    data: str
    kind: str
    settings: str
    network: str
    iterations: int
    runs: Mapping[str, Mapping[int, RunOutcome]]
    """By algorithm and image."""

    @property
    def title(self) -> str:
        """Data set and kind."""
        return f"{DATA_TITLES[self.data]} {self.kind}"

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The steps at which curves are known."""
        return steps(self.iterations)

    @property
    def queries(self) -> Floats:
        """The queries used at `steps`."""
        return QUERIES * np.array(self.steps, dtype=np.float64)

    def at(self, step: int) -> int:
        """The index of a step in every curve."""
        if step not in self.steps:
            raise DataError(f"expected a step at which curves are known, got {step} of {self.iterations}")
        return self.steps.index(step)

    def images(self, names: Iterable[str]) -> list[int]:
        """The images that all of these algorithms have finished: curves are compared on the same images only."""
        sets = [set(self.runs.get(name, {})) for name in names]
        return sorted(set.intersection(*sets)) if sets else []

    def curves(self, algorithms: Sequence[Algorithm]) -> list[Curve]:
        """The curves of the algorithms that were run, on the images that all of them have."""
        known = [one for one in algorithms if self.runs.get(one.name)]
        images = self.images(one.name for one in known)
        return [self._curve(one, images) for one in known] if images else []

    def best(self, family: str, step: int | None = None) -> Algorithm | None:
        """The algorithm of a family with the lowest mean at the end, or at a step."""
        curves = self.curves([one for one in ALGORITHMS if one.family == family])
        at = -1 if step is None else self.at(step)
        return min(curves, key=lambda curve: float(curve.mean[at])).algorithm if curves else None

    def compared(self) -> list[Curve]:
        """The curves of the adaptive method, the tuned methods at their best step sizes, and the recommended method."""
        tuned = [best for family in TUNED if (best := self.best(family)) is not None]
        return self.curves([ADAPTIVE, *tuned, RECOMMENDED])

    def _curve(self, algorithm: Algorithm, images: Sequence[int]) -> Curve:
        found = [self.runs[algorithm.name][image] for image in images]
        rows = np.array([one.fun for one in found])
        nnz = float(np.median([one.nnz for one in found]))
        return Curve(algorithm, rows / rows[:, :1], sum(one.valid for one in found), nnz)


def group(runs: Iterable[RunOutcome], *, iterations: int = ITERATIONS) -> list[Group]:
    """The runs by data set, kind, settings and network, in the order of their first run."""
    found: dict[tuple[str, str, str, str], dict[str, dict[int, RunOutcome]]] = {}
    for one in runs:
        if one.iterations == iterations and one.upscale == 1 and not (one.repeat or one.replayed):
            key = (one.data, one.kind, one.settings, one.network)
            found.setdefault(key, {}).setdefault(one.algorithm, {})[one.image] = one
    return [Group(*key, iterations, runs) for key, runs in found.items()]


@dataclass(frozen=True, slots=True)
class Mark:
    """A published value."""

    algorithm: Algorithm
    step: int
    value: float


@dataclass(frozen=True, eq=False)
class Panel:
    """One of the twelve figures: some curves of a group."""

    group: Group
    topic: str
    curves: Sequence[Curve]
    marks: Sequence[Mark]

    @property
    def name(self) -> str:
        """The name of its files."""
        parts = (self.group.data, self.group.kind.lower(), self.topic, self.group.settings, self.group.network)
        return "-".join(part for part in parts if part)

    @property
    def title(self) -> str:
        """The heading."""
        topic = {"convergence": "convergence", "expmd": "step sizes of ZO-ExpMD", "psgd": "step sizes of ZO-PSGD"}
        return (
            f"{DATA_TITLES[self.group.data]}, {self.group.kind}: {topic[self.topic]} ({self.curves[0].images} images)"
        )


def panels(groups: Iterable[Group]) -> list[Panel]:
    """The figures for which there are curves."""
    found = []
    for one in groups:
        for topic in TOPICS:
            family = [algorithm for algorithm in ALGORITHMS if algorithm.family == topic]
            curves = one.compared() if topic == "convergence" else one.curves(family)
            if curves:
                found.append(Panel(one, topic, curves, _marks(one, topic, curves)))
    return found


def _marks(of: Group, topic: str, curves: Sequence[Curve]) -> list[Mark]:
    """The published values of these curves, which were obtained with the authors' settings."""
    if of.settings != "authors" or of.iterations != ITERATIONS:
        return []
    published = PUBLISHED[of.data, of.kind]
    marks = []
    for curve in curves:
        value = published.get(curve.algorithm.name)
        if value is None and topic == "convergence":
            value = published.get(curve.algorithm.family)
        if value is not None:
            marks.append(Mark(curve.algorithm, ITERATIONS, value))
    return marks
