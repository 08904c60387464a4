"""A training plan: every choice that decides the outcome besides the data and the seed."""

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
    """SGD with Nesterov momentum over one cycle of the learning rate, averaged weights at the end.

    `lanes` is the number of equal parts of a batch that are differentiated side by side, each with its own
    batch statistics: it is part of the plan, not of the machine, so that the result is too.
    `sides` maps first epochs to image sides: early epochs on smaller images cost a fraction of the time.
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
        """The learning rate after a share of the run: up in a line to the peak, and down in a line to 0."""
        if progress < self.warmup:
            return self.peak_rate * (0.1 + 0.9 * progress / self.warmup)
        return self.peak_rate * (1.0 - progress) / (1.0 - self.warmup)

    def shortened(self, epochs: int) -> Self:
        """The same plan in fewer or more epochs, the changes of side at the same shares of it."""
        sides = tuple((round(first * epochs / self.epochs), side) for first, side in self.sides)
        return replace(self, epochs=epochs, sides=sides)

    def digest(self, seed: int) -> str:
        """A short name for plan and seed: runs of different digests never share a checkpoint."""
        text = json.dumps({**asdict(self), "seed": seed}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]
