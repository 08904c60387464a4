"""Adaptive group testing: find the few coordinates that f depends on near x, with some 8 queries for each.

The free coordinates get random positions k = 0 .. n-1 and random signs sigma. A set is an interval of m positions, with
the local places p in (-1, 1), and two differences of f measure it:

    y1 = sum sigma_i g_i        y2 = sum sigma_i p_i g_i        (over the set; two-sided, 2 queries each)

    drop     y1 and y2 are within the error of 0: nothing in the set matters
    window   the places around y2 / y1 that the error allows: if one coordinate dominates, it is there. A window of one
             coordinate is measured by itself, which gives its slope and curvature; a wider one is a set of its own.
             What was measured is subtracted from the set
    split    several coordinates share the set, since no coordinate is at y2 / y1: two halves, the second by subtraction

The first batch measures twelve small sets. Unless a few of them are empty, the median of their differences shows the
root mean square b of the slopes of most coordinates, which counts as noise of variance b^2 m for a set of m: so a dense
gradient hides every coordinate, the search ends at once, and in a compressible one the few that stand out are found.

The same batch measures the set of all over four radii, to choose the one with the least error from noise and bias.
Where x is too close to a bound for two-sided differences, all points lie inwards: (4 f(x + r u) - f(x + 2 r u) -
3 f(x)) / 2 r.

If the set of all seems empty, the signs may have cancelled: it is measured once more with other signs. If f rises or
falls alike on both sides of x, in proportion to the radius, x is at a kink of f, as at 0 where f depends on |x_i|: then
these points lie on one side of x too, and only coordinates along which f falls are found.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError
from zomirror.methods.coordinate_groups import drawn
from zomirror.methods.group_testing.open_sets import (
    OVER,
    SAMPLE,
    SURE,
    TEST,
    Search,
    second_variance,
    significant,
    tested,
    tests,
)
from zomirror.methods.group_testing.probes import Probes
from zomirror.methods.query import Query, Segment
from zomirror.numerics.arrays import Array, Indices, Values
from zomirror.numerics.elementary import root
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Key
from zomirror.problem import Problem

Reals = NDArray[np.float64]
SMALL_SETS, SMALL_SET = 12, 9
"""The first batch measures 12 sets of at most 9 coordinates, and of at most a 64th of all; of an odd number, so that
equal slopes never cancel."""
FEW_EMPTY, EMPTY = 3, 0.02
"""The gradient is not dense if at least 3 of these differences are below 2 % of their median size, or chance."""
RADII = (1.0, 4.0, 16.0, 64.0)
"""The radii that the first batch compares, in units of the shortest."""
LEAST, MOST = {np.dtype(np.float32): 4e-3, np.dtype(np.float64): 4e-5}, 0.03125
"""The bounds of the second radius, in units of the scale of x: the last one is at most half of the scale."""
CLEAR = 25.0
"""The slopes of the small sets count if their mean square is above 25 times that of the noise, which six points may
underrate."""
MEDIAN = 0.4549364
"""The median of the square of a standard normal number."""
EVEN = 1e-5
"""Nearly exact: the error of a difference is below 1e-5 of it. Then the last part of a set is found by subtraction."""
KINK = 0.5
"""x is at a kink if the mean slope to both sides is at least half as large over a radius as over four times that: it is
a quarter as large where f is smooth."""


def shortest(sd: float, slope: float, scale: float, dtype: np.dtype[Any]) -> float:
    """The shortest radius to try: a quarter of that which balances noise and bias of two-sided differences."""
    return scale * min(max(root(sd / (scale * slope), 3), LEAST[dtype]), MOST) / RADII[1]


def begun(problem: Problem, x: Array, t: int, sd: float, shortest: float, known: Indices | tuple[()] = ()) -> Search:
    """A search at x among all coordinates but the `known` ones."""
    blank = Search.blank(problem)
    found, count = blank.found.copy(), min(len(known), blank.found.size)
    found[:count] = known[:count]
    if problem.width - count < 1 or count == found.size:
        return blank
    lower, upper = (np.broadcast_to(side, x.shape) for side in (problem.box.lower, problem.box.upper))
    free = slice(None) if problem.free is None else problem.free
    reach = RADII[-1] * shortest
    inward = bool((np.minimum(x - lower, upper - x)[free] < reach).any())
    return changed(
        blank,
        found=found,
        count=count,
        known=count,
        stage=SAMPLE,
        t=t,
        radius=shortest,
        sd=sd,
        inward=inward,
        reach=reach,
        least=problem.penalty.l1,
    )


def asked(search: Search, problem: Problem, x: Array, key: Key) -> Query:
    """The next batch: x, then two rows for each difference."""
    order, moves = _layout(search, problem, x, key)
    if search.stage == SAMPLE:
        size, n = _small(order.size), order.size
        sets = [(0, n, False, radius) for radius in RADII] + [(0, n, True, RADII[1])]
        sets += [(n - (j + 1) * size, n - j * size, False, RADII[1]) for j in range(SMALL_SETS)]
    else:
        sets = []
        for test in tests(search):
            sets.append((test.low, test.high, False, 1.0))
            if not test.single:
                sets.append((test.low, test.high, True, 1.0))
    low, high, weighted, factor = zip(*sets, strict=True)
    ends = (1.0, 2.0) if search.inward else (1.0, -1.0)
    probes = Probes(
        order,
        moves,
        np.repeat(np.array(low, np.intp), 2),
        np.repeat(np.array(high, np.intp), 2),
        np.repeat(np.array(weighted, np.bool_), 2),
        np.outer(factor, ends).ravel(),
        search.inward,
    )
    return Query((Segment(x, 1), Segment(x, 2 * len(sets), probes, search.radius)))


def told(search: Search, query: Query, values: Values) -> Search:
    """The search with this batch; it is OVER when nothing is left to test."""
    probes, radius = query.segments[1].stream, query.segments[1].radius
    if not isinstance(probes, Probes):
        raise ArgumentError("expected the query that asked() gave")
    f, ends = float(values[0]), values[1:].reshape(-1, 2)
    step = radius * probes.factor[::2]
    with np.errstate(over="ignore", invalid="ignore"):
        if search.inward:
            y = (4 * ends[:, 0] - ends[:, 1] - 3 * f) / (2 * step)
            bend = (ends[:, 1] - 2 * ends[:, 0] + f) / (step * step)
        else:
            y = (ends[:, 0] - ends[:, 1]) / (2 * step)
            bend = (ends[:, 0] + ends[:, 1] - 2 * f) / (step * step)
        squares = np.square(y)
    if not (np.isfinite(squares).all() and np.isfinite(bend).all()):
        return changed(search, open=0, stage=OVER)  # values beyond the numbers that differences can be taken of
    sd = max(search.sd, 4 * float(np.finfo(np.float64).eps) * float(np.abs(values).max()))
    search = changed(search, rows=search.rows + len(values), idle=search.idle + len(values))
    noise = sd * (math.sqrt(26) / 2 if search.inward else math.sqrt(0.5))
    if search.stage == SAMPLE:
        x = query.segments[0].base
        rounding = float(np.finfo(x.dtype).eps) * (2 + float(np.abs(x).max()) / radius)
        return _sampled(search, probes, y, bend, noise, rounding)
    return tested(search, probes, y, bend)


def _small(n: int) -> int:
    return (max(1, min(SMALL_SET, n // 64, n // SMALL_SETS)) - 1) | 1


def _layout(search: Search, problem: Problem, x: Array, key: Key) -> tuple[NDArray[np.intp], Array]:
    """The coordinate at each position, and the signed step of each coordinate in units of the radius."""
    n = problem.width
    free = np.arange(x.size) if problem.free is None else problem.free
    labels, signs = drawn(x[free], n, 0.0, 1.0, key, search.t)
    order = np.empty(n, np.intp)
    order[labels] = free
    moves = np.zeros(x.size, x.dtype)
    moves[free] = signs
    if not problem.box.unbounded:
        lower, upper = (np.broadcast_to(side, x.shape) for side in (problem.box.lower, problem.box.upper))
        above, below = upper - x, x - lower
        if search.inward:
            most = 2 * search.reach
            tight = np.where(moves > 0, above, below) < most
            moves[tight] = np.where(above >= below, 1, -1)[tight]
            moves *= np.minimum(1, np.maximum(above, below) / most).astype(x.dtype)
    moves[search.found[: search.count]] = 0
    return order, moves


def _sampled(search: Search, probes: Probes, y: Reals, bend: Reals, noise: float, rounding: float) -> Search:
    """With the radius, the background, and the set of all coordinates open; moves are rounded by the last argument."""
    n, size = probes.order.size, _small(probes.order.size)
    whole, placed, small = y[: len(RADII)], float(y[len(RADII)]), y[len(RADII) + 1 :]
    if search.inward:
        placed = 2 * placed - float(whole[1])
    errors = noise / (search.radius * np.array(RADII))
    gaps = np.maximum(np.abs(np.diff(whole)) - SURE * errors[:-1], 0.0)
    bias = np.concatenate([gaps[:1] / 16, gaps])
    j = int(np.argmin(errors + bias))
    error = math.sqrt(float(errors[j] ** 2 + bias[j] ** 2 + (rounding * np.abs(y).max()) ** 2))
    seen = float(np.median(np.square(small))) / MEDIAN
    empty = np.count_nonzero(np.abs(small) <= max(SURE * float(errors[1]), EMPTY * math.sqrt(seen)))
    dense = seen > CLEAR * errors[1] ** 2 and empty < FEW_EMPTY
    background = math.sqrt(seen / size) if dense else 0.0
    radius = search.radius * RADII[j]
    nodes = search.nodes.copy()
    nodes[0] = 0, n, whole[j], placed, error**2, second_variance(search) * max(float(errors[1]), error) ** 2, 0, 0
    exact = error < EVEN * abs(whole[j])
    search = changed(
        search, radius=radius, error=error, background=background, nodes=nodes, open=1, exact=exact, stage=TEST
    )
    if significant(search, nodes[0], search.least):
        return search
    if search.repeated or background or not (y.any() or bend.any()):
        return changed(search, open=0, stage=OVER)
    rise = bend[: len(RADII)] * (search.radius * np.array(RADII)) / 2
    kinked = not search.inward and abs(rise[0]) > max(2 * SURE * errors[0], KINK * abs(rise[1]))
    search = changed(search, t=search.t + 1, repeated=True, kinked=bool(kinked), inward=search.inward or bool(kinked))
    return changed(search, open=0, stage=SAMPLE, radius=radius / RADII[j], idle=0)
