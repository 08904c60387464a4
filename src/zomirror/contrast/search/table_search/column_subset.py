"""The fewest columns of a row that keep its class while all others are at the baseline.

1. Ask each column alone at the value of x0, the others at the baseline.
2. Model the margin as a sum of the columns' effects plus interactions (column_model.py), and ask the sets of columns
   with the largest chance to keep the class times the number of columns saved, 6 at a time. Repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from zomirror.contrast.search.table_search.column_model import ColumnModel, Places

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUND = 6
"""Sets of one batch."""
BEAM = 200
"""Sets of each size that are extended by one more column, where there are too many sets to try all."""
ALL = 20_000
"""Up to this many sets of one size are all considered."""
CHANCE = 0.02
"""The search ends when no smaller set keeps the class with a chance of 2 %..."""
MOST = 2
"""...or after 2 rows for each column, and a batch."""


def fewest_columns(
    whole: float,
    nothing: float,
    count: int,
    bar: float,
    link: Callable[[Vector], Vector],
    allowed: int,
    answers: int = 1,
) -> Generator[list[Mask], Vector, list[tuple[Mask, float]]]:
    """Yields sets of columns, is sent their margins, returns the best sets, none of which contains another.

    `whole` and `nothing` are the margins of x0 and of the baseline.
    """
    sets, margins = [np.zeros(count, bool), np.ones(count, bool)], [nothing, whole]
    last = min(allowed, MOST * count + ROUND * answers) + len(sets)
    batch = list(np.eye(count, dtype=bool))
    while batch and len(sets) < last:
        batch = batch[: last - len(sets)]
        margins += [float(margin) for margin in (yield batch)]
        sets += batch
        best = _best(sets, margins, bar, answers)
        least = int(best[-1][0].sum()) if len(best) == answers else count
        batch = _promising(np.stack(sets), np.array(margins), least, bar, link)
    return _best(sets, margins, bar, answers)


def _best(sets: list[Mask], margins: list[float], bar: float, answers: int) -> list[tuple[Mask, float]]:
    """Up to `answers` sets that keep the class, the smallest first, then that with the least margin."""
    kept: list[tuple[Mask, float]] = []
    for one, margin in sorted(zip(sets, margins, strict=True), key=lambda pair: (int(pair[0].sum()), pair[1])):
        if (one.all() or margin < -bar) and not any((other <= one).all() for other, _ in kept):
            kept.append((one, margin))
    return kept[:answers]


def _promising(sets: Mask, margins: Vector, least: int, bar: float, link: Callable[[Vector], Vector]) -> list[Mask]:
    """The sets of fewer than `least` columns that are worth asking."""
    known = np.isfinite(margins)
    values = link(margins)
    model = ColumnModel(_places(sets[known]), values[known], float(values[0]))
    aim = float(link(np.array([-bar]))[0])
    seen = {one.tobytes() for one in sets}
    kept, gains = [], []
    beam: Mask | None = None
    for size in range(1, least):
        tried = _sets(sets.shape[1], size, beam)
        mean, deviation = model(_places(tried))
        chance = ndtr((aim - mean) / deviation)
        beam = tried[np.argsort(np.round(mean, 9), kind="stable")[:BEAM]]
        for i in np.argsort(-np.round(chance, 9), kind="stable")[: 4 * ROUND].tolist():
            if chance[i] >= CHANCE and tried[i].tobytes() not in seen:
                kept.append(tried[i])
                gains.append(chance[i] * (least - size))
    order = np.argsort(-np.round(np.array(gains), 9), kind="stable")[:ROUND]
    return [kept[i] for i in order.tolist()]


def _sets(count: int, size: int, beam: Mask | None) -> Mask:
    """All sets of this size, or those of one column less in the beam with one more column."""
    number = 1
    for i in range(size):
        number = number * (count - i) // (i + 1)
    if number <= ALL or beam is None:
        chosen = np.array(list(combinations(range(count), size)), np.intp)
        sets = np.zeros((len(chosen), count), bool)
        sets[np.arange(len(chosen))[:, None], chosen] = True
        return sets
    more = (beam[:, None, :] | np.eye(count, dtype=bool)[None]).reshape(-1, count)
    return np.unique(more[more.sum(axis=1) == size], axis=0)


def _places(sets: Mask) -> Places:
    return Places(sets.astype(np.int64), sets.astype(np.float64))
