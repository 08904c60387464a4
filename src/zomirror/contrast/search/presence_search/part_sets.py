"""Sets of parts by where they lie: windows, compact blocks, connected pieces. No queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from zomirror.numerics.arrays import Array, Indices

Mask = NDArray[np.bool_]
BATCH = 32
"""The most rows of one request: what networks take at a time."""
OFFSETS = 3
"""Windows along each axis: at the beginning, in the middle and at the end."""


def windows(mask: Mask, positions: Array, ratio: float, count: int = OFFSETS) -> list[Mask]:
    """Windows of `ratio` times the side of the set's bounding box, `count` along each axis, all different.

    They are proper subsets of the set.
    """
    members = np.flatnonzero(mask)
    where = positions[members]
    low, extent = where.min(axis=0), np.ptp(where, axis=0)
    offsets = [np.linspace(0, 1 - ratio, count) if side > 0 else np.zeros(1) for side in extent]
    corners = np.stack(np.meshgrid(*offsets, indexing="ij"), axis=-1).reshape(-1, positions.shape[1])
    slack, found = 1e-9 * (1 + np.abs(where).max()), {}
    for corner in corners:
        begin = low + corner * extent - slack
        end = begin + ratio * extent + 2 * slack
        window = np.zeros_like(mask)
        window[members[((where >= begin) & (where <= end)).all(axis=1)]] = True
        if 0 < window.sum() < members.size:
            found[window.tobytes()] = window
    return list(found.values())


def blocks(mask: Mask, positions: Array, weights: Array, count: int) -> list[Indices]:
    """The set in up to `count` compact blocks: the heaviest is halved along its longer side until there are enough."""
    found = [np.flatnonzero(mask)]
    while len(found) < count:
        sizes = [float(weights[block].sum()) if block.size > 1 else -1.0 for block in found]
        largest = int(np.argmax(sizes))
        if sizes[largest] < 0:
            break
        block = found[largest]
        axis = int(np.argmax(np.ptp(positions[block], axis=0)))
        block = block[np.argsort(positions[block, axis], kind="stable")]
        total = np.cumsum(weights[block])
        half = min(max(int(np.searchsorted(total, total[-1] / 2)), 1), block.size - 1)
        found[largest : largest + 1] = [block[:half], block[half:]]
    return found


def components(mask: Mask, edges: Indices) -> int:
    """How many connected pieces the set has."""
    inside = edges[mask[edges].all(axis=1)] if edges.size else np.empty((0, 2), np.intp)
    graph = coo_array((np.ones(len(inside)), (inside[:, 0], inside[:, 1])), shape=(mask.size, mask.size))
    return int(connected_components(graph, directed=False)[0]) - int((~mask).sum())


def without(mask: Mask, pieces: list[Indices]) -> Mask:
    """The set without these pieces."""
    left = mask.copy()
    for piece in pieces:
        left[piece] = False
    return left


def in_one_piece(mask: Mask, pieces: list[Indices], edges: Indices) -> list[int]:
    """Which of the pieces can be taken away, in this order, without parting the set into more connected pieces."""
    most, left, rest = components(mask, edges), mask, list(range(len(pieces)))
    order: list[int] = []
    while True:
        for i in rest:
            fewer = without(left, [pieces[i]])
            if fewer.any() and components(fewer, edges) <= most:
                break
        else:
            return order
        left, rest = fewer, [j for j in rest if j != i]
        order.append(i)
