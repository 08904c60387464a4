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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError
from zomirror.methods.coordinate_groups import drawn
from zomirror.methods.query import Query, Segment
from zomirror.numerics.arrays import Array, Indices, Values
from zomirror.numerics.elementary import root
from zomirror.numerics.frozen import changed
from zomirror.numerics.random import Key
from zomirror.problem import Problem

Reals = NDArray[np.float64]
ROOM = 1024
"""The largest number of coordinates that are found, and of sets that are open at a time."""
SMALL_SETS, SMALL_SET = 12, 9
"""The first batch measures 12 sets of at most 9 coordinates, and of at most a 64th of all; of an odd number, so that
equal slopes never cancel."""
FEW_EMPTY, EMPTY = 3, 0.02
"""The gradient is not dense if at least 3 of these differences are below 2 % of their median size, or chance."""
RADII = (1.0, 4.0, 16.0, 64.0)
"""The radii that the first batch compares, in units of the shortest."""
SURE = 4.0
"""Standard deviations of the error above which a difference is not chance."""
NARROW = 0.25
"""A window is measured if it is at most a quarter of its set; otherwise the set is split."""
WIDTH = 12
"""Sets are split into more than two parts where a batch would have fewer rows than this."""
DEEPEST = 3
"""Until a coordinate is found, only the 3 smallest sets are split."""
PATIENCE = 120
"""The search ends after 120 queries that found nothing; after more where a coordinate has been found or f is noisy, and
there are more than DEEPEST open sets."""
NOISY = 2.0
"""With noise or at a kink the search ends after twice as many: it takes more sets to find a coordinate."""
LEAST, MOST = {np.dtype(np.float32): 4e-3, np.dtype(np.float64): 4e-5}, 0.03125
"""The bounds of the second radius, in units of the scale of x: the last one is at most half of the scale."""
CLEAR = 25.0
"""The slopes of the small sets count if their mean square is above 25 times that of the noise, which six points may
underrate."""
MEDIAN = 0.4549364
"""The median of the square of a standard normal number."""
EVEN = 1e-5
"""Nearly exact: the error of a difference is below 1e-5 of it. Then the last part of a set is found by subtraction."""
MINOR = 0.005
"""Sets whose differences are below 0.5 % of the largest slope are left to a later search."""

KINK = 0.5
"""x is at a kink if the mean slope to both sides is at least half as large over a radius as over four times that: it is
a quarter as large where f is smooth."""

SAMPLE, TEST, OVER = range(3)
"""What a batch is for."""


class Test(NamedTuple):
    """One measurement: the set `node` is split, or searched within [low, high)."""

    node: int
    low: int
    high: int
    single: bool = False
    part: bool = False
    """Whether the set is split into parts, and gives way to them."""


@dataclass(frozen=True, eq=False)
class Search:
    """A search at one point; arrays are padded beyond `open` and `count`."""

    nodes: Reals
    """Open sets: first position, end, y1, y2, their variances, and the first position and end of a window that was
    measured and taken out."""
    found: NDArray[np.intp]
    """Coordinates; the first `known` of them were found before, and are not moved."""
    slopes: Reals
    curvatures: Reals
    open: int = 0
    count: int = 0
    known: int = 0
    stage: int = OVER
    t: int = 0
    """The iteration that the positions and signs are drawn for."""
    radius: float = 0.0
    sd: float = 0.0
    """The standard deviation of the noise of f."""
    reach: float = 0.0
    """The largest radius that the first batch tries; the steps of coordinates with less room than this are shorter."""
    inward: bool = False
    kinked: bool = False
    """Whether x is at a kink: points are inward, and only coordinates along which f falls are found."""
    repeated: bool = False
    """Whether the first batch has been repeated with other signs."""
    error: float = 0.0
    """The standard deviation of a difference, from noise and bias."""
    background: float = 0.0
    """b."""
    least: float = 0.0
    """l1: the penalty keeps coordinates with smaller slopes at 0."""
    exact: bool = False
    """Whether halves may be subtracted."""
    idle: int = 0
    """Queries since the last coordinate was found."""
    rows: int = 0
    """Queries so far."""

    @classmethod
    def blank(cls, problem: Problem) -> Search:
        """No search."""
        room = min(ROOM, problem.width)
        zero = np.zeros(room)
        return cls(np.zeros((ROOM, 8)), np.zeros(room, np.intp), zero, zero)


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """Row j moves the coordinates at the positions [low_j, high_j), by `moves` times a weight.

    The weight is 1 or grows with the place p: p, or (1 + p) / 2 if `inward`, so that no coordinate moves outwards.
    """

    order: NDArray[np.intp]
    """The coordinate at each position."""
    moves: Array
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    weighted: NDArray[np.bool_]
    factor: Reals
    inward: bool

    def add(self, base: Array, radius: float, start: int, out: Array) -> None:
        """Write base + radius u_j for the rows j = start, start + 1, ... into out."""
        out[:] = base
        for row, j in zip(out, range(start, start + len(out)), strict=True):
            low, high = int(self.low[j]), int(self.high[j])
            on, m = self.order[low:high], high - low
            step = (radius * self.factor[j]) * self.moves[on]
            if self.weighted[j]:
                place = (2.0 * np.arange(m) + 1 - m) / m
                step = step * ((1 + place) / 2 if self.inward else place).astype(base.dtype)
            row[on] += step


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
        for test in _tests(search):
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
    return _tested(search, probes, y, bend)


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
    nodes[0] = 0, n, whole[j], placed, error**2, _second(search) * max(float(errors[1]), error) ** 2, 0, 0
    exact = error < EVEN * abs(whole[j])
    search = changed(
        search, radius=radius, error=error, background=background, nodes=nodes, open=1, exact=exact, stage=TEST
    )
    if _significant(search, nodes[0], search.least):
        return search
    if search.repeated or background or not (y.any() or bend.any()):
        return changed(search, open=0, stage=OVER)
    rise = bend[: len(RADII)] * (search.radius * np.array(RADII)) / 2
    kinked = not search.inward and abs(rise[0]) > max(2 * SURE * errors[0], KINK * abs(rise[1]))
    search = changed(search, t=search.t + 1, repeated=True, kinked=bool(kinked), inward=search.inward or bool(kinked))
    return changed(search, open=0, stage=SAMPLE, radius=radius / RADII[j], idle=0)


def _tests(search: Search) -> list[Test]:
    """What to measure next."""
    nodes = search.nodes[: search.open]
    chosen = list(range(search.open))
    if search.count == search.known:
        chosen = sorted(np.argsort(nodes[:, 1] - nodes[:, 0], kind="stable")[:DEEPEST].tolist())
    parts = min(max(2, 1 + -(-WIDTH // (4 * len(chosen)))), 4)
    tests: list[Test] = []
    for j in chosen:
        tests += _decided(search, j, parts)
    return tests


def _decided(search: Search, j: int, parts: int) -> Iterator[Test]:
    """The tests of one set."""
    y1, y2 = search.nodes[j, 2:4].tolist()
    low, high, out, back = (int(search.nodes[j, k]) for k in (0, 1, 6, 7))
    m = high - low
    if m == 1:
        yield Test(j, low, high, single=True)
        return
    if back:  # a window was taken out: what is left is on both sides of it
        sides = [(low, out), (back, high)]
        sides = [side for side in sides if side[0] < side[1]]
        yield from (Test(j, *side, part=True) for side in (sides[:1] if search.exact and len(sides) > 1 else sides))
        return
    s1, s2 = _doubts(search, search.nodes[j])
    if abs(y1) > SURE * s1:
        q, e = y2 / y1, SURE * (s2 + abs(y2 / y1) * s1) / abs(y1)
        first = max(math.ceil(((q - e) * m + m - 1) / 2), 0)
        last = min(math.floor(((q + e) * m + m - 1) / 2), m - 1)
        if first <= last and last - first + 1 <= max(1.0, NARROW * m):
            yield Test(j, low + first, low + last + 1, single=first == last)
            return
    parts = min(parts, m)
    cuts = [low + m * i // parts for i in range(parts + 1)]
    for i in range(parts - search.exact):
        yield Test(j, cuts[i], cuts[i + 1], part=True)


def _doubts(search: Search, node: Reals) -> tuple[float, float]:
    """The standard deviations of y1 and y2 of one set."""
    v1, v2, spread = float(node[4]), float(node[5]), search.background**2 * float(node[1] - node[0])
    return math.sqrt(v1 + spread), math.sqrt(v2 + spread / 3)


def _tested(search: Search, probes: Probes, y: Reals, bend: Reals) -> Search:
    """With the measured sets."""
    tests = _tests(search)
    touched = {test.node for test in tests}
    nodes = [search.nodes[j] for j in range(search.open) if j not in touched]
    found = search.found[: search.count].tolist()
    slopes, curvatures = search.slopes.copy(), search.curvatures.copy()
    at, v = 0, search.error**2
    for j in sorted(touched):
        rest = search.nodes[j].copy()
        mine = [test for test in tests if test.node == j]
        for test in mine:
            y1, y2 = float(y[at]), 0.0 if test.single else float(y[at + 1])
            matters = abs(y1) > SURE * math.sqrt(v + search.background**2)
            if not test.single:
                y2 = 2 * y2 - y1 if search.inward else y2
                nodes.append(np.array([test.low, test.high, y1, y2, v, _second(search) * v, 0, 0]))
            elif matters and len(found) < search.found.size and probes.moves[probes.order[test.low]]:
                i = int(probes.order[test.low])
                move = float(probes.moves[i])
                falls = not search.kinked or y1 < 0
                slopes[len(found)], curvatures[len(found)] = falls * y1 / move, bend[at] / (move * move)
                found.append(i)
            rest = _without(rest, test.low, test.high, y1, y2, v, _second(search) * v)
            if not (test.part or (test.single and matters)):
                rest[6:] = test.low, test.high
            at += 1 if test.single else 2
        low, high, back = rest[[0, 1, 7]].tolist()
        left = int(back if mine[-1].high == rest[6] else mine[-1].high)
        if not mine[-1].part:
            if high - low > 1:
                nodes.append(rest)
        elif left < high:  # the last part was not measured
            nodes.append(_shifted(rest, left))
    largest = float(np.abs(slopes[search.known : len(found)]).max(initial=0.0))
    least = max(MINOR * largest, search.least)
    nodes = [node for node in nodes if _significant(search, node, least)][: len(search.nodes)]
    idle = search.idle if len(found) == search.count else 0
    patience = PATIENCE * (1.0 if search.exact and not search.kinked else NOISY)
    if len(found) > search.known or not search.exact:
        patience = max(patience, PATIENCE * len(nodes) / DEEPEST)
    over = not nodes or idle > patience or len(found) == search.found.size
    if over and search.kinked:
        kept = np.flatnonzero((np.arange(len(found)) < search.known) | (slopes[: len(found)] != 0))
        for values in (slopes, curvatures):
            values[: kept.size] = values[kept]
        found = np.array(found)[kept].tolist()
    table, wide = search.nodes.copy(), np.zeros_like(search.found)
    wide[: len(found)] = found
    if not over:
        table[: len(nodes)] = nodes
    return changed(
        search,
        nodes=table,
        open=0 if over else len(nodes),
        found=wide,
        slopes=slopes,
        curvatures=curvatures,
        count=len(found),
        idle=idle,
        stage=OVER if over else TEST,
    )


def _significant(search: Search, node: Reals, least: float) -> bool:
    """Whether something in the set matters: a difference is above `least` and not chance."""
    s1, s2 = _doubts(search, node)
    return bool(abs(node[2]) > max(SURE * s1, least) or abs(node[3]) > max(SURE * s2, least))


def _second(search: Search) -> float:
    """The variance of y2 relative to that of y1: y2 is twice what was measured minus y1, if the points lie inwards."""
    return 5.0 if search.inward else 1.0


def _without(node: Reals, low: int, high: int, y1: float, y2: float, v1: float, v2: float) -> Reals:
    """The set without the part [low, high), for which y1 and y2 were measured with these variances."""
    rest = node.copy()
    m, width = node[1] - node[0], high - low
    scale, shift = width / m, (width + 2 * (low - node[0]) - m) / m
    rest[2] -= y1
    rest[3] -= scale * y2 + shift * y1
    rest[4] += v1
    rest[5] += scale * scale * v2 + shift * shift * v1
    return rest


def _shifted(node: Reals, low: int) -> Reals:
    """The set [low, end) of a node of which only that part is left."""
    part = node.copy()
    m, width = node[1] - node[0], node[1] - low
    scale, shift = width / m, (width + 2 * (low - node[0]) - m) / m
    part[0] = low
    part[3] = (node[3] - shift * node[2]) / scale
    part[5] = (node[5] + shift * shift * node[4]) / (scale * scale)
    part[6:] = 0
    return part
