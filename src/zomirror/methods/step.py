"""Step sizes: eta multiplies the Bregman term of the mirror step, so a larger eta is a smaller move."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from zomirror.checks import nonnegative, positive
from zomirror.methods.mirror import MirrorMap
from zomirror.numerics.arrays import Array

Memory = Any


class StepRule(Protocol):
    """A rule for eta_t, from the steps so far and the gradient."""

    def init(self) -> Memory:
        """The memory before the first step."""
        ...

    def eta(self, memory: Memory, gradient: Array) -> float:
        """The step size of this iteration."""
        ...

    def advance(self, memory: Memory, mirror: MirrorMap, x: Array, x_next: Array, eta: float) -> Memory:
        """The memory after the step of size eta from x to x_next."""
        ...


@runtime_checkable
class Halvable(StepRule, Protocol):
    """A step rule whose memory is alpha, the eta of its next step; 0 before the first gradient."""

    def halved(self, memory: float) -> float:
        """The memory for steps half as long: eta doubles."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same eta in every iteration."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", positive("eta", self.value))

    def init(self) -> None:
        """Nothing to remember."""

    def eta(self, memory: None, gradient: Array) -> float:
        """The given value."""
        return self.value

    def advance(self, memory: None, mirror: MirrorMap, x: Array, x_next: Array, eta: float) -> None:
        """Nothing changes."""


@dataclass(frozen=True, slots=True)
class Adaptive:
    """alpha_1 = first, eta_t = alpha_t, alpha_{t+1}^2 = alpha_t^2 (1 + (c lambda_t |x_{t+1} - x_t|)^2).

    lambda_t |x_{t+1} - x_t| is the mirror map's `movement`: with the entropy map
    |x_{t+1} - x_t|_1 / (max(|x_t|_1, |x_{t+1}|_1) + 1). The paper prints c = 2; its Lemma 5 drops the 1/2 of
    Taylor's theorem, so the provable constant is c = 1. Needs no knowledge of smoothness or diameter.
    """

    c: float = 2.0
    first: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", positive("c", self.c))
        object.__setattr__(self, "first", positive("first", self.first))

    def init(self) -> float:
        """alpha_1."""
        return self.first

    def eta(self, memory: float, gradient: Array) -> float:
        """alpha_t."""
        return memory

    def advance(self, memory: float, mirror: MirrorMap, x: Array, x_next: Array, eta: float) -> float:
        """alpha_{t+1}: it grows with the size of the step."""
        return memory * _grown(self.c * mirror.movement(x, x_next))

    def halved(self, memory: float) -> float:
        """Alpha doubles."""
        return 2 * memory


@dataclass(frozen=True, slots=True)
class ScaleFree:
    """The adaptive rule with alpha_1 = first |g|_inf, g being the first gradient with first |g|_inf > floor.

    Multiplying f, l1, l2 and `floor` by a number multiplies every eta by it, so the iterates stay the same. Before that
    gradient eta is `floor`; l1 is a good value, with which the penalty alone shrinks x at a reasonable speed.
    """

    c: float = 1.0
    floor: float = 0.0
    first: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", positive("c", self.c))
        object.__setattr__(self, "floor", nonnegative("floor", self.floor))
        object.__setattr__(self, "first", positive("first", self.first))

    def init(self) -> float:
        """No gradient above `floor` has been seen."""
        return 0.0

    def eta(self, memory: float, gradient: Array) -> float:
        """alpha_t, once there is one."""
        return memory or max(self.first * float(np.abs(gradient).max()), self.floor) or 1.0

    def advance(self, memory: float, mirror: MirrorMap, x: Array, x_next: Array, eta: float) -> float:
        """alpha_{t+1}: it grows with the size of the step."""
        if not memory and (eta <= self.floor or not mirror.movement(x, x_next)):
            return 0.0
        return eta * _grown(self.c * mirror.movement(x, x_next))

    def halved(self, memory: float) -> float:
        """Alpha doubles."""
        return 2 * memory


def _grown(move: float) -> float:
    """sqrt(1 + move^2), inf on overflow. Every machine rounds these operations alike; hypot may differ."""
    return math.sqrt(1 + move * move)
