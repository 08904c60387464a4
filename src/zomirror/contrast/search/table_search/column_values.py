"""The values that a search tries in each column of a table, and where they lie for its model of the margin.

The levels of a number are legal codes on both sides of x0's, denser near it: the relative distance of neighbours is
under 1 %. Where the splits of a tree model are known, there is one level behind each split, because scores are
constant between splits. A category has one level for each other category.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zomirror.features.tabular.column import Column
from zomirror.numerics.arrays import Array

Vector = NDArray[np.float64]

LEVELS = 1024
"""The most levels on each side of a number."""
NEAREST = 1e-5
"""The first level of a number without a grid is this part of its range away from x0."""
INSIDE = 1e-4
"""A split is crossed by this part of the range, or by half of the way to the next split if that is less; where a
column has a step, by one step at most."""
FINE = 14
"""Levels on each side of a number that pairs are made of."""
CATEGORY, MISSING = 10, 9
"""Offset that makes the side of a category differ from those of numbers; the side of a missing value."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One column that may change: its levels, their sizes and their places."""

    j: int
    column: Column
    own: float
    codes: Vector
    """The levels, without x0's own code: below it, above it, missing; each side nearest first."""
    sizes: Vector
    """The size of the change to each level."""
    side: NDArray[np.int64]
    """-1 below, 1 above; categories and missing have sides of their own."""
    tau: Vector
    """The distance along the side, 0 at x0 and 1 at its far end: half by size, half by reference rows in between."""
    curve: tuple[Vector, Vector] = field(init=False)
    """The levels of a number in order, x0's among them, and tau, negative below x0's."""

    def __post_init__(self) -> None:
        there = np.abs(self.side) == 1
        codes, signed = self.codes[there], (self.side * self.tau)[there]
        if not np.isnan(self.own):
            codes, signed = np.append(codes, self.own), np.append(signed, 0.0)
        order = np.argsort(codes, kind="stable")
        object.__setattr__(self, "curve", (codes[order], signed[order]))

    def between(self, code: float) -> Vector:
        """The levels of a number between x0's and this one, nearest to x0 first."""
        mine = self.codes[self.side == (1 if code > self.own else -1)]
        nearer: Vector = mine[np.abs(mine - self.own) < abs(code - self.own)]
        return nearer

    def places(self, codes: Vector) -> tuple[NDArray[np.int64], Vector]:
        """Side and tau of any codes; side 0 is x0's own code."""
        absent = np.isnan(codes)
        if self.column.nominal:
            side, tau = np.where(absent, 0, codes).astype(np.int64) + CATEGORY, np.ones(codes.shape)
        else:
            signed = np.interp(np.where(absent, 0.0, codes), *self.curve)
            side, tau = np.sign(signed).astype(np.int64), np.abs(signed)
        same = (absent & np.isnan(self.own)) | (codes == self.own)
        return np.where(same, 0, np.where(absent, MISSING, side)), np.where(same, 0.0, np.where(absent, 1.0, tau))


def axis_of(j: int, column: Column, own: float, reference: Vector) -> Axis | None:
    """The axis of a column; None if it cannot change."""
    if not column.free:
        return None
    known = np.sort(reference[~np.isnan(reference)])
    missing = [np.nan] if column.missing and not np.isnan(own) else []
    if column.nominal or column.values is not None:
        values = np.asarray(column.values, np.float64)
        values = values[values != own]
    else:
        values = np.concatenate(_numbers(column, own))
    if column.nominal:
        codes = np.append(values, missing)
        side = np.where(np.isnan(codes), MISSING, np.nan_to_num(codes).astype(np.int64) + CATEGORY)
        tau = np.ones(codes.size)
    elif np.isnan(own):
        codes, side = np.sort(values), np.ones(values.size, np.int64)
        tau = 0.5 + 0.5 * np.searchsorted(known, codes) / max(1, known.size)
    else:
        below, above = np.sort(values[values < own])[::-1], np.sort(values[values > own])
        codes = np.concatenate((below, above, missing))
        side = np.repeat([-1, 1, MISSING], [below.size, above.size, len(missing)])
        tau = np.concatenate((_tau(below, own, known), _tau(above, own, known), np.ones(len(missing))))
    if codes.size == 0:
        return None
    return Axis(j, column, own, codes, column.parts(codes, own), side.astype(np.int64), tau)


def _numbers(column: Column, own: float) -> tuple[Vector, Vector]:
    """Legal codes below and above x0's."""
    start = (column.low + column.high) / 2 if np.isnan(own) else own
    sides = []
    for sign, end in ((-1.0, column.low), (1.0, column.high)):
        room = sign * (end - start)
        if not room > 0:
            sides.append(np.empty(0))
            continue
        room = min(room, 4.0 * column.unit) if np.isfinite(room) else 4.0 * column.unit
        codes = _behind_splits(column, start, sign, room)
        if codes is None:
            codes = start + sign * np.geomspace(min(max(NEAREST * column.unit, column.step), room), room, LEVELS)
        codes = np.unique(column.legal(codes, start))
        codes = codes[sign * (codes - start) > 0]
        if codes.size > LEVELS:
            ranks = np.unique(np.geomspace(1, codes.size, LEVELS).astype(int)) - 1
            codes = codes[ranks] if sign > 0 else codes[::-1][ranks]
        sides.append(codes)
    return sides[0], sides[1]


def _behind_splits(column: Column, own: float, sign: float, room: float) -> Vector | None:
    """One code behind each split on this side; None where splits are not known."""
    if column.thresholds is None:
        return None
    splits = np.sort(sign * (np.asarray(column.thresholds, np.float64) - own))
    splits = splits[(splits >= 0) & (splits < room)]
    if column.step:  # the next legal code behind the split; the nearest one may lie before it
        near = column.legal(own + sign * splits, own)
        return np.where(sign * (near - own) <= splits, column.legal(near + sign * column.step, own), near)
    codes: Vector = own + sign * (splits + np.minimum(INSIDE * column.unit, np.diff(np.append(splits, room)) / 2))
    return codes


def _tau(codes: Vector, own: float, known: Vector) -> Vector:
    if codes.size == 0:
        return np.empty(0)
    size = np.abs(codes - own)
    passed = np.abs(np.searchsorted(known, codes, "right") - np.searchsorted(known, own, "right"))
    tau: Vector = 0.5 * size / size.max() + 0.5 * passed / max(1, passed.max())
    return tau


def spread(axis: Axis, count: int) -> NDArray[np.intp]:
    """`count` levels on each side of a number at decreasing distance: the far end, a third of it, and so on."""
    return _near(axis, 3.0 ** -np.arange(count), np.ones(axis.codes.size, bool))


def fine(axis: Axis, limit: float = np.inf) -> NDArray[np.intp]:
    """The levels that pairs are made of: all of a category, some of a number, denser near x0, none above the limit."""
    within = axis.sizes <= limit
    if axis.column.nominal or np.count_nonzero(within) <= 2 * FINE:
        return np.flatnonzero(within)
    wanted = np.append(np.geomspace(0.01, 1.0, FINE // 2), np.linspace(0.1, 0.9, FINE - FINE // 2))
    return _near(axis, wanted, within)


def _near(axis: Axis, wanted: Array, within: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The levels of each side nearest to the wanted parts of its largest tau, among those that are `within`."""
    sides = [np.flatnonzero(within & (axis.side == side)) for side in np.unique(axis.side[within])]
    places = [(one, axis.tau[one][:, None] / axis.tau[one].max()) for one in sides]
    return np.concatenate([one[np.unique(np.abs(tau - wanted).argmin(axis=0))] for one, tau in places])


def axes_of(columns: tuple[Column, ...], own: Vector, reference: Vector) -> list[Axis]:
    """The axes of all columns that can change."""
    made = (axis_of(j, column, float(own[j]), reference[:, j]) for j, column in enumerate(columns))
    return [axis for axis in made if axis is not None]
