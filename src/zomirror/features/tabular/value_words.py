"""Values of columns as a person reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

GROUPED = 10_000
"""Numbers from here on have commas; years have none."""
PLAIN = 6
"""Floats with at most 6 decimals are shown as they are, others are rounded to 4 significant digits."""


def shown(value: Any, digits: int = 4) -> str:
    """`28,800`, `0.35`, `rent`, `missing`."""
    if value is None:
        return "missing"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return str(value)
    number = float(value)
    comma = "," if abs(number) >= GROUPED else ""
    if isinstance(value, int | np.integer):
        return format(int(value), comma)
    if np.isnan(number):
        return "missing"
    if np.isfinite(number) and abs(number) < 1e15 and round(number, PLAIN) == number:
        return format(int(number) if number == int(number) else number, comma)
    return format(number, f"{comma}.{digits}g")


def shown_both(before: object, after: object) -> tuple[str, str]:
    """Two values, with as many digits as are needed to tell them apart."""
    for digits in (4, 8, 17):
        words = shown(before, digits), shown(after, digits)
        if words[0] != words[1]:
            break
    return words
