"""The noise of f, and the radius nu of its finite differences.

A forward difference over nu has bias O(nu) and noise O(sd / nu); a central difference has bias O(nu^2). The standard
deviation sd of the noise is estimated from a ladder: values at evenly spaced points so close that f hardly changes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zomirror.numerics.arrays import Values, dot
from zomirror.numerics.elementary import root

EXACT = 1e-5
"""nu / scale for a function that the user declares exact."""
UNKNOWN = 1e-3
"""nu / scale where f is constant around the start, so that neither slope nor noise is known."""
SHORTEST, REACH = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-8}, 0.1
"""The bounds of nu / scale: x + nu must differ from x."""
PROBE = 1e-2
"""nu / scale of the first batch, before the noise is known."""
STEP = 1e-6
"""The spacing of a ladder, in units of the scale."""
FRESH, OUTLYING = 0.3, 10.0
"""The weight of the newest estimate of the variance in the running mean, and its cap in units of that mean."""
SURE, GROWTH = 3.0, 1.25
"""nu is too large where the mean square gap between differences over nu and nu/2 exceeds 3 times its expectation from
noise alone; otherwise nu grows by 1.25."""
NOISY, DROWNED = 1e-5, 1e-3
"""Above these ratios of sd to the change of f over the scale of x, differences are central, and groups are more."""


class Choice(NamedTuple):
    """The kind of finite differences."""

    radius: float
    central: bool = False
    """Central differences instead of forward ones."""
    drowned: bool = False
    """More groups, for strong noise."""


def choice(sd: float, slope: float, scale: float, dtype: np.dtype[Any]) -> Choice:
    """Choose by the ratio of the noise to the change of f over the scale of x."""
    if sd == 0 or slope == 0:
        return Choice(UNKNOWN * scale)
    ratio = sd / (scale * slope)
    if ratio > NOISY:
        return Choice(scale * min(REACH, root(ratio, 3)), central=True, drowned=ratio > DROWNED)
    return Choice(scale * min(max(math.sqrt(ratio), SHORTEST[dtype]), PROBE))


def balanced(radius: float, sd: float, gap: Values, scale: float, dtype: np.dtype[Any]) -> float:
    """A better nu for central differences, from the `gap` between those over nu and over nu/2.

    The bias is proportional to nu^2, so the gap is 3/4 of the bias at nu plus noise of variance 5 v, where
    v = sd^2 / (2 nu^2) is the variance of a difference over nu. bias^2 + v is minimal when nu^6 is multiplied by
    v / (2 bias^2).
    """
    v, seen = sd * sd / (2 * radius * radius), float(np.mean(np.square(gap)))
    factor = GROWTH
    if seen > SURE * 5 * v:
        factor = max(root(v / (2 * 16 / 9 * (seen - 5 * v)), 6), 0.25)
    return scale * min(max(radius * factor / scale, SHORTEST[dtype]), REACH)


def shown(ladder: Values) -> float:
    """The standard deviation of the noise in a ladder: its third differences have variance 20 sd^2."""
    return float(np.sqrt(np.mean(np.diff(ladder, 3) ** 2) / 20))


def scatter(ladder: Values) -> float:
    """The variance of a ladder around its regression line."""
    at: Values = np.arange(ladder.size, dtype=np.float64) - (ladder.size - 1) / 2
    apart: Values = ladder - ladder.mean()
    apart = apart - at * (dot(at, apart) / dot(at, at))
    return dot(apart, apart) / (ladder.size - 2)


def looked_again(sd: float, ladder: Values) -> float:
    """sd, updated by one more ladder.

    Points that the function refuses have the value f(x): a ladder with such a value is ignored.
    """
    if np.count_nonzero(ladder != ladder[0]) < ladder.size - 1:
        return sd
    with np.errstate(over="ignore", invalid="ignore"):
        seen, known = scatter(ladder), sd * sd
    most = OUTLYING * known  # a single outlier must not dominate
    return math.sqrt(known + FRESH * ((seen if seen < most else most) - known))
