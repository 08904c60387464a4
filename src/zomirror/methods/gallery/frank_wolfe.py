"""Zeroth-order Frank-Wolfe methods: no mirror step, but the minimum of a linear function over the box.

    v_t     = argmin_{v in K} <d_t, v> + h(v)
    x_{t+1} = (1 - gamma_t) x_t + gamma_t v_t

ZSCG (Balasubramanian and Ghadimi, 2018) has d_t = g_t, a two-point estimate with Gaussian directions, and
gamma_t = 6/(t + 5). ZO-FW (Sahu, Zaheer and Kar, 2019) averages the estimates:

    d_t = (1 - rho_t) d_{t-1} + rho_t g_t,   rho_t = 4 / ((1 + d/m)^(1/3) (t + 8)^(2/3)),   gamma_t = 2/(t + 8)

The published radii shrink with t; here nu is constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from zomirror.errors import ArgumentError
from zomirror.methods.descent import Measured, State
from zomirror.methods.directions import gaussian
from zomirror.methods.estimator import EuclideanRadius, Radius, TwoPoint
from zomirror.methods.query import Query
from zomirror.numerics.arrays import Array, Values, norm2
from zomirror.numerics.elementary import root
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Key
from zomirror.problem import Box, ElasticNet, Problem

_RADIUS = EuclideanRadius()


def zo_fw(batch_size: int = 200, *, radius: float | Radius = _RADIUS) -> FrankWolfe:
    """ZO-FW: Frank-Wolfe steps along averaged estimates. It needs finite bounds."""
    return FrankWolfe(TwoPoint(batch_size, gaussian, radius), averaged=True)


def zo_scg(batch_size: int = 200, *, radius: float | Radius = _RADIUS) -> FrankWolfe:
    """ZSCG: Frank-Wolfe steps along the last estimate. It needs finite bounds."""
    return FrankWolfe(TwoPoint(batch_size, gaussian, radius), averaged=False)


@dataclass(frozen=True, slots=True)
class FrankWolfe:
    """The steps above; `averaged` is ZO-FW, otherwise ZSCG."""

    estimator: TwoPoint
    averaged: bool

    def init(self, x0: Array, problem: Problem, key: Key) -> State:
        """x_1 = x0, d_0 = 0."""
        if not math.isfinite(problem.box.reach):
            raise ArgumentError("expected finite bounds with a Frank-Wolfe method, got an infinite one: give bounds")
        return State(problem, key, 0, x0, np.zeros_like(x0))

    def ask(self, state: State) -> Query:
        """The estimator's query at x_t."""
        return self.estimator.ask(None, state.problem, state.x, state.t, state.key)

    def tell(self, state: State, query: Query, values: Values) -> State:
        """One step."""
        with np.errstate(over="ignore", invalid="ignore"):  # where a run diverges, the caller ends it
            estimate, _ = self.estimator.tell(None, query, values)
            f, g = estimate.f, cast(Array, estimate.gradient)
            x, t, problem, mean = state.x, state.t + 1, state.problem, state.memory
            gamma = min(2 / (t + 8) if self.averaged else 6 / (t + 5), 1.0)
            if self.averaged:
                rho = min(4 / (root(1 + problem.d / self.estimator.batch_size, 3) * root(float(t + 8), 3) ** 2), 1.0)
                mean = x.dtype.type(1 - rho) * mean + x.dtype.type(rho) * g
            else:
                mean = g
            v = corner(mean, problem.penalty, problem.box)
            following = problem.box.project(x + x.dtype.type(gamma) * (v - x))
            following.flags.writeable = False
            return changed(state, t=t, x=following, memory=mean, last=Measured(x, f, math.nan, norm2(x, v)))


def corner(slope: Array, h: ElasticNet, box: Box) -> Array:
    """argmin_{v in K} <slope, v> + h(v), coordinate by coordinate."""
    excess = np.maximum(np.abs(slope) - h.l1, 0)
    with np.errstate(divide="ignore", over="ignore"):
        size = excess / h.l2 if h.l2 else np.where(excess > 0, np.inf, 0.0)
    return box.project(np.where(excess > 0, np.copysign(size, -slope), 0.0).astype(slope.dtype))
