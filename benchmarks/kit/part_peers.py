"""Other ways to a sufficient part of a photograph, written for the benchmark: SEDC, occlusion and RISE.

Each gets `ask`, a function from masks (n, h, w) to margins (n,) that counts rows, and returns the smallest mask it saw
that is valid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Masks = NDArray[Any]
Ask = Callable[[Masks], NDArray[np.float64]]
SIDE = 14
"""Cells along a side, for occlusion; 7 for the coarse masks of RISE."""


def sedc(ask: Ask, segments: NDArray[np.int64], most: int) -> Masks | None:
    """Greedy (SEDC turned to sufficiency): add the superpixel with the best margin until the class is kept."""
    count = int(segments.max()) + 1
    chosen: list[int] = []
    rows = 0
    while len(chosen) < count:
        rest = [i for i in range(count) if i not in chosen]
        if rows + len(rest) > most:
            return None
        margins = ask(np.stack([np.isin(segments, [*chosen, i]) for i in rest]))
        rows += len(rest)
        chosen.append(rest[int(np.argmin(margins))])
        if margins.min() < 0:
            break
    # what later superpixels made superfluous
    for i in list(chosen):
        fewer = [j for j in chosen if j != i]
        if fewer and rows < most:
            rows += 1
            if ask(np.isin(segments, fewer)[None])[0] < 0:
                chosen = fewer
    return np.isin(segments, chosen)


def inserted(ask: Ask, relevance: NDArray[np.float64], steps: int = 8) -> Masks | None:
    """The smallest valid set of the most relevant pixels, by bisection on its size."""
    order = np.argsort(-relevance.ravel(), kind="stable")
    low, high, best = 0, order.size, None
    for _ in range(2 * steps):
        if high - low <= order.size // 2000:
            break
        middle = (low + high) // 2
        mask = np.zeros(order.size, bool)
        mask[order[:middle]] = True
        if ask(mask.reshape(1, *relevance.shape))[0] < 0:
            high, best = middle, mask.reshape(relevance.shape)
        else:
            low = middle
    return best


def occlusion(ask: Ask, shape: tuple[int, int]) -> Masks | None:
    """Cover a window of 1/7 of the side at each of 14 x 14 places; then insert the pixels that mattered most."""
    step = shape[0] / SIDE
    masks = []
    for r in range(SIDE):
        for c in range(SIDE):
            mask = np.ones(shape, bool)
            top, left = int((r - 0.5) * step), int((c - 0.5) * step)
            mask[max(0, top) : top + int(2 * step), max(0, left) : left + int(2 * step)] = False
            masks.append(mask)
    harm = ask(np.stack(masks)).reshape(SIDE, SIDE)
    return inserted(ask, ndimage.zoom(harm, shape[0] / SIDE, order=1, grid_mode=True, mode="nearest"))


def rise(ask: Ask, shape: tuple[int, int], count: int, seed: int = 0) -> Masks | None:
    """RISE: the mean of random coarse masks weighted by the margin; then insert the most relevant pixels.

    Its masks are smooth; here they are cut at one half, so that presence is whole as for everyone else.
    """
    rng = np.random.default_rng(seed)
    cells = 7
    total, weight = np.zeros(shape), np.zeros(shape)
    scale = -(-shape[0] // cells)
    for start in range(0, count, 32):
        masks = []
        for _ in range(min(32, count - start)):
            coarse = (rng.random((cells + 1, cells + 1)) < 0.5).astype(float)
            large = ndimage.zoom(coarse, scale, order=1)
            top, left = rng.integers(0, scale, 2)
            masks.append(large[top : top + shape[0], left : left + shape[1]] > 0.5)
        stack = np.stack(masks)
        goodness = -ask(stack)
        total += np.tensordot(goodness, stack, axes=1)
        weight += stack.sum(axis=0)
    mean = total / np.maximum(weight, 1)
    return inserted(ask, mean)
