"""Two published relatives of ZO-AdaExpMD by the same authors, for comparison: AO-ExpMD and ExpStorm.

Both are compared per query: an iteration of ExpStorm asks at two points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zomirror.checks import positive
from zomirror.errors import ArgumentError
from zomirror.methods.descent import Measured, State
from zomirror.methods.directions import Directions, rademacher
from zomirror.methods.estimator import Estimator
from zomirror.methods.mirror import MirrorMap
from zomirror.methods.query import MAX_BLOCK_BYTES, Query, Segment, Stream
from zomirror.numerics.arrays import Array, Values, norm2
from zomirror.numerics.random import Key
from zomirror.problem import ElasticNet, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """What Optimistic keeps: the estimator's memory, the point x of the mirror steps, and the last gradient."""

    estimator: Any
    x: Array
    gradient: Array


@dataclass(frozen=True, slots=True)
class Optimistic:
    """AO-ExpMD: mirror steps of x, gradients at the average y; the last gradient predicts the next one.

        lambda_t = lambda_{t-1} + (t |g_t - g_{t-1}|_inf)^2,   alpha_t = first sqrt(lambda_t / ln(d D + 1))
        x_{t+1}  = argmin <t (g_t - g_{t-1}) + (t + 1) g_t, x> + (t + 1) h(x) + alpha_t B_phi(x, x_t)
        y_{t+1}  = (1 - 2/(t + 1)) y_t + 2/(t + 1) x_{t+1}

    g_t is asked at y_t; D is the largest bound, 1 where there is none.
    """

    mirror: MirrorMap
    estimator: Estimator
    first: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", positive("first", self.first))

    def init(self, x0: Array, problem: Problem, key: Key) -> State:
        """x_1 = y_1 = x0."""
        self.mirror.check(problem.penalty, problem.box)
        ahead = Ahead(self.estimator.init(problem), x0, np.zeros_like(x0))
        return State(problem, key, 0, x0, ahead, (0, 0.0))

    def ask(self, state: State) -> Query:
        """The estimator's query at y_t."""
        return self.estimator.ask(state.memory.estimator, state.problem, state.x, state.t, state.key)

    def tell(self, state: State, query: Query, values: Values) -> State:
        """One step of x, and the average."""
        y, problem, ahead = state.x, state.problem, state.memory
        (f, g), memory = self.estimator.tell(ahead.estimator, query, values)
        if g is None:
            last = Measured(y, f, math.nan, math.nan)
            return replace(state, t=state.t + 1, memory=replace(ahead, estimator=memory), last=last)
        t, total = state.pace[0] + 1, state.pace[1]
        change = g - ahead.gradient
        total += (t * float(np.abs(change).max())) ** 2
        reach = problem.box.reach if math.isfinite(problem.box.reach) and problem.box.reach > 0 else 1.0
        alpha = self.first * math.sqrt(total / math.log(problem.d * reach + 1)) or self.first
        h = ElasticNet((t + 1) * problem.penalty.l1, (t + 1) * problem.penalty.l2)
        x = self.mirror.step(ahead.x, t * change + (t + 1) * g, alpha, h, problem.box)
        share = x.dtype.type(2 / (t + 1))
        average = share * x + (1 - share) * y
        for point in (x, average):
            point.flags.writeable = False
        last = Measured(y, f, alpha, alpha * norm2(ahead.x, x) / (t + 1))
        return replace(state, t=state.t + 1, x=average, memory=Ahead(memory, x, g), pace=(t, total), last=last)


@dataclass(frozen=True, slots=True, eq=False)
class Recursive:
    """What Storm keeps: the last iterate and the gradient estimate there."""

    x: Array
    gradient: Array


@dataclass(frozen=True, slots=True)
class Storm:
    """ExpStorm: the last estimate, corrected by differences along the same directions at the last iterate and at x.

        d_t     = g_t(x_t) + (1 - t^(-1/2)) (d_{t-1} - g_t(x_{t-1}))      b_t = ceil(sqrt t) directions, nu = 1/(t d)
        v       = P(x_t, d_t, eta_t),   eta_t^2 = max(1, sum_{s < t} (eta_s |v_s - x_s|_1)^2)
        x_{t+1} = x_t + (eta_t / eta_{t+1}) (v - x_t)

    It uses 2 b_t + 2 queries per iteration, b_t + 1 in the first.
    """

    mirror: MirrorMap
    directions: Directions = rademacher
    max_block_bytes: int = MAX_BLOCK_BYTES

    def init(self, x0: Array, problem: Problem, key: Key) -> State:
        """x_1 = x0, with no estimate yet."""
        if problem.stochastic:
            raise ArgumentError("expected stochastic=False with Storm: it asks one function at two points")
        self.mirror.check(problem.penalty, problem.box)
        return State(problem, key, 0, x0, Recursive(x0, np.zeros_like(x0)), 0.0)

    def ask(self, state: State) -> Query:
        """x_t and x_t + nu u_j, then the same at x_{t-1}."""
        t, d = state.t + 1, state.problem.d
        count, nu = math.isqrt(t - 1) + 1, 1 / (t * d)
        stream = Stream(self.directions, state.key, state.t, count, d, state.x.dtype, None, self.max_block_bytes)
        points = [state.x] if t == 1 else [state.x, state.memory.x]
        segments = [segment for x in points for segment in (Segment(x, 1), Segment(x, count, stream, nu))]
        return Query(tuple(segments), None, self.max_block_bytes)

    def tell(self, state: State, query: Query, values: Values) -> State:
        """One step."""
        x, problem, moved = state.x, state.problem, query.segments[1]
        stream, count = moved.stream, moved.count
        if not isinstance(stream, Stream):
            raise ArgumentError("expected the query that ask() gave")
        here, *before = (
            (told[1:] - told[0]) * (stream.delta / (count * moved.radius)) for told in values.reshape(-1, count + 1)
        )
        estimate = stream.combine(here)
        if before:
            kept = estimate.dtype.type(1 - (state.t + 1) ** -0.5)
            estimate += kept * (state.memory.gradient - stream.combine(before[0]))
        eta = max(1.0, math.sqrt(state.pace))
        v = self.mirror.step(x, estimate, eta, problem.penalty, problem.box)
        total = state.pace + (eta * float(np.abs(v - x).sum(dtype=np.float64))) ** 2
        share = x.dtype.type(eta / max(1.0, math.sqrt(total)))
        x_next = x + share * (v - x)
        x_next.flags.writeable = False
        last = Measured(x, float(values[0]), eta, eta * norm2(x, v))
        return replace(state, t=state.t + 1, x=x_next, memory=Recursive(x, estimate), pace=total, last=last)
