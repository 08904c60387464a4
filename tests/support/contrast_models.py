"""Small classifiers for the tests of explanations: rows are independent to the last bit, and every row is counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


@dataclass
class Counted:
    """Asks `predict` and remembers how many rows each batch had."""

    predict: Any
    batches: list[int] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(self.batches)

    def __call__(self, batch: NDArray[Any]) -> Any:
        self.batches.append(len(batch))
        return self.predict(batch)


@dataclass(frozen=True)
class Affine:
    """scores = W x + b, by einsum, whose sums do not depend on the batch as those of a matrix product do."""

    weights: Scores
    bias: Scores

    @classmethod
    def draw(cls, features: int, classes: int = 3, seed: int = 0, size: float = 2.0) -> Affine:
        rng = np.random.default_rng(seed)
        return cls(size * rng.normal(size=(classes, features)), 0.1 * rng.normal(size=classes))

    def __call__(self, batch: NDArray[Any]) -> Scores:
        flat = batch.reshape(len(batch), -1).astype(np.float64)
        scores: Scores = np.einsum("nd,kd->nk", flat, self.weights) + self.bias
        return scores


@dataclass(frozen=True)
class Curved:
    """A network of one hidden layer, row by row."""

    first: Scores
    second: Scores

    @classmethod
    def draw(cls, features: int, classes: int = 3, hidden: int = 8, seed: int = 0) -> Curved:
        rng = np.random.default_rng(seed)
        return cls(2 * rng.normal(size=(hidden, features)), 2 * rng.normal(size=(classes, hidden)))

    def __call__(self, batch: NDArray[Any]) -> Scores:
        flat = batch.reshape(len(batch), -1).astype(np.float64)
        return np.stack([self.second @ np.tanh(self.first @ (row - 0.4)) for row in flat])


def label_of(predict: Any, x: NDArray[Any]) -> int:
    """The class of one input, asked outside."""
    return int(np.argmax(predict(x[None])[0]))
