"""A training plan: with the data and the seed, everything that decides the outcome."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from zomirror.errors import ArgumentError

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True)
class Plan:
    """SGD with Nesterov momentum, one cycle of the learning rate and averaged weights.

    `lanes` is the number of equal parts of a batch that are differentiated in parallel, each with its own batch
    statistics. It is part of the plan, so that the result does not depend on the machine.
    `sides` are pairs (first epoch, side of the images): early epochs on smaller images take a fraction of the time.
    """

    name: str
    epochs: int
    batch_size: int
    peak_rate: float
    weight_decay: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    sides: tuple[tuple[int, int], ...]
    pad: int
    flip: bool = False
    smoothing: float = 0.0
    momentum: float = 0.9
    warmup: float = 0.2
    average: float = 0.998
    lanes: int = 2

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ArgumentError(f"epochs: expected at least 1, got {self.epochs}")
        if self.batch_size < 1 or self.batch_size % self.lanes:
            raise ArgumentError(f"batch_size: expected a multiple of lanes={self.lanes}, got {self.batch_size}")
        if not self.sides or self.sides[0][0] != 0:
            raise ArgumentError(f"sides: expected a first entry for epoch 0, got {self.sides}")

    def side(self, epoch: int) -> int:
        """The side in pixels of the images of an epoch (0-based)."""
        return [side for first, side in self.sides if first <= epoch][-1]

    def rate(self, progress: float) -> float:
        """The learning rate after a fraction of the training: linear up to the peak, then linear down to 0."""
        if progress < self.warmup:
            return self.peak_rate * (0.1 + 0.9 * progress / self.warmup)
        return self.peak_rate * (1.0 - progress) / (1.0 - self.warmup)

    def shortened(self, epochs: int) -> Self:
        """The plan with another number of epochs, the changes of side at the same fractions of it."""
        sides = tuple((round(first * epochs / self.epochs), side) for first, side in self.sides)
        return replace(self, epochs=epochs, sides=sides)

    def digest(self, seed: int) -> str:
        """A digest of plan and seed, which names the checkpoint."""
        text = json.dumps({**asdict(self), "seed": seed}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]
