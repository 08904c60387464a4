"""The problem without f: min over a box of f(x) + l1 |x|_1 + (l2/2) |x|_2^2."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from zomirror.checks import float_dtype, items, nonnegative, reading, real_array, shown, some
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.numerics.arrays import Array, Indices, sums


@dataclass(frozen=True, slots=True)
class ElasticNet:
    """h(x) = l1 |x|_1 + (l2/2) |x|_2^2, with l1 >= 0 and l2 >= 0."""

    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "l1", nonnegative("l1", self.l1))
        object.__setattr__(self, "l2", nonnegative("l2", self.l2))

    def __call__(self, x: Array) -> float:
        """h(x), summed in float64 for every dtype of x; inf on overflow."""
        size, square = sums(np.asarray(x))
        return (self.l1 * size if self.l1 else 0.0) + (0.5 * self.l2 * square if self.l2 else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """lower <= x <= upper; each bound is a number for all coordinates, or an array with one number per coordinate.

    Arrays are copied and made read-only. A coordinate with lower == upper is constant.
    """

    lower: Array | float = -np.inf
    upper: Array | float = np.inf
    reach: float = field(init=False, repr=False)
    """The largest |x_i| in the box; inf if a bound is infinite."""
    unbounded: bool = field(init=False, repr=False)
    """Whether all bounds are infinite."""

    def __post_init__(self) -> None:
        lower, upper = _side("lower", self.lower), _side("upper", self.upper)
        if lower.ndim == 1 and upper.ndim == 1 and lower.shape != upper.shape:
            raise ArgumentError(
                f"expected lower and upper of one length, got {lower.size} and {upper.size}: "
                "give one number, or one per coordinate"
            )
        if not (lower.size and upper.size):
            raise ArgumentError("expected lower and upper with at least one coordinate, got none")
        if np.any(lower > upper):
            crossed = np.flatnonzero(np.atleast_1d(lower > upper))
            raise ArgumentError(f"expected lower <= upper, got lower > upper at {some(crossed)}")
        if np.any(lower == np.inf) or np.any(upper == -np.inf):
            raise ArgumentError("expected lower < inf and upper > -inf: no point would be inside")
        object.__setattr__(self, "reach", float(max(np.abs(lower).max(), np.abs(upper).max())))
        object.__setattr__(self, "unbounded", bool(np.isinf(lower).all() and np.isinf(upper).all()))
        object.__setattr__(self, "lower", lower if lower.ndim else float(lower))
        object.__setattr__(self, "upper", upper if upper.ndim else float(upper))

    @classmethod
    def of(cls, bounds: object, d: int) -> Box:
        """The box that `bounds` describes in dimension d.

        `bounds` is None, a Box, a scipy Bounds, two scalars, d pairs (lower, upper) with None for an infinite bound, or
        two arrays of length d. For d = 2, a 2 x 2 sequence is read as pairs, as SciPy does.
        """
        if bounds is None:
            return cls()
        with reading("bounds", bounds):
            if isinstance(bounds, Box):
                box = bounds
            elif hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy's Bounds; importing scipy.optimize is slow
                box = cls(_shrink(bounds.lb), _shrink(bounds.ub))
            else:
                box = cls(*_sides(bounds, d))
        for name, side in (("lower", box.lower), ("upper", box.upper)):
            if isinstance(side, np.ndarray) and side.size != d:
                raise ArgumentError(f"expected bounds for {d} coordinates, got {side.size} ({name})")
        return box

    def astype(self, dtype: np.dtype[Any]) -> Box:
        """The box with its bounds rounded to `dtype`."""
        with np.errstate(over="ignore"):
            return Box(np.asarray(self.lower).astype(dtype), np.asarray(self.upper).astype(dtype))

    def project(self, x: Array) -> Array:
        """The nearest point of the box."""
        if self.unbounded:
            return x
        clipped: Array = np.clip(x, self.lower, self.upper)
        return clipped.astype(x.dtype, copy=False)

    def outside(self, x: Array) -> Indices:
        """The coordinates of x outside the box; NaN counts as outside."""
        return np.flatnonzero(~((x >= self.lower) & (x <= self.upper)))

    def free(self, d: int) -> Indices | None:
        """The coordinates with lower < upper; None if that is all of them."""
        open_ = np.broadcast_to(np.less(self.lower, self.upper), (d,))
        return None if open_.all() else np.flatnonzero(open_)


def _side(name: str, value: object) -> Array:
    given = real_array(f"{name} bounds", value)
    side: Array = np.array(given, dtype=float_dtype(given.dtype), copy=True)
    if side.ndim > 1:
        raise ArgumentError(f"expected {name} to be a number or a vector, got shape {side.shape}: ravel it")
    if np.isnan(side).any():
        raise ArgumentError(f"expected {name} without NaN, got NaN at {some(np.flatnonzero(np.isnan(side)))}: use inf")
    side.flags.writeable = False
    return side


def _sides(bounds: object, d: int) -> tuple[Any, Any]:
    if not isinstance(bounds, Iterable) or getattr(bounds, "ndim", 1) == 0:
        raise ArgumentTypeError(
            f"expected bounds to be two numbers, {d} pairs, two arrays, a Box or a scipy Bounds, got {shown(bounds)}"
        )
    rows = items("bounds", bounds, None if isinstance(bounds, Sized) else max(2, d))
    if len(rows) == 2 and all(_is_single(side) for side in rows):
        return -np.inf if rows[0] is None else rows[0], np.inf if rows[1] is None else rows[1]
    if len(rows) == d and all(_is_pair(row) for row in rows):
        lower = [-np.inf if row[0] is None else row[0] for row in rows]
        upper = [np.inf if row[1] is None else row[1] for row in rows]
        return lower, upper
    if len(rows) == 2:
        return rows[0], rows[1]
    raise ArgumentError(
        f"expected bounds as two numbers, {d} pairs (lower, upper) or two arrays of length {d}, "
        f"got a sequence of {len(rows)}"
    )


def _is_single(side: object) -> bool:
    return side is None or np.isscalar(side) or (isinstance(side, np.ndarray) and side.ndim == 0)


def _is_pair(row: object) -> bool:
    return isinstance(row, tuple | list | np.ndarray) and len(row) == 2 and _is_single(row[0])


def _shrink(side: Array) -> Any:
    """A one-element array as a number: SciPy stores scalar bounds as such arrays."""
    given = real_array("bounds", side)
    return given.item() if given.size == 1 else given


@dataclass(frozen=True, eq=False)
class Problem:
    """min over `box` of f(x) + penalty(x), x in d dimensions; a `stochastic` f also takes a random draw."""

    d: int
    dtype: np.dtype[Any]
    penalty: ElasticNet
    box: Box
    stochastic: bool = False

    @cached_property
    def free(self) -> Indices | None:
        """The coordinates that can move, None for all of them."""
        return self.box.free(self.d)

    @cached_property
    def width(self) -> int:
        """The number of coordinates that can move."""
        return self.d if self.free is None else self.free.size
