"""Points with their small entries set to zero, and which of them to take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zomirror.methods.query import Query
from zomirror.methods.survey.findings import DOUBT
from zomirror.numerics.arrays import Array, Values
from zomirror.problem import Problem

GROWING, OUTSTANDING = 4.0, 3.0
"""Entries that f pulls away from 0 with a slope above 4 l1 and above 3 times the RMS of all slopes are not pruned: they
have only begun to grow."""


@dataclass(frozen=True, slots=True, eq=False)
class Pruned:
    """Rows of x with the `small` entries below a threshold set to `zero`, the point of the box nearest to 0."""

    limits: NDArray[np.float64]
    zero: Array
    small: NDArray[np.bool_]
    """Where pruning is allowed at all."""

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """Row j is base, pruned with limit start + j; the radius is not used."""
        size = np.abs(base)
        for row, limit in zip(out, self.limits[start:], strict=False):
            row[:] = np.where(self.small & (size < limit), self.zero, base)


class Point(NamedTuple):
    """x, f(x) and h(x)."""

    x: Array
    f: float
    h: float


def best_pruned(query: Query, values: Values, problem: Problem, share: float, sd: float) -> tuple[Point, Point]:
    """The best row whose pruning pays by more than the noise, row 0 being x as it was; and the row with the least F."""
    f0, h0 = float(values[0]), problem.penalty(query.segments[0].base)
    taken = least = Point(query.segments[0].base, f0, h0)
    enough = f0 + h0 - DOUBT * sd
    for f, row in zip(values.tolist(), rows_of(query, len(values)), strict=True):
        h = problem.penalty(row)
        if f + h < least.f + least.h or f + h < enough:
            x = row.copy()  # a view would keep the whole block alive
            x.flags.writeable = False
            point = Point(x, f, h)
            least = point if f + h < least.f + least.h else least
            if f - f0 <= share * (h0 - h) and f + h < enough:
                taken, enough = point, f + h
    return taken, least


def rows_of(query: Query, count: int) -> Iterator[Array]:
    """Its first `count` points one after the other, made a block at a time."""
    for start, stop in query.blocks():
        if start < count:
            yield from query.points(start, min(stop, count))
