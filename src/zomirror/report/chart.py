"""Positions of lines, bars and ticks in the charts of the page; the template draws them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast import Explanation

Scores = NDArray[np.float64]

WIDTH, HEIGHT = 400.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 8.0, 10.0, 38.0
LARGEST = 1e50
"""Larger values are not drawn: they would flatten all others."""
MOST_POINTS = 400
"""Points of one curve: a screen shows no more."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A position on an axis and its label."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One search: its path, and for each point [x, y, queries, F, non-zero features]."""

    kind: str
    path: str
    points: list[list[float]]
    end: tuple[float, float]
    """The position of the explanation that was returned."""


@dataclass(frozen=True, slots=True)
class Convergence:
    """F against queries, for the searches of one input."""

    lines: list[Trace]
    across: list[Tick]
    up: list[Tick]
    logarithmic: bool


def convergence(explanations: Sequence[Explanation]) -> Convergence | None:
    """The objective of every measured iterate against the queries used; None when nothing was measured."""
    measured = [one for one in explanations if _drawable(one.history.fun).any() and _drawable(one.objective)]
    if not measured:
        return None
    values = np.concatenate([one.history.fun[_drawable(one.history.fun)] for one in measured])
    values = np.append(values, [one.objective for one in measured])
    low, high = float(values.min()), float(values.max())
    logarithmic = low > 1 / LARGEST and high / low > 30
    up = _log_ticks(low, high) if logarithmic else _ticks(low, high)
    low, high = min(low, up[0]), max(high, up[-1])
    most = float(max(1, *(max(one.nfev, int(one.history.nfev.max())) for one in measured)))

    def x_of(queries: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * max(queries, 0.0) / most, 1)

    def y_of(value: float) -> float:
        a, b, v = (math.log(low), math.log(high), math.log(value)) if logarithmic else (low, high, value)
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - (v - a) / ((b - a) or 1.0)), 1)

    lines = []
    for one in measured:
        history = one.history
        kept = np.flatnonzero(_drawable(history.fun))
        kept = kept[np.unique(np.linspace(0, kept.size - 1, MOST_POINTS).astype(int))]
        points = [
            [x_of(nfev), y_of(fun), float(nfev), float(f"{fun:.4g}"), float(nnz)]
            for nfev, fun, nnz in zip(
                *(v[kept].tolist() for v in (history.nfev, history.fun, history.nnz)), strict=True
            )
        ]
        path = "M" + "L".join(f"{x:g},{y:g}" for x, y, *_ in points)
        lines.append(Trace(one.kind, path, points, (x_of(one.nfev), y_of(one.objective))))
    across = [Tick(x_of(v), f"{v:,.0f}") for v in _ticks(0.0, most) if v <= most]
    return Convergence(lines, across, [Tick(y_of(v), f"{v:g}") for v in up], logarithmic)


def _drawable(values: Scores | float) -> NDArray[np.bool_]:
    """Which values a chart can show."""
    return np.abs(values) < LARGEST


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers, the first at most `low` and the last at least `high`."""
    span = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, max(last, first + 1) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, the first at most `low` and the last at least `high`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    step = max(1, (last - first) // 5)
    return [10.0**i for i in range(first, last + step, step)]


@dataclass(frozen=True, slots=True)
class Bar:
    """A score, and where its bar starts and how long it is, in % of the width of its cell."""

    text: str
    start: float
    length: float
    largest: bool
    hue: str
    """The CSS class: `before`, PP or PN."""


def bars(scores: Sequence[tuple[str, Scores]], classes: Sequence[int]) -> list[list[Bar]]:
    """For every class a row with one bar per column (name, scores), all on one scale."""
    finite = [float(v) for _, column in scores for v in column if np.isfinite(v)]
    low, high = min([*finite, 0.0]), max([*finite, 0.0])
    span = (high - low) or 1.0
    # Four significant digits of the largest score: 12.45 for logits, 0.997 for probabilities.
    decimals = min(max(3 - math.floor(math.log10(max(high, -low) or 1.0)), 0), 9)
    return [[_bar(hue, column, i, low, span, decimals) for hue, column in scores] for i in classes]


def _bar(hue: str, column: Scores, i: int, low: float, span: float, decimals: int) -> Bar:
    value = float(column[i]) if i < column.size else math.nan
    if not math.isfinite(value):
        return Bar("unknown" if math.isnan(value) else str(value), 0.0, 0.0, largest=False, hue=hue)
    start, length = 100 * (min(value, 0.0) - low) / span, 100 * abs(value) / span
    return Bar(f"{value:.{decimals}f}", round(start, 2), round(length, 2), largest=value == np.nanmax(column), hue=hue)
