"""Propose rows: those with the largest chance to be valid times the price that they would save.

Candidates are single columns, pairs, one more change of the rows that lead, mixtures of x0 and the nearest reference
rows, and, while nothing is valid, reference rows. The sum of one-column effects screens them; the model of
column_model.py judges the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from zomirror.contrast.search.table_search.column_model import ColumnModel, Places
from zomirror.contrast.search.table_search.column_rows import Rows
from zomirror.contrast.search.table_search.column_values import Axis, fine

Vector = NDArray[np.float64]

ROUND = 24
"""Rows of one proposal."""
SCREENED = 1_500
"""Candidates that the model judges."""
ALIKE = 4
"""Rows of one proposal that change the same columns, at most."""
LEADERS = 5
"""Rows of which single changes are candidates."""
KNOWN = 600
"""Rows that the model is fitted to, at most: singles and those with the least margins."""
COLUMN = 1.0
"""What F charges for each changed column of a PN: as much as its whole range.

At 0.1 a second column was changed for a few per cent of a range: 1.28 and 1.16 columns on 25 rows of mortgage (logistic
regression, MLP), where NICE changes 1.08 and 1.12. At 1.0 it is 1.06 and 1.04 on all its rows, and the distance stays
below half of NICE's.
"""
DIGITS = 9
"""Gains are compared to 9 decimals, because the last bits of a matrix product depend on the number of threads."""


def propose(rows: Rows, donors: Vector, answers: int) -> tuple[list[Vector], float]:
    """The most promising rows, and the largest expected saving among them."""
    model = _model(rows)
    bar = float(rows.link(np.array([-rows.bar]))[0])
    w, guess = _candidates(rows, donors, model, answers)
    if not len(w):
        return [], 0.0
    prices, masks = rows.price(w), rows.changed(w)
    leaders = rows.answers(answers)
    top = float(rows.prices[leaders].max()) if len(leaders) == answers else 1.05 * float(prices.max())
    rough = np.round(ndtr((bar - guess) / (model.spread / 2)) * np.maximum(top - prices, 0.0), DIGITS)
    kept: list[int] = []
    seen: set[bytes] = set()
    for i in np.argsort(-rough, kind="stable").tolist():
        if not rough[i] > 0 or len(kept) == SCREENED:
            break
        if not rows.knows(w[i]) and (key := w[i].tobytes()) not in seen:
            seen.add(key)
            kept.append(i)
    if not kept:
        return [], 0.0
    w, prices, masks = w[kept], prices[kept], masks[kept]
    spare = np.maximum(top - prices, 0.0)
    for i in leaders:  # better than an answer with the same columns, and than one that needs only some of them
        within = (rows.masks[i] <= masks).all(axis=1) if answers == 1 else ~rows.apart(i, w, masks)
        spare[within] = np.maximum(np.minimum(spare[within], rows.prices[i] - prices[within]), 0.0)
    mean, deviation = model(Places.of(rows.axes, w))
    gain = np.round(ndtr((bar - mean) / deviation) * spare, DIGITS)
    chosen: list[Vector] = []
    alike: dict[bytes, int] = {}
    for i in np.argsort(-gain, kind="stable").tolist():
        changed = masks[i].tobytes()
        if gain[i] > 0 and alike.get(changed, 0) < ALIKE:
            alike[changed] = alike.get(changed, 0) + 1
            chosen.append(w[i])
            if len(chosen) == ROUND:
                break
    return chosen, float(gain.max())


def _model(rows: Rows) -> ColumnModel:
    known = np.flatnonzero(np.isfinite(rows.margin))
    if known.size > KNOWN:
        order = np.lexsort((rows.margin[known], rows.masks[known].sum(axis=1) > 1))
        known = np.sort(known[order[:KNOWN]])
    values = rows.link(rows.margin)
    return ColumnModel(Places.of(rows.axes, rows.w[known]), values[known], float(values[0]))


def _candidates(rows: Rows, donors: Vector, model: ColumnModel, answers: int) -> tuple[Vector, Vector]:
    """Rows that may be valid, and a guess of their margins on the scale of the model."""
    axes, base = rows.axes, model.base
    last = rows.answers(answers)
    limit = max(rows.reach(i, COLUMN) for i in last) if len(last) == answers and not rows.fewest else np.inf
    levels = [fine(axis, limit) for axis in axes]
    owner = np.repeat(np.arange(len(axes)), [one.size for one in levels])
    codes = np.concatenate([axis.codes[one] for axis, one in zip(axes, levels, strict=True)])
    column = np.array([axis.j for axis in axes])[owner]
    alone = _each(rows.own, column, codes)
    singly = Places.of(axes, alone)
    effect = model.mean(singly) - base
    pairs, sums = _pairs(rows, alone, owner, column, codes, effect, model)
    leaders = rows.leaders(LEADERS)
    others = [_mixtures(rows, row, axes, model) for row in donors[:LEADERS]]
    top = float(rows.prices[leaders[0]]) if leaders else np.inf
    ahead = rows.w[[*leaders, *rows.nearest(LEADERS, top)]]
    for w, mask in zip(ahead, rows.changed(ahead), strict=True):
        back = np.flatnonzero(mask)
        others += [_each(w, back, rows.own[back]), _towards(rows, w)]
    swaps = [_each(w, column, codes) for w in ahead]
    swapped = model.mean_of_swaps(Places.of(axes, ahead), singly, owner).ravel() if swaps else np.empty(0)
    near = np.concatenate(others if leaders else [*others, donors])
    guesses = (base + effect, sums, swapped, model.mean(Places.of(axes, near)))
    return np.concatenate((alone, pairs, *swaps, near)), np.concatenate(guesses)


def _each(w: Vector, column: NDArray[np.intp], codes: Vector) -> Vector:
    """Copies of w, each with another code in one column."""
    copies = np.repeat(w[None], codes.size, axis=0)
    copies[np.arange(codes.size), column] = codes
    return copies


def _towards(rows: Rows, w: Vector) -> Vector:
    """Copies of w with one of its changed numbers nearer to x0."""
    changed, made = rows.changed(w), [np.empty((0, w.size))]
    for axis in rows.axes:
        if changed[axis.j] and not axis.column.nominal and not np.isnan(w[axis.j] - axis.own):
            codes = axis.between(w[axis.j])
            codes = codes[np.unique(np.linspace(0, codes.size - 1, 24).astype(np.intp))] if codes.size > 24 else codes
            made.append(_each(w, np.full(codes.size, axis.j), codes))
    return np.concatenate(made)


def _pairs(
    rows: Rows,
    alone: Vector,
    owner: NDArray[np.intp],
    column: NDArray[np.intp],
    codes: Vector,
    effect: Vector,
    model: ColumnModel,
) -> tuple[Vector, Vector]:
    """The most promising pairs of single changes by the sum of their effects and prices."""
    prices = rows.price(alone) - rows.prices[0]
    leaders = rows.leaders(1)
    room = float(rows.prices[leaders[0]] - rows.prices[0]) if leaders else 2.1 * float(prices.max())
    a, b = np.triu_indices(codes.size, 1)
    fit = (owner[a] != owner[b]) & (np.minimum(effect[a], effect[b]) < 0) & (prices[a] + prices[b] < room)
    a, b = a[fit], b[fit]
    total = model.base + effect[a] + effect[b]
    if a.size > SCREENED:
        worth = np.round(ndtr(-total / (model.spread / 2)) * (room - prices[a] - prices[b]), DIGITS)
        kept = np.flatnonzero(worth >= np.partition(worth, -SCREENED)[-SCREENED])[: 2 * SCREENED]  # with ties
        a, b, total = a[kept], b[kept], total[kept]
    pairs = alone[a]
    pairs[np.arange(a.size), column[b]] = codes[b]
    return pairs, total


def _mixtures(rows: Rows, row: Vector, axes: list[Axis], model: ColumnModel) -> Vector:
    """x0 with some columns of `row`: the one with the best effect, the best two, and so on."""
    changed = np.flatnonzero(rows.changed(row[None])[0])
    effects = model.mean(Places.of(axes, _each(rows.own, changed, row[changed])))
    made, w = [np.empty((0, row.size))], rows.own.copy()
    for j in changed[np.argsort(np.round(effects, DIGITS), kind="stable")].tolist():
        w[j] = row[j]
        made.append(w[None].copy())
    return np.concatenate(made)
