"""A row of a table: what each column may become, learned from reference rows.

The variable of a search is a row of codes (see `column.py`): for a PN any legal row, for a PP a row that has in each
column the value of x0 or that of the baseline. The model gets frames of the same columns and types as the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import choice
from zomirror.classifiers import Classifier, FrameModel, as_classifier
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.tabular.column import Column
from zomirror.features.tabular.column_rules import (
    SHOWN,
    allowed_codes,
    as_float,
    as_step,
    decimals,
    inwards,
    sides,
    sort_key,
    tens,
    typical,
)
from zomirror.features.tabular.frames import LARGEST, Builder, Field, is_frame, is_missing, library_of, read, row_of
from zomirror.features.tabular.table_place import TablePlace, code_of, value_of

REFERENCE_ROWS = 5_000
"""A search is given at most this many reference rows, evenly spaced; ranges and categories are learned from all."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The columns of a table, learned from reference rows.

    Numbers are continuous or integer, 0/1 columns, truth values and texts with two values binary, other texts
    categorical, and ordered pandas categories ordinal, unless you say otherwise. An answer has only values that exist:
    whole numbers in integer columns, categories that were seen, as many decimals as the reference rows have, tens or
    hundreds where all of them have no more digits. It stays within their range, unless `bounds` says otherwise.

    Parameters
    ----------
    frame : pandas, polars or pyarrow frame, dict of columns, or array
        Reference rows with the columns that the model takes, for instance the training data without the class. The
        model gets frames with the same columns and types.
    fixed : sequence of str
        Columns that must not change.
    increasing, decreasing : sequence of str
        Columns that may only rise, or only fall.
    categorical, integer, continuous : sequence of str
        Columns whose kind you know better.
    ordinal : sequence or mapping
        Columns whose values have an order: names, or {name: values from the least to the largest}.
    missing : sequence of str
        Columns in which a missing value may become a value, and a value may become missing. In all others a missing
        value stays missing.
    bounds : mapping, optional
        {name: (least, largest)} for numbers, either of them None for the range of the reference rows;
        {name: [categories]} for categories.
    step : mapping, optional
        {name: step}: the answers of a number are multiples of it, for instance 100 for an income.
    baseline : mapping or row, optional
        What an absent column of a PP holds: a row, or {name: value} for some columns, the others at their typical
        value. By default the reference row of another class nearest to typical, which the search asks the model for.
    """

    frame: Any
    fixed: Any = ()
    increasing: Any = ()
    decreasing: Any = ()
    categorical: Any = ()
    integer: Any = ()
    continuous: Any = ()
    ordinal: Any = ()
    missing: Any = ()
    bounds: Any = None
    step: Any = None
    baseline: Any = None
    columns: tuple[Column, ...] = field(init=False, repr=False)
    reference: NDArray[np.float64] = field(init=False, repr=False)
    build: Builder = field(init=False, repr=False)
    typical: NDArray[np.float64] = field(init=False, repr=False)
    complete: tuple[bool, ...] = field(init=False, repr=False)
    """Whether no reference row lacks a value, for each column."""
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        put = object.__setattr__
        fields = read(self.frame)
        known = tuple(one.name for one in fields)
        lists = ("fixed", "increasing", "decreasing", "categorical", "integer", "continuous", "missing")
        for name in lists:
            put(self, name, _names(name, getattr(self, name), known))
        orders = self.ordinal if isinstance(self.ordinal, Mapping) else dict.fromkeys(_listed("ordinal", self.ordinal))
        put(self, "ordinal", {str(name): None if order is None else tuple(order) for name, order in orders.items()})
        _names("ordinal", self.ordinal, known)
        for name in ("bounds", "step"):
            given = {} if getattr(self, name) is None else getattr(self, name)
            if not isinstance(given, Mapping):
                raise ArgumentTypeError(f"expected {name} by column, as {{'age': ...}}, got {given!r}")
            put(self, name, {str(key): value for key, value in given.items()})
            _names(name, getattr(self, name), known)
        self._refuse_contradictions()
        columns, codes = zip(*(self._learned(one) for one in fields), strict=True)
        put(self, "columns", columns)
        levels = tuple(column.categories for column in columns)
        put(self, "build", Builder(library_of(self.frame), fields, levels))
        rows = np.stack(codes, axis=1)
        put(self, "complete", tuple(bool(full) for full in ~np.isnan(rows).any(axis=0)))
        put(self, "typical", np.array([typical(column, rows[:, j]) for j, column in enumerate(columns)]))
        kept = np.unique(np.linspace(0, len(rows) - 1, min(REFERENCE_ROWS, len(rows))).astype(np.intp))
        put(self, "reference", np.ascontiguousarray(rows[kept]))
        self.reference.flags.writeable = False

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(column.name for column in self.columns)

    def place(self, x0: Any, kind: str) -> TablePlace:
        """The row ready to be searched; ArgumentError if it does not fit the reference rows."""
        choice("kind", kind, ("PP", "PN"))
        library = library_of(x0) if is_frame(x0) else self.build.library
        if library != self.build.library:
            raise ArgumentTypeError(
                f"expected x0 as a row of a {self.build.library} frame like the reference rows, got {library}: "
                "convert it, or give a dict"
            )
        row = row_of(x0, self.names)
        code = np.array([self._code("x0", column, row[column.name]) for column in self.columns])
        lacking = [
            name for name, own, full in zip(self.names, code, self.complete, strict=True) if np.isnan(own) and full
        ]
        if lacking:
            raise ArgumentError(
                f"expected a value of {lacking[0]} in x0, got a missing one, which no reference row has: fill it in, "
                "or give reference rows that lack it if the model takes them"
            )
        columns = tuple(self._narrowed(column, own) for column, own in zip(self.columns, code, strict=True))
        if kind == "PN" and not any(column.free for column in columns):
            raise ArgumentError(
                "expected a column that can change, got none: unfix some, widen the bounds or drop a direction"
            )
        code.flags.writeable = False
        place = TablePlace(
            kind=kind,
            x0=x0,
            columns=columns,
            code=code,
            baseline=self.typical,
            reference=self.reference,
            row=row,
            build=self.build,
            typical=self.typical,
            fixed=tuple(
                column.name in self.fixed or (bool(np.isnan(own)) and not column.missing)
                for column, own in zip(columns, code, strict=True)
            ),
            chosen_baseline=self.baseline is not None,
        ).based(self._baseline())
        if kind == "PP" and (all(place.fixed) or (place.chosen_baseline and not place.free)):
            raise ArgumentError("expected a column that can be absent, got none: unfix some or choose another baseline")
        return place

    def classifier(self, model: Any) -> Classifier:
        """The model as a classifier of codes; ArgumentError if it was fitted on other columns."""
        known = as_classifier(model)
        if isinstance(known, FrameModel):
            return known
        texts = tuple(one.name for one in self.columns if one.categories is not None and not _numeric(one.categories))
        return FrameModel(known, self.build, self.names, texts)

    def coded(self, frame: Any, where: str = "rows") -> NDArray[np.float64]:
        """Other rows of the same columns in codes; ArgumentError if they do not fit."""
        fields = {one.name: one.values for one in read(frame)}
        if missing := [name for name in self.names if name not in fields]:
            raise ArgumentError(f"expected {where} with the columns of the table, got none named {missing[0]!r}")
        codes = [[self._code(where, one, value) for value in fields[one.name]] for one in self.columns]
        return np.ascontiguousarray(np.array(codes, np.float64).T)

    def record(self) -> dict[str, Any]:
        """What run directories compare: the columns, and a digest of what was learned from the reference rows."""
        learned = [(one.name, one.step, one.unit, one.missing, one.categories) for one in self.columns]
        digest = sha256(repr(learned).encode() + np.nan_to_num(self.reference, nan=-0.5).tobytes()).hexdigest()
        columns = {one.name: one.kind for one in self.columns}
        rules = {name: sorted(getattr(self, name)) for name in ("fixed", "increasing", "decreasing")}
        return {"space": "table", "columns": columns, "reference": digest, **rules}

    def _refuse_contradictions(self) -> None:
        groups = {name: getattr(self, name) for name in ("fixed", "increasing", "decreasing")}
        kinds = {name: getattr(self, name) for name in ("categorical", "integer", "continuous")}
        for among in (groups, kinds | {"ordinal": tuple(self.ordinal)}):
            seen: dict[str, str] = {}
            for group, names in among.items():
                for name in names:
                    if seen.setdefault(name, group) != group:
                        raise ArgumentError(
                            f"expected column {name!r} in one of {seen[name]} and {group}, got both: drop one"
                        )

    def _learned(self, one: Field) -> tuple[Column, NDArray[np.float64]]:
        """The column and the codes of its reference rows."""
        name = one.name
        if not one.readable and name not in self.fixed:
            raise ArgumentTypeError(
                f"expected column {name!r} to hold numbers, texts or truth values, got {_type(one)}: "
                "convert it, or name it in fixed"
            )
        column, codes = self._categories(one) if self._is_category(one) else self._numbers(one)
        for group in ("increasing", "decreasing"):
            if name in getattr(self, group) and column.nominal and not (column.categories is None or one.boolean):
                raise ArgumentError(
                    f"expected columns with an order in {group}, got {name!r}, a category: "
                    f"give its order as ordinal={{{name!r}: [...]}}"
                )
        if name in self.missing:
            if not np.isnan(codes).any():
                raise ArgumentError(
                    f"expected columns with missing values in missing, got {name!r}, which has none in the reference "
                    "rows: the model has not seen it missing"
                )
            column = replace(column, missing=True)
        return column, codes

    def _is_category(self, one: Field) -> bool:
        if one.name in self.categorical or one.name in self.ordinal:
            return True
        if one.name in self.integer or one.name in self.continuous:
            return False
        return not one.numeric

    def _categories(self, one: Field) -> tuple[Column, NDArray[np.float64]]:
        name = one.name
        try:
            seen = set(one.values) - {None}
        except TypeError:
            raise ArgumentTypeError(f"expected column {name!r} to hold plain values, got lists or the like") from None
        order = self.ordinal.get(name)
        if order is not None and (unknown := [value for value in seen if value not in order]):
            raise ArgumentError(
                f"expected ordinal[{name!r}] to name every value, got {unknown[0]!r} in the reference rows"
            )
        order = order or (one.order if name not in self.categorical else None)
        if order is None and name in self.ordinal and not one.numeric and not one.boolean:
            raise ArgumentError(
                f"expected the order of {name!r}, whose values are texts: "
                f"give ordinal={{{name!r}: [least, ..., largest]}}"
            )
        levels = tuple(v for v in order if v in seen) if order is not None else tuple(sorted(seen, key=sort_key))
        ranked = order is not None or name in self.ordinal
        kind = "ordinal" if ranked and len(levels) > 2 else "categorical" if len(levels) > 2 else "binary"
        position = {value: float(i) for i, value in enumerate(levels)}
        codes = np.array([np.nan if value is None else position[value] for value in one.values])
        allowed = np.arange(len(levels), dtype=np.float64)
        if name in self.bounds:
            allowed = allowed_codes(name, self.bounds[name], levels, ranked=ranked)
        if name in self.step:
            raise ArgumentError(f"expected step for columns of numbers, got {name!r}, a category")
        unit = float(max(len(levels) - 1, 1)) if kind == "ordinal" else 1.0
        low, high = (float(allowed[0]), float(allowed[-1])) if len(allowed) else (np.nan, np.nan)
        return Column(name, kind, low, high, allowed, unit=unit, categories=levels), codes

    def _numbers(self, one: Field) -> tuple[Column, NDArray[np.float64]]:
        name = one.name
        codes = np.array([np.nan if value is None else as_float(name, value) for value in one.values], np.float64)
        there = codes[~np.isnan(codes)]
        if not np.isfinite(there).all():
            raise ArgumentError(f"expected finite numbers in column {name!r}, got {there[~np.isfinite(there)][0]}")
        if np.abs(there).max(initial=0.0) > LARGEST:
            raise ArgumentError(f"expected numbers below 2^53 in column {name!r}: give identifiers as texts")
        whole = bool((there == np.rint(there)).all())
        if name in self.integer and not whole:
            raise ArgumentError(f"expected whole numbers in column {name!r}, which is in integer, got fractions")
        kind = "continuous" if name in self.continuous or not whole else "integer"
        low, high = (float(there.min()), float(there.max())) if there.size else (np.nan, np.nan)
        unit = high - low if high > low else 1.0
        named = name in self.integer or name in self.continuous or name in self.bounds or name in self.step
        if there.size and not named and set(np.unique(there)) == {0.0, 1.0}:
            return Column(name, "binary", 0.0, 1.0, np.array([0.0, 1.0]), single=one.single), codes
        step = 0.0 if name in self.continuous else tens(there) if whole else decimals(there, single=one.single)
        if name in self.step:
            step = as_step(name, self.step[name])
        if name in self.bounds:
            low, high = sides(name, self.bounds[name], low, high)
        if step and there.size:
            low, high = inwards(low, high, step)
        return Column(name, kind, low, high, None, step, unit, single=one.single), codes

    def _narrowed(self, column: Column, own: float) -> Column:
        name = column.name
        if name in self.bounds and not np.isnan(own) and name not in self.fixed:
            outside = own not in column.values if column.values is not None else not _within(column, own)
            if outside:
                raise ArgumentError(
                    f"expected x0 inside bounds[{name!r}], got {value_of(column, own)!r}: widen them, or fix the column"
                )
        rises, falls = name in self.increasing, name in self.decreasing
        return column.narrowed(own, fixed=name in self.fixed, direction=int(rises) - int(falls))

    def _code(self, where: str, column: Column, value: Any) -> float:
        """The code of a value; ArgumentError if it cannot be one of this column."""
        if is_missing(value):
            return float("nan")
        value = value.item() if isinstance(value, np.generic) else value
        if column.categories is None:
            given = as_float(column.name, value, where)
            if not np.isfinite(given):
                raise ArgumentError(f"expected a finite {column.name} in {where}, got {value!r}")
            return given
        if (code := code_of(column, value)) is None:
            known = ", ".join(repr(one) for one in column.categories[:SHOWN])
            more = ", ..." if len(column.categories) > SHOWN else ""
            raise ArgumentError(
                f"expected {column.name} in {where} to be a value of the reference rows ({known}{more}), got {value!r}"
            )
        return code

    def _baseline(self) -> NDArray[np.float64]:
        """The user's baseline, or the typical row."""
        if self.baseline is None:
            return self.typical
        given = self.baseline
        if isinstance(given, Mapping):
            _names("baseline", given, self.names)
            values = {str(name): value for name, value in given.items()}
        else:
            values = row_of(given, self.names)
        pairs = zip(self.columns, self.typical, strict=True)
        return np.array(
            [self._code("baseline", one, values[one.name]) if one.name in values else usual for one, usual in pairs]
        )


def _numeric(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _listed(name: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"expected {name} to be a list of column names, got {given!r}")
    return tuple(str(one) for one in given)


def _names(name: str, given: object, known: tuple[str, ...]) -> tuple[str, ...]:
    """Column names; ArgumentError if the table has none of that name."""
    listed = _listed(name, () if given is None else given)
    if unknown := [one for one in listed if one not in known]:
        more = ", ..." if len(known) > SHOWN else ""
        raise ArgumentError(
            f"expected columns of the table in {name} ({', '.join(known[:SHOWN])}{more}), got {', '.join(unknown)}"
        )
    return listed


def _type(one: Field) -> str:
    return type(next((value for value in one.values if value is not None), None)).__name__


def _within(column: Column, own: float) -> bool:
    return column.low - column.step <= own <= column.high + column.step
