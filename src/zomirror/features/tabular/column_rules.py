"""What the reference rows and the user say of one column: its grid, its bounds, its typical value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import number
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.tabular.column import Column, snapped

DECIMALS = 6
"""Numbers of at most 6 decimals in all reference rows have as many in an answer."""
DISTINCT = 20
"""Whole numbers with 20 different values or more that are all multiples of 10, 100 and so on stay such multiples."""
SHOWN = 8
"""Names in an error message."""


def sort_key(value: Any) -> tuple[str, Any]:
    """Sorts values of one type by themselves, and those of several by type first."""
    numeric = isinstance(value, int | float)
    return ("", value) if numeric else (type(value).__name__, value if isinstance(value, str) else repr(value))


def as_float(name: str, value: Any, where: str = "") -> float:
    """A number, which a text is not."""
    at = f" in {where}" if where else ""
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"expected {name}{at} to be a number, got {value!r}") from None


def typical(column: Column, codes: NDArray[np.float64]) -> float:
    """The commonest category, or the legal number nearest to the median."""
    there = codes[~np.isnan(codes)]
    if not there.size:
        return float("nan")
    if column.values is not None and column.kind != "ordinal":
        values, counts = np.unique(there, return_counts=True)
        return float(values[np.argmax(counts)])
    return float(np.sort(there)[(len(there) - 1) // 2])  # a median that exists


def tens(there: NDArray[np.float64]) -> float:
    """The largest power of 10 that divides all of many numbers; else 1."""
    step = 1.0
    if np.unique(there).size >= DISTINCT:
        while (snapped(there, 10 * step) == there).all():
            step *= 10
    return step


def decimals(there: NDArray[np.float64], *, single: bool) -> float:
    """The step of the decimals that all numbers have; 0 if they have more than 6."""
    if single or not there.size:
        return 0.0
    for places in range(DECIMALS + 1):
        step = 10.0**-places
        if (snapped(there, step) == there).all():
            return step
    return 0.0


def as_step(name: str, given: object) -> float:
    """The step that the user gave for a column."""
    step = number(f"step[{name!r}]", given)
    whole = step == np.rint(step) if step >= 1 else step > 0 and abs(1 / step - np.rint(1 / step)) < 1e-6 / step
    if step < 0 or (step and not whole):
        raise ArgumentError(
            f"expected step[{name!r}] to be 0, a whole number or one over a whole number, got {given!r}"
        )
    return step


def sides(name: str, given: Any, low: float, high: float) -> tuple[float, float]:
    """The bounds that the user gave for numbers; None keeps a side of the reference rows."""
    if isinstance(given, str) or not isinstance(given, Iterable) or len(pair := list(given)) != 2:
        raise ArgumentError(f"expected bounds[{name!r}] as (least, largest), got {given!r}")
    least, largest = pair
    low = low if least is None else number(f"bounds[{name!r}][0]", least)
    high = high if largest is None else number(f"bounds[{name!r}][1]", largest)
    if low > high:
        raise ArgumentError(f"expected bounds[{name!r}] with least <= largest, got {given!r}")
    return low, high


def inwards(low: float, high: float, step: float) -> tuple[float, float]:
    """The multiples of `step` next to the bounds, inside; the bounds themselves if there is none between."""
    sides = snapped(np.array([low, high]), step)
    least = sides[0] if sides[0] >= low else snapped(sides[:1] + step, step)[0]
    largest = sides[1] if sides[1] <= high else snapped(sides[1:] - step, step)[0]
    return (float(least), float(largest)) if least <= largest else (low, high)


def allowed_codes(name: str, given: Any, levels: tuple[Any, ...], *, ranked: bool) -> NDArray[np.float64]:
    """The codes of the categories that the user allows; of an order, (least, largest) means all between."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ArgumentError(f"expected bounds[{name!r}] as a list of categories, got {given!r}")
    chosen = list(given)
    if ranked and isinstance(given, tuple) and len(chosen) == 2:  # the least and the largest of an order
        chosen = [one if one is not None else levels[-i] for i, one in enumerate(chosen)]
    if unknown := [one for one in chosen if one not in levels]:
        raise ArgumentError(
            f"expected bounds[{name!r}] among {', '.join(map(repr, levels[:SHOWN]))}, got {unknown[0]!r}"
        )
    codes = sorted(float(levels.index(one)) for one in chosen)
    if ranked and isinstance(given, tuple) and len(codes) == 2:
        codes = [float(i) for i in range(int(codes[0]), int(codes[1]) + 1)]
    return np.array(codes)
