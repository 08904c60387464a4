"""Gradient estimates from function values alone.

`ask` says which points to query, and `tell` turns their values into a gradient. Both are pure: asking twice gives the
same query, and an estimator has no other state than the memory that it returns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from zomirror.checks import positive, positive_integer
from zomirror.errors import ArgumentError
from zomirror.methods.directions import Directions, rademacher
from zomirror.methods.query import MAX_BLOCK_BYTES, Query, Segment, Stream
from zomirror.numerics.arrays import Array, Indices, Values
from zomirror.numerics.elementary import log
from zomirror.numerics.random import Key
from zomirror.problem import Problem

Memory = Any
"""A frozen dataclass of arrays and numbers, or None; only the estimator's own functions look inside."""


class Estimate(NamedTuple):
    """What one batch of values gives: f at the iterate, and the gradient there.

    None as gradient means that the estimator has to ask again before a step is taken.
    """

    f: float
    gradient: Array | None


class Estimator(Protocol):
    """From a point to a query, from its values to a gradient estimate."""

    def init(self, problem: Problem) -> Memory:
        """The memory before the first query."""
        ...

    def ask(self, memory: Memory, problem: Problem, x: Array, t: int, key: Key) -> Query:
        """The points of iteration t."""
        ...

    def tell(self, memory: Memory, query: Query, values: Values) -> tuple[Estimate, Memory]:
        """The estimate at x_t, and the memory for the next iteration."""
        ...


class Slopes(NamedTuple):
    """Measured partial derivatives of f."""

    coordinates: Indices
    values: Values


class Learned(Protocol):
    """What an estimator with a memory of the gradient knows of f, to read."""

    @property
    def w(self) -> Array:
        """The estimate of the gradient on the free coordinates."""
        ...

    @property
    def f(self) -> float:
        """f at the last iterate."""
        ...

    @property
    def radius(self) -> float:
        """The smoothing radius nu."""
        ...

    @property
    def sd(self) -> float:
        """The standard deviation of the noise of f."""
        ...

    @property
    def central(self) -> bool:
        """Whether differences are two-sided, as a noisy f needs them."""
        ...


class Correctable(Estimator, Protocol):
    """An estimator whose memory is a `Learned` and can be told what other batches have measured."""

    def corrected(self, memory: Memory, problem: Problem, f: float, slopes: Slopes | None) -> Memory:
        """With f at the iterate and, where they were measured, its partial derivatives there."""
        ...

    def restarted(self, memory: Memory, problem: Problem) -> Memory:
        """The memory before the first query of a new descent: only the noise of f and nu stay known."""
        ...


class Radius(Protocol):
    """A rule for the smoothing radius nu."""

    def __call__(self, d: int, batch_size: int) -> float:
        """Nu in d dimensions with that many directions."""
        ...


@dataclass(frozen=True, slots=True)
class EntropyRadius:
    """nu = sqrt(2 e (2 ln d - 1) / m) / d; below d = 3, ln 3 replaces ln d, so that the root exists."""

    def __call__(self, d: int, batch_size: int) -> float:
        """Nu for the entropy map with Rademacher directions."""
        return math.sqrt(2 * math.e * (2 * _ln(max(d, 3)) - 1) / batch_size) / d


@lru_cache(maxsize=16)
def _ln(d: int) -> float:
    """ln d, with the same bits on every machine; the last 16 dimensions are remembered."""
    return float(log(np.array([float(d)]))[0])


@dataclass(frozen=True, slots=True)
class EuclideanRadius:
    """nu = 1 / sqrt(m d)."""

    def __call__(self, d: int, batch_size: int) -> float:
        """Nu for the Euclidean map with Gaussian directions."""
        return 1 / math.sqrt(batch_size * d)


@dataclass(frozen=True, slots=True)
class TwoPoint:
    """g = delta/(m nu) sum_j (f(x + nu u_j) - f(x)) u_j, from row 0 = x and rows 1..m = x + nu u_j.

    Of a stochastic f, f(x; xi_j) is asked for each direction: rows 0..m-1 are x, rows m..2m-1 are x + nu u_j,
    and rows j and m + j share the draw t m + j.

    The points may leave the box by nu per coordinate, as in the paper. `clip=True` keeps them inside, at the price of
    a bias on coordinates nearer than nu to a side: there the estimate sees only half of the differences.
    `free_only=True` never moves a coordinate with lower == upper (d in nu stays the full dimension).
    """

    batch_size: int = 200
    directions: Directions = rademacher
    radius: float | Radius = EntropyRadius()
    free_only: bool = False
    clip: bool = False
    max_block_bytes: int = MAX_BLOCK_BYTES

    def __post_init__(self) -> None:
        # A numpy scalar becomes the plain number it stands for: small integer types would overflow below.
        object.__setattr__(self, "batch_size", positive_integer("batch_size", self.batch_size))
        object.__setattr__(self, "max_block_bytes", positive_integer("max_block_bytes", self.max_block_bytes))
        if not callable(self.radius):
            object.__setattr__(self, "radius", positive("radius", self.radius))

    def init(self, problem: Problem) -> None:
        """Nothing to remember."""

    def ask(self, memory: None, problem: Problem, x: Array, t: int, key: Key) -> Query:
        """X itself, then x + nu u_j."""
        m, d = self.batch_size, problem.d
        nu = self.radius(d, m) if callable(self.radius) else self.radius
        free = problem.free if self.free_only else None
        stream = Stream(self.directions, key, t, m, d, x.dtype, free, self.max_block_bytes)
        draws = t * m if problem.stochastic else None
        base = Segment(x, m if problem.stochastic else 1, first_sample=draws)
        moved = Segment(x, m, stream, nu, first_sample=draws)
        return Query((base, moved), problem.box if self.clip else None, self.max_block_bytes)

    def tell(self, memory: None, query: Query, values: Values) -> tuple[Estimate, None]:
        """The mini-batch mean of the two-point differences."""
        base, moved = query.segments
        stream = moved.stream
        if not isinstance(stream, Stream):
            raise ArgumentError("expected the query that ask() gave")
        at_x, at_moved = values[: base.count], values[base.count :]
        slopes = (at_moved - at_x) * (stream.delta / (moved.count * moved.radius))
        f = float(at_x[0]) if base.count == 1 else float(np.mean(at_x))
        return Estimate(f, stream.combine(slopes)), None
