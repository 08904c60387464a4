"""One row of a table, ready to be searched.

Rows of w are codes (see `column.py`): for a PN any legal row, for a PP a row that has in each column the value of x0 or
that of the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from zomirror.features.place import Change
from zomirror.features.tabular.column import Column
from zomirror.features.tabular.frames import Builder, is_frame, is_missing, row_like
from zomirror.numerics.arrays import Array
from zomirror.problem import Box


@dataclass(frozen=True, slots=True, eq=False)
class TablePlace:
    """One row, ready to be searched. Rows of w are codes, for a PN and for a PP."""

    kind: str
    x0: Any
    """The row as it was given."""
    columns: tuple[Column, ...]
    """What each column may become in this row."""
    code: NDArray[np.float64]
    """x0 in codes."""
    baseline: NDArray[np.float64]
    """The codes of absent columns of a PP; those of x0 where a column is fixed."""
    reference: NDArray[np.float64]
    """Reference rows in codes, with values that this row may not have, too."""
    row: Mapping[str, Any]
    """x0 by column."""
    build: Builder
    typical: NDArray[np.float64]
    """The median or the commonest category of each column."""
    fixed: tuple[bool, ...]
    """Columns that keep the value of x0, also in a PP."""
    chosen_baseline: bool = False
    """Whether the user said what absent means; otherwise the search may choose a baseline of another class."""
    space: ClassVar[str] = "table"
    labels: ClassVar[None] = None

    @property
    def as_it_is(self) -> NDArray[np.float64]:
        """x0 in codes."""
        return self.code

    @property
    def start(self) -> NDArray[np.float64]:
        """x0 in codes."""
        return self.code

    @property
    def absent(self) -> NDArray[np.float64]:
        """The baseline."""
        return self.baseline

    @property
    def box(self) -> Box:
        """The least and the largest code of each column; 0 where a value is missing and stays so."""
        return Box(*(np.nan_to_num([getattr(one, side) for one in self.columns]) for side in ("low", "high")))

    @property
    def d(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def scale(self) -> NDArray[np.float64]:
        """Sizes are in units of each column's range already."""
        return np.ones(())

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(column.name for column in self.columns)

    @property
    def free(self) -> int:
        """The number of columns that can change."""
        return sum(self.can_change)

    @property
    def can_change(self) -> tuple[bool, ...]:
        """Whether each column can change (PN), or be absent (PP)."""
        if self.kind == "PN":
            return tuple(column.free for column in self.columns)
        return tuple(bool(size) for size in self.sizes(self.code))

    def inputs(self, w: Array) -> NDArray[np.float64]:
        """The rows themselves: the classifier of the table decodes them."""
        return np.array(w, dtype=np.float64, ndmin=2)

    def sizes(self, w: Array) -> NDArray[np.float64]:
        """PN: the distance of each column from x0. PP: 1 where a column has the value of x0 and not the baseline's."""
        w = np.asarray(w, np.float64)
        other = self.code if self.kind == "PN" else self.baseline
        parts = [column.parts(w[..., j], other[j]) for j, column in enumerate(self.columns)]
        sizes = np.stack(parts, axis=-1)
        return sizes if self.kind == "PN" else np.asarray(sizes > 0, np.float64)

    def distances(self, rows: Array, row: Array) -> NDArray[np.float64]:
        """The distance (HEOM) of each of `rows` from `row`: the sum over the columns."""
        rows, row = np.asarray(rows, np.float64), np.asarray(row, np.float64)
        total = np.zeros(rows.shape[:-1])
        for j, column in enumerate(self.columns):
            total += column.parts(rows[..., j], row[..., j])
        return total

    def legal(self, w: Array) -> NDArray[np.float64]:
        """The nearest row that exists, for each row of w; of a PP, the nearer of x0 and the baseline by column."""
        w = np.asarray(w, np.float64)
        if self.kind == "PN":
            parts = [column.legal(w[..., j], self.code[j]) for j, column in enumerate(self.columns)]
            return np.stack(parts, axis=-1)
        near = []
        for j, column in enumerate(self.columns):
            present = column.parts(w[..., j], self.code[j]) <= column.parts(w[..., j], self.baseline[j])
            near.append(np.where(present, self.code[j], self.baseline[j]))
        return np.stack(near, axis=-1)

    def change(self, w: Array) -> NDArray[np.float64]:
        """The size of each column's change (PN), or whether it is present (PP)."""
        return self.sizes(w)

    def perturbed(self, w: Array) -> Any:
        """The row w in the type of x0."""
        changed = {one.name: one.after for one in self._differences(w, self.code)}
        if is_frame(self.x0):
            frame = self.build(np.asarray(w, np.float64)[None])
            given = self.x0.column_names if hasattr(self.x0, "column_names") else list(self.x0.columns)
            if hasattr(self.x0, "index"):
                frame.index = self.x0.index
            return frame.select(given) if hasattr(frame, "select") else frame[given]
        return row_like(self.x0, self.row, changed)

    def restored(self, row: Mapping[str, Any]) -> Any:
        """A row by column, as a file holds it, in the type of x0."""
        codes = [code_of(column, row.get(column.name)) for column in self.columns]
        return self.perturbed(np.array([np.nan if code is None else code for code in codes]))

    def changes(self, w: Array) -> tuple[Change, ...]:
        """PN: (column, value of x0, new value). PP: (column, value of the baseline, value of x0). Largest first."""
        return self._differences(w, self.code if self.kind == "PN" else self.baseline)

    def _differences(self, w: Array, other: Array) -> tuple[Change, ...]:
        sizes = np.array([one.parts(np.asarray(w[j]), float(other[j])) for j, one in enumerate(self.columns)])
        order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)].tolist()
        return tuple(
            Change(self.columns[j].name, self._value(j, float(other[j])), self._value(j, float(w[j]))) for j in order
        )

    def _value(self, j: int, code: float) -> Any:
        """A code as a person reads it; that of x0 as it was given."""
        own = self.code[j]
        if code == own or (np.isnan(code) and np.isnan(own)):
            given = self.row[self.columns[j].name]
            return None if is_missing(given) else given.item() if isinstance(given, np.generic) else given
        return value_of(self.columns[j], code)

    def based(self, baseline: Array) -> TablePlace:
        """The same place with another baseline; fixed columns keep the values of x0."""
        return replace(self, baseline=np.where(self.fixed, self.code, baseline))

    def stepped(self, thresholds: tuple[Array | None, ...] | None) -> TablePlace:
        """The same place with the splits of the model's trees, one array of numbers for each column."""
        if thresholds is None:
            return self
        pairs = zip(self.columns, thresholds, strict=True)
        return replace(self, columns=tuple(replace(one, thresholds=in_codes(one, splits)) for one, splits in pairs))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What determines the search besides the options."""
        sides = {"low": [column.low for column in self.columns], "high": [column.high for column in self.columns]}
        splits = [np.empty(0) if column.thresholds is None else column.thresholds for column in self.columns]
        return {
            "x0": self.code,
            "baseline": self.baseline,
            "reference": self.reference,
            "thresholds": np.concatenate(splits),
            **{name: np.array(side, np.float64) for name, side in sides.items()},
        }


def value_of(column: Column, code: float) -> Any:
    """What a code stands for: a category, an int, a float, or None for a missing value."""
    if np.isnan(code):
        return None
    if column.categories is not None:
        value = column.categories[int(code)]
        return value.item() if isinstance(value, np.generic) else value
    return int(code) if column.kind in ("integer", "binary") and code == int(code) else float(code)


def code_of(column: Column, value: Any) -> float | None:
    """The code of a value of this column: NaN if it is missing, None if there is no such category."""
    if is_missing(value):
        return float("nan")
    if column.categories is None:
        return float(value)
    return float(column.categories.index(value)) if value in column.categories else None


def in_codes(column: Column, splits: Array | None) -> NDArray[np.float64] | None:
    """Thresholds of numbers as thresholds of codes; None for categories, which have no order."""
    if splits is None or not len(splits):
        return None
    if column.categories is None:
        return np.unique(np.asarray(splits, np.float64))
    if column.kind != "ordinal" or not all(isinstance(value, int | float) for value in column.categories):
        return None
    return np.unique(np.searchsorted(np.array(column.categories, np.float64), splits) - 0.5)
