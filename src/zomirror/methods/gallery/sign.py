"""ZO-signSGD (Liu, Chen, Chen and Hong, 2019): only the signs of the estimate are used.

x_{t+1} = argmin_{y in K} <sign(g_t), y> + h(y) + (eta/2) |y - x_t|^2
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zomirror.methods.descent import MirrorDescent
from zomirror.methods.directions import gaussian
from zomirror.methods.estimator import Estimate, EuclideanRadius, Radius, TwoPoint
from zomirror.methods.mirror import Euclidean
from zomirror.methods.query import Query
from zomirror.methods.step import Constant
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.random import Key
from zomirror.problem import Problem

_RADIUS = EuclideanRadius()


def zo_signsgd(eta: float, batch_size: int = 200, *, radius: float | Radius = _RADIUS) -> MirrorDescent:
    """ZO-signSGD: every coordinate moves by 1/eta in each iteration."""
    return MirrorDescent(Euclidean(), Signs(TwoPoint(batch_size, gaussian, radius)), Constant(eta))


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of another estimate."""

    inner: TwoPoint

    def init(self, problem: Problem) -> None:
        """Nothing to remember."""

    def ask(self, memory: None, problem: Problem, x: Array, t: int, key: Key) -> Query:
        """The inner query."""
        return self.inner.ask(None, problem, x, t, key)

    def tell(self, memory: None, query: Query, values: Values) -> tuple[Estimate, None]:
        """sign(g)."""
        (f, g), _ = self.inner.tell(None, query, values)
        return Estimate(f, np.sign(g) if g is not None else None), None
