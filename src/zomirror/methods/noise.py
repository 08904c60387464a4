"""How noisy f is, and how far apart its values must be asked for their differences to say something.

A one-sided difference over nu has a bias of the order of nu and noise of the order of sd / nu; a two-sided one, a bias
of the order of nu^2. The noise is seen in values that are asked so close to one another that f itself hardly changes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zomirror.numerics.arrays import Values, dot
from zomirror.numerics.elementary import root

EXACT = 1e-5
"""nu / scale for a function that is said to have no noise."""
UNKNOWN = 1e-3
"""nu / scale where f is flat around the start, which shows neither its slope nor its noise."""
SHORTEST, REACH = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-8}, 0.1
"""Between which nu / scale stays: x + nu must still be another number than x."""
PROBE = 1e-2
"""nu / scale of the first batch, before the noise is known."""
STEP = 1e-6
"""The spacing of a ladder of close values, in units of the scale."""
FRESH, OUTLYING = 0.3, 10.0
"""The weight of the newest look at the noise of f among all, and how many times the known variance it may show."""
SURE, GROWTH = 3.0, 1.25
"""nu is too large where differences over nu and nu/2 are apart by so many times what noise does to their squares;
elsewhere it grows by this factor."""
NOISY, DROWNED = 1e-5, 1e-3
"""Noise beyond these parts of what f changes over the scale of x wants two-sided differences, and more groups."""


class Choice(NamedTuple):
    """How differences are to be taken."""

    radius: float
    central: bool = False
    """On both sides."""
    drowned: bool = False
    """Over more groups."""


def choice(sd: float, slope: float, scale: float, dtype: np.dtype[Any]) -> Choice:
    """From the noise against what f changes over the scale of x."""
    if sd == 0 or slope == 0:
        return Choice(UNKNOWN * scale)
    ratio = sd / (scale * slope)
    if ratio > NOISY:
        return Choice(scale * min(REACH, root(ratio, 3)), central=True, drowned=ratio > DROWNED)
    return Choice(scale * min(max(math.sqrt(ratio), SHORTEST[dtype]), PROBE))


def balanced(radius: float, sd: float, gap: Values, scale: float, dtype: np.dtype[Any]) -> float:
    """A better nu for two-sided differences, from the `gap` between those over nu and over nu/2.

    Their bias grows with nu^2, so the gap is 3/4 of the bias at nu and noise of variance 5 v, where v = sd^2 / (2 nu^2)
    is that of a difference over nu. Bias^2 + v is least where nu^6 changes by v / (2 bias^2).
    """
    v, seen = sd * sd / (2 * radius * radius), float(np.mean(np.square(gap)))
    factor = GROWTH
    if seen > SURE * 5 * v:
        factor = max(root(v / (2 * 16 / 9 * (seen - 5 * v)), 6), 0.25)
    return scale * min(max(radius * factor / scale, SHORTEST[dtype]), REACH)


def shown(ladder: Values) -> float:
    """The standard deviation of the noise in evenly spaced values: the variance of third differences is 20 sd^2."""
    return float(np.sqrt(np.mean(np.diff(ladder, 3) ** 2) / 20))


def scatter(ladder: Values) -> float:
    """The variance of evenly spaced values around the line through them."""
    at: Values = np.arange(ladder.size, dtype=np.float64) - (ladder.size - 1) / 2
    apart: Values = ladder - ladder.mean()
    apart = apart - at * (dot(at, apart) / dot(at, at))
    return dot(apart, apart) / (ladder.size - 2)


def looked_again(sd: float, ladder: Values) -> float:
    """The standard deviation of the noise after one more look; refused points are read as f(x) and say nothing."""
    if np.count_nonzero(ladder != ladder[0]) < ladder.size - 1:
        return sd
    with np.errstate(over="ignore", invalid="ignore"):
        seen, known = scatter(ladder), sd * sd
    most = OUTLYING * known  # one value that is far off must not be believed for ever
    return math.sqrt(known + FRESH * ((seen if seen < most else most) - known))
