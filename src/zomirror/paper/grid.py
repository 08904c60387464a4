"""The runs of a study, the most informative first, each with a digest of everything that decides its outcome."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zomirror.methods.presets import recommended
from zomirror.paper.images import BundledNetwork
from zomirror.paper.settings import ALGORITHMS, BATCH, ITERATIONS, KINDS, RECOMMENDED, SETTINGS, Algorithm
from zomirror.problem import Box, ElasticNet

TELLING = ("adaexpmd", "expmd-1", "expmd-10", "psgd-10", "psgd-100")
"""The algorithms run first on every image: most of the paper's claims are about these."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run: an image, a kind, an algorithm with its step size, and the settings."""

    data: str
    settings: str
    kind: str
    algorithm: str
    image: int
    """Its index in the test set."""
    model: Path
    digest: str
    """The SHA-256 of the model's file."""
    network: str = ""
    """The name of the model; empty for the bundled one."""
    iterations: int = ITERATIONS
    upscale: int = 1
    """s: every pixel is split into s x s variables."""
    shared: bool = False
    """Whether the parts of a pixel share its weights l1 and l2, so that only the dimension changes."""
    repeat: int = 0
    """The number of this run among those that differ in their seeds only."""
    replayed: bool = False
    """Whether it uses the directions and the precision of the second implementation (reference.py)."""

    @property
    def seed(self) -> int:
        """The index of the image, plus 100,000 for every repeat."""
        return self.image + 100_000 * self.repeat

    @property
    def study(self) -> str:
        """The name of the study's file of results."""
        return study_name(self.data, self.settings, self.network) + ("-dimension" if self.upscale != 1 else "")

    @property
    def key(self) -> str:
        """The digest of everything that decides the outcome; the path of the model's file does not."""
        text = json.dumps(self._configuration(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def _configuration(self) -> dict[str, Any]:
        settings = SETTINGS[self.settings]
        known: dict[str, Any] = {
            "data": self.data,
            "kind": self.kind,
            "algorithm": self.algorithm,
            "image": self.image,
            "model": self.digest,
            "iterations": self.iterations,
            "batch": BATCH,
            "loss": type(settings.loss).__name__,
            "weight": settings.weight(self.data),
            "set": settings.additive if self.data == "mnist" else settings.shifted,
            "c": settings.c,
            "psgd": settings.psgd,
            "radius": type(settings.radius).__name__,
        }
        if self.upscale != 1:
            known |= {"upscale": self.upscale, "shared": self.shared}
        if self.repeat:
            known["repeat"] = self.repeat
        if self.replayed:
            known["replayed"] = "float64"
        if self.algorithm == RECOMMENDED.name:
            # The paper's methods are fixed; this one changes between versions.
            method = recommended(np.zeros(2), ElasticNet(0.1, 0.1), Box.of((0, 1), 2))
            known |= {"revision": method.revision, "method": repr(method)}
        return known


def study_name(data: str, settings: str, network: str = "") -> str:
    """The name of a study's file of results."""
    return "-".join(part for part in (data, settings, network) if part)


def grid(
    data: str,
    settings: str,
    network: BundledNetwork,
    images: Sequence[Sequence[int]],
    *,
    algorithms: Iterable[Algorithm] = ALGORITHMS,
    kinds: Sequence[str] = KINDS,
    iterations: int = ITERATIONS,
) -> list[Task]:
    """Every image x kind x algorithm, ordered so that an interrupted study can already be reported.

    Each row of `images` holds one image per class. The first row comes first: the algorithms of TELLING, then the
    others, then the recommended method. Then comes the second row.
    """
    return [
        Task(data, settings, kind, algorithm.name, index, network.path, network.digest, network.name, iterations)
        for row in images
        for tier in _tiers(algorithms)
        for index in row
        for kind in kinds
        for algorithm in tier
    ]


def _tiers(algorithms: Iterable[Algorithm]) -> Iterator[list[Algorithm]]:
    given = list(algorithms)
    yield [one for one in given if one.name in TELLING]
    yield [one for one in given if one.name not in TELLING and one != RECOMMENDED]
    yield [one for one in given if one == RECOMMENDED]
