"""ZO-AdaMM (Chen, Liu, Xu, Li, Lin, Hong and Cox, 2019): AMSGrad with two-point estimates on the unit sphere.

m_t = b1 m_{t-1} + (1 - b1) g_t,   v_t = b2 v_{t-1} + (1 - b2) g_t^2,   V_t = max(V_{t-1}, v_t)
x_{t+1} = argmin_{y in K} <m_t, y> + h(y) + (eta/2) sum_i sqrt(V_t,i) (y_i - x_t,i)^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from zomirror.checks import nonnegative, positive
from zomirror.errors import ArgumentError
from zomirror.methods.descent import Measured, State
from zomirror.methods.directions import sphere
from zomirror.methods.estimator import EuclideanRadius, Radius, TwoPoint
from zomirror.methods.query import Query
from zomirror.numerics.arrays import Array, Values, norm2
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Key
from zomirror.problem import Problem

_RADIUS = EuclideanRadius()
TINY = 1e-12
"""Added to sqrt(V): an entry without a gradient so far does not move."""


def zo_adamm(
    eta: float, batch_size: int = 200, *, b1: float = 0.9, b2: float = 0.3, radius: float | Radius = _RADIUS
) -> AdaMM:
    """ZO-AdaMM with the published b1 and b2; 1/eta is about the length of a step."""
    return AdaMM(TwoPoint(batch_size, sphere, radius), eta, b1, b2)


@dataclass(frozen=True, eq=False)
class Moments:
    """m, v and V."""

    mean: Array
    square: Array
    most: Array


@dataclass(frozen=True, slots=True)
class AdaMM:
    """The equations above."""

    estimator: TwoPoint
    eta: float
    b1: float = 0.9
    b2: float = 0.3

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", positive("eta", self.eta))
        for name in ("b1", "b2"):
            object.__setattr__(self, name, nonnegative(name, getattr(self, name)))
            if getattr(self, name) >= 1:
                raise ArgumentError(f"expected {name} < 1, got {getattr(self, name)}: 0 forgets at once")

    def init(self, x0: Array, problem: Problem, key: Key) -> State:
        """All moments are 0."""
        zero = np.zeros_like(x0)
        return State(problem, key, 0, x0, Moments(zero, zero, zero))

    def ask(self, state: State) -> Query:
        """The estimator's query at x_t."""
        return self.estimator.ask(None, state.problem, state.x, state.t, state.key)

    def tell(self, state: State, query: Query, values: Values) -> State:
        """One step."""
        with np.errstate(over="ignore", invalid="ignore"):  # where a run diverges, the caller ends it
            estimate, _ = self.estimator.tell(None, query, values)
            f, g = estimate.f, cast(Array, estimate.gradient)
            x, problem, old, real = state.x, state.problem, state.memory, state.x.dtype.type
            mean = real(self.b1) * old.mean + real(1 - self.b1) * g
            square = real(self.b2) * old.square + real(1 - self.b2) * np.square(g)
            most = np.maximum(old.most, square)
            pull = real(self.eta) * (np.sqrt(most) + real(TINY))
            z = pull * x - mean
            size = np.maximum(np.abs(z) - real(problem.penalty.l1), 0) / (pull + real(problem.penalty.l2))
            following = problem.box.project(np.copysign(size, z))
            following.flags.writeable = False
            last = Measured(x, f, self.eta, norm2(pull * (x - following), np.zeros_like(x)))
            moments = Moments(mean, square, most)
            return changed(state, t=state.t + 1, x=following, memory=moments, last=last)
