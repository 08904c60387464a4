"""The open sets of a search by group testing: what to measure next, and what a measurement leaves of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zomirror.methods.group_testing.probes import Probes
from zomirror.numerics.frozen import changed
from zomirror.problem import Problem

Reals = NDArray[np.float64]
ROOM = 1024
"""The largest number of coordinates that are found, and of sets that are open at a time."""
SURE = 4.0
"""Standard deviations of the error above which a difference is not chance."""
NARROW = 0.25
"""A window is measured if it is at most a quarter of its set; otherwise the set is split."""
WIDTH = 12
"""Sets are split into more than two parts where a batch would have fewer rows than this."""
DEEPEST = 3
"""Until a coordinate is found, only the 3 smallest sets are split."""
PATIENCE, SPARSE = 120, 3.0
"""The search ends after 120 queries that found nothing; after three times as many where the small sets show no dense
background; after more where a coordinate has been found or f is noisy, and there are more than DEEPEST open sets."""
MINOR = 0.005
"""Sets whose differences are below 0.5 % of the largest slope are left to a later search."""
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


def tests(search: Search) -> list[Test]:
    """What to measure next."""
    nodes = search.nodes[: search.open]
    chosen = list(range(search.open))
    if search.count == search.known:
        chosen = sorted(np.argsort(nodes[:, 1] - nodes[:, 0], kind="stable")[:DEEPEST].tolist())
    parts = min(max(2, 1 + -(-WIDTH // (4 * len(chosen)))), 4)
    found: list[Test] = []
    for j in chosen:
        found += _decided(search, j, parts)
    return found


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


def tested(search: Search, probes: Probes, y: Reals, bend: Reals) -> Search:
    """With the measured sets."""
    asked = tests(search)
    touched = {test.node for test in asked}
    nodes = [search.nodes[j] for j in range(search.open) if j not in touched]
    found = search.found[: search.count].tolist()
    slopes, curvatures = search.slopes.copy(), search.curvatures.copy()
    at, v = 0, search.error**2
    for j in sorted(touched):
        rest = search.nodes[j].copy()
        mine = [test for test in asked if test.node == j]
        for test in mine:
            y1, y2 = float(y[at]), 0.0 if test.single else float(y[at + 1])
            matters = abs(y1) > SURE * math.sqrt(v + search.background**2)
            if not test.single:
                y2 = 2 * y2 - y1 if search.inward else y2
                nodes.append(np.array([test.low, test.high, y1, y2, v, second_variance(search) * v, 0, 0]))
            elif matters and len(found) < search.found.size and probes.moves[probes.order[test.low]]:
                i = int(probes.order[test.low])
                move = float(probes.moves[i])
                falls = not search.kinked or y1 < 0
                slopes[len(found)], curvatures[len(found)] = falls * y1 / move, bend[at] / (move * move)
                found.append(i)
            rest = _without(rest, test.low, test.high, y1, y2, v, second_variance(search) * v)
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
    nodes = [node for node in nodes if significant(search, node, least)][: len(search.nodes)]
    idle = search.idle if len(found) == search.count else 0
    patience = PATIENCE * (1.0 if search.background else SPARSE)
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


def significant(search: Search, node: Reals, least: float) -> bool:
    """Whether something in the set matters: a difference is above `least` and not chance."""
    s1, s2 = _doubts(search, node)
    return bool(abs(node[2]) > max(SURE * s1, least) or abs(node[3]) > max(SURE * s2, least))


def second_variance(search: Search) -> float:
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
