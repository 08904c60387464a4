"""The rows of a table that a search has asked: their margins, their prices, and which of them lead.

The price of a row is what the objective charges for it beside the margin. Every row is legal, because its values are
levels of the axes (column_values.py), values of x0, or reference rows made legal.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.search.table_search.column_values import Axis
from zomirror.numerics.arrays import Array

Vector = NDArray[np.float64]
Asking = Generator[list[Array], Vector, None]
"""Yields rows, is sent their margins."""


HALF = 0.5
"""An answer may contain the columns of a better one if it changes one of these by at most half as much."""


@dataclass
class Rows:
    """The rows asked so far, the first of which is x0."""

    own: Vector
    """x0."""
    axes: list[Axis]
    """The columns that may change."""
    price: Callable[[Vector], Vector]
    """The price of each of several rows."""
    link: Callable[[Vector], Vector]
    """Margins on the scale on which the effects of columns add up."""
    bar: float
    """A row is valid if its margin is less than -bar."""
    margin: Vector
    """The margin of each row; at first of x0 alone."""
    fewest: bool = False
    """Whether the number of changed columns comes before the price."""
    local: bool = True
    """Whether the price grows with the sizes of the changes: nothing else is charged."""
    w: Vector = field(init=False)
    prices: Vector = field(init=False)
    masks: NDArray[np.bool_] = field(init=False)
    """The columns that each row changes."""
    _keys: set[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.w = self.own[None].copy()
        self.prices, self.masks = self.price(self.w), self.changed(self.w)
        self._keys = {self.own.tobytes()}

    def __len__(self) -> int:
        return len(self.w)

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Whether each row does what is wanted."""
        return np.asarray(self.margin < -self.bar, np.bool_)

    def changed(self, w: Vector) -> NDArray[np.bool_]:
        """Which columns of w differ from x0."""
        changed: NDArray[np.bool_] = ~((w == self.own) | (np.isnan(w) & np.isnan(self.own)))
        return changed

    def knows(self, row: Vector) -> bool:
        """Whether the row was asked."""
        return row.tobytes() in self._keys

    def ask(self, rows: list[Vector]) -> Asking:
        """Ask those rows that were not asked before."""
        fresh: list[Array] = []
        for row in rows:
            if not self.knows(row):
                self._keys.add(row.tobytes())
                fresh.append(row)
        if not fresh:
            return
        margins = yield fresh
        w = np.stack(fresh).astype(np.float64)
        self.w, self.margin = np.concatenate((self.w, w)), np.concatenate((self.margin, margins))
        self.prices = np.concatenate((self.prices, self.price(w)))
        self.masks = np.concatenate((self.masks, self.changed(w)))

    def leaders(self, count: int) -> list[int]:
        """Up to `count` valid rows that differ in the columns they change, best first.

        A row is left out if some of its columns suffice for a better one.
        """
        kept: list[int] = []
        for i in self._ranked():
            if not any((self.masks[other] <= self.masks[i]).all() for other in kept):
                kept.append(i)
                if len(kept) == count:
                    break
        return kept

    def answers(self, count: int) -> list[int]:
        """The leaders; where there are fewer, also rows with more columns that change one of theirs half as much."""
        kept = self.leaders(count)
        if len(kept) == count:
            return kept
        ranked = self._ranked()
        for i in ranked:
            if len(kept) < count and all(self.apart(other, self.w[i][None], self.masks[i][None])[0] for other in kept):
                kept.append(i)
        return [i for i in ranked if i in kept]

    def apart(self, row: int, w: Vector, masks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each w lacks a column of `row`, or has more columns and changes one of its by at most half."""
        within = (self.masks[row] <= masks).all(axis=1)
        less = np.zeros(len(w), np.bool_)
        for axis in self.axes:
            if self.masks[row, axis.j]:
                most = HALF * axis.column.parts(self.w[row, axis.j], axis.own)
                less |= axis.column.parts(w[:, axis.j], axis.own) <= most
        different: NDArray[np.bool_] = ~within | (less & (self.masks[row] < masks).any(axis=1))
        return different

    def _ranked(self) -> list[int]:
        """The valid rows, best first."""
        valid = np.flatnonzero(self.valid)
        keys = (self.prices[valid], self.masks[valid].sum(axis=1)) if self.fewest else (self.prices[valid],)
        ranked: list[int] = valid[np.lexsort(keys)].tolist()
        return ranked

    def reach(self, row: int, charge: float) -> float:
        """A column of a cheaper row than this one changes by no more than this size."""
        sizes = [axis.column.parts(self.w[row, axis.j], axis.own) for axis in self.axes]
        return float(np.sum(sizes)) + charge * int(self.masks[row].sum()) if self.local else np.inf

    def nearest(self, count: int, price: float = np.inf) -> list[int]:
        """Up to `count` rows cheaper than `price`, not valid, with the least margins, that differ in their columns."""
        kept: list[int] = []
        seen: set[bytes] = set()
        for i in np.argsort(self.margin, kind="stable").tolist():
            if self.prices[i] >= price or np.isnan(self.margin[i]) or self.margin[i] < -self.bar:
                continue
            if (key := self.masks[i].tobytes()) not in seen:
                seen.add(key)
                kept.append(i)
                if len(kept) == count:
                    break
        return kept


def changed_in(row: Vector, j: int, code: float) -> Vector:
    """The row with another code in column j."""
    row = row.copy()
    row[j] = code
    return row
