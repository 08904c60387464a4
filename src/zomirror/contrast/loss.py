"""Margins and losses of pertinent positives, pertinent negatives and attacks: batched, pure, one number per row.

With scores s and the class k of the input, a margin is negative exactly when the row does what is wanted:

    PP (class kept)       margin = max_{i != k} s_i - s_k
    PN (class changed)    margin = s_k - max_{i != k} s_i
    PN to a target t      margin = max_{i != t} s_i - s_t

A loss turns the margin m into what is minimised:

    hinge       max(m, -kappa)
    softplus    tau log(exp(-kappa/tau) + exp(m/tau)),   within tau log 2 above the hinge; log(1 + e^m) for
                tau = 1 and kappa = 0

kappa and tau are in the units of the scores: a difference of logits, of log-probabilities (the same numbers)
or of probabilities (where kappa must stay below 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from zomirror.checks import nonnegative, positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Labels = int | NDArray[np.integer[Any]]


def keep_margin(scores: Floats, label: Labels) -> Floats:
    """Return max_{i != k} s_i - s_k per row: negative where class k = `label` is kept.

    `label` is one class for all rows or one per row. NaN scores give a NaN margin.
    """
    own, rival = _own_and_rival(scores, label)
    with np.errstate(invalid="ignore"):  # inf - inf is a NaN margin, which is not valid: no warning needed
        return rival - own


def change_margin(scores: Floats, label: Labels, target: Labels | None = None) -> Floats:
    """Return s_k - max_{i != k} s_i per row: negative where the class is no longer k = `label`.

    With a `target` class t it is max_{i != t} s_i - s_t: negative where the class has become t.
    """
    if target is not None:
        return keep_margin(scores, target)
    own, rival = _own_and_rival(scores, label)
    with np.errstate(invalid="ignore"):
        return own - rival


def is_valid(margin: Floats) -> NDArray[np.bool_]:
    """Return margin < 0: strictly, so that a tie or a NaN is never valid.

    Then argmax agrees, whichever class it picks at a tie (numpy's picks the first).
    """
    return margin < 0


class MarginLoss(Protocol):
    """An increasing function of the margin, element by element."""

    def __call__(self, margin: Floats, /) -> Floats:
        """Return the loss of every margin."""
        ...

    def slope(self, margin: float, /) -> float:
        """Return the derivative of the loss at a margin."""
        ...


@dataclass(frozen=True, slots=True)
class Hinge:
    """max(margin, -kappa): flat once the margin is `kappa` beyond the boundary."""

    kappa: float = 0.0

    def __post_init__(self) -> None:
        nonnegative("kappa", self.kappa)

    def __call__(self, margin: Floats, /) -> Floats:
        """Return the loss of every margin."""
        return np.maximum(margin, -self.kappa)

    def slope(self, margin: float, /) -> float:
        """Return 1 before the kink and 0 behind it."""
        return 1.0 if margin > -self.kappa else 0.0


@dataclass(frozen=True, slots=True)
class Softplus:
    """tau log(exp(-kappa/tau) + exp(margin/tau)), tau = `temperature`: a smooth Hinge, never flat."""

    kappa: float = 0.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        nonnegative("kappa", self.kappa)
        positive("temperature", self.temperature)

    def __call__(self, margin: Floats, /) -> Floats:
        """Return the loss of every margin."""
        tau = self.temperature
        return np.multiply(np.logaddexp(-self.kappa / tau, np.divide(margin, tau)), tau)

    def slope(self, margin: float, /) -> float:
        """Return the logistic function of (margin + kappa) / tau."""
        return 0.5 * (1 + math.tanh(0.5 * (margin + self.kappa) / self.temperature))


def _own_and_rival(scores: Floats, label: Labels) -> tuple[Floats, Floats]:
    """Return s_k and max_{i != k} s_i of every row."""
    # Column by column is faster for few classes, row by row for many.
    others = np.array(scores, order="F" if scores.shape[1] < 64 else "C")
    rows = slice(None) if np.ndim(label) == 0 else np.arange(len(scores))
    own: Floats = scores[rows, label]
    others[rows, label] = -np.inf
    return own, others.max(axis=1)


LOSSES: dict[str, Callable[[float], MarginLoss]] = {"hinge": Hinge, "softplus": Softplus}
"""Each loss as a function of kappa. Whichever is minimised, the reported objective has the hinge."""
