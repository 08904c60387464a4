"""One column of a table as a search sees it: its codes, which of them exist, and the distance between two.

A code is a float64: the number itself, the position 0..k-1 of a category, or NaN for a missing value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.numerics.arrays import Array

KINDS = ("continuous", "integer", "ordinal", "binary", "categorical")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """What a column may hold; `low`, `high` and `values` are those of one row once a place has narrowed them."""

    name: str
    kind: str
    """continuous, integer, ordinal, binary or categorical."""
    low: float
    high: float
    """The least and the largest code. NaN: it is missing and stays so."""
    values: Array | None = None
    """All codes that exist, sorted; None for numbers."""
    step: float = 0.0
    """Numbers are multiples of it; 0: any float."""
    unit: float = 1.0
    """The range of the reference rows: the distance of two numbers or ranks is |a - b| / unit."""
    categories: tuple[Any, ...] | None = None
    """The values that the codes 0..k-1 stand for; None where the code is the value."""
    thresholds: Array | None = None
    """Where the splits of the model's trees are, sorted, in codes; None if they are not known."""
    missing: bool = False
    """Whether a value may become missing, and a missing one a value."""
    single: bool = False
    """Whether the column holds float32."""

    @property
    def free(self) -> bool:
        """Whether there is more than one code."""
        codes = self.low < self.high if self.values is None else len(self.values) > 1
        return bool(codes) or self.missing

    @property
    def nominal(self) -> bool:
        """Whether two different codes have the distance 1."""
        return self.kind in ("binary", "categorical")

    def parts(self, a: Array, b: Array | float) -> NDArray[np.float64]:
        """The distance of each pair of codes: 0 or 1 for categories and missing values, else |a - b| / unit."""
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        absent = np.isnan(a) | np.isnan(b)
        with np.errstate(invalid="ignore"):
            apart = np.asarray(a != b, np.float64) if self.nominal else np.abs(a - b) / self.unit
        return np.where(absent, np.asarray(np.isnan(a) != np.isnan(b), np.float64), apart)

    def legal(self, codes: Array, own: float) -> NDArray[np.float64]:
        """The nearest codes that exist; `own`, the code of the row, always exists."""
        codes = np.asarray(codes, np.float64)
        if np.isnan(own) and not self.missing:
            return np.full_like(codes, np.nan)
        near = self._snapped(np.where(np.isnan(codes), 0.0, codes))
        if not np.isnan(own):  # it may lie off the grid, or between bounds that hold no multiple of the step
            outside = (near < self.low) | (near > self.high)
            near = np.where(outside | (np.abs(codes - own) <= np.abs(codes - near)), own, near)
        return np.where(np.isnan(codes), np.nan if self.missing else own, near)

    def narrowed(self, own: float, *, fixed: bool = False, direction: int = 0) -> Column:
        """The column of a row with this code: fixed, only rising (1) or only falling (-1)."""
        if np.isnan(own):
            if self.missing and not fixed:
                return self
            return replace(self, low=np.nan, high=np.nan, values=None, missing=False)
        low = own if fixed or direction > 0 else min(self.low, own)
        high = own if fixed or direction < 0 else max(self.high, own)
        values = None
        if self.values is not None:
            values = np.union1d(self.values, [own])
            values = values[(values >= low) & (values <= high)]
        return replace(self, low=low, high=high, values=values, missing=self.missing and not fixed)

    def _snapped(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The nearest member of `values`, or the nearest multiple of `step` between `low` and `high`."""
        if self.values is not None:
            after = np.clip(np.searchsorted(self.values, codes), 1, max(len(self.values) - 1, 1))
            below, above = self.values[after - 1], self.values[np.minimum(after, len(self.values) - 1)]
            nearer: NDArray[np.float64] = np.where(codes - below <= above - codes, below, above)
            return nearer
        near = snapped(np.clip(codes, self.low, self.high), self.step)
        if self.step:  # a bound that is no multiple of the step: the next multiple inside
            near = np.where(near < self.low, snapped(near + self.step, self.step), near)
            near = np.where(near > self.high, snapped(near - self.step, self.step), near)
        return near.astype(np.float32).astype(np.float64) if self.single else near


def snapped(numbers: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """The nearest multiples of `step`, which is a whole number or one over a whole number; 0: as they are."""
    if step == 0.0:
        return numbers
    if step >= 1.0:
        return np.asarray(np.rint(numbers / step) * step)
    parts = np.rint(1.0 / step)  # n / 100 is the float nearest to the decimal; n * 0.01 is not
    decimals: NDArray[np.float64] = np.rint(numbers * parts) / parts
    return decimals
