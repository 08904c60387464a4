"""Tables of each library: read the reference rows once, and build frames of the same columns and types.

Reading goes through narwhals; building a frame of some rows is on the path of every query and calls the library itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError, ArgumentTypeError

LIBRARIES = ("pandas", "polars", "pyarrow")
LARGEST = 2.0**53
"""Larger integers are not exact as float64."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One column of the reference rows."""

    name: str
    values: list[Any]
    """As Python objects; None where a value is missing."""
    numeric: bool
    """Whether its type is one of numbers."""
    boolean: bool = False
    readable: bool = True
    """Whether its values are numbers, texts or truth values; not so for dates and nested values."""
    order: tuple[Any, ...] | None = None
    """The categories of an ordered type, in order."""
    single: bool = False
    """Whether it holds float32 or less."""
    native: Any = None
    """The column itself."""
    label: Any = None
    """The name in the frame, which need not be a text in pandas."""


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"


def library_of(frame: object) -> str:
    """dict, array, pandas, polars or pyarrow; ArgumentTypeError for anything else."""
    if isinstance(frame, Mapping):
        return "dict"
    if isinstance(frame, np.ndarray):
        return "array"
    module = type(frame).__module__.split(".")[0]
    if module in LIBRARIES and hasattr(frame, "shape") and len(frame.shape) == 2:
        return module
    raise ArgumentTypeError(
        f"expected a table of reference rows, got {type(frame).__name__}: give a pandas, polars or pyarrow frame, "
        "a dict of columns, or an array (rows, columns)"
    )


def read(frame: Any) -> tuple[Field, ...]:
    """The columns of a table."""
    library = library_of(frame)
    if library == "dict":
        fields = [_plain_field(str(name), column) for name, column in frame.items()]
    elif library == "array":
        if frame.ndim != 2 or frame.dtype.kind not in "biuf":
            raise ArgumentTypeError(
                f"expected an array of numbers (rows, columns), got dtype {frame.dtype} and shape {frame.shape}: "
                "give a frame or a dict of columns"
            )
        fields = [_plain_field(f"column {j}", frame[:, j]) for j in range(frame.shape[1])]
    else:
        fields = _frame_fields(frame)
    rows = {len(one.values) for one in fields}
    if not fields or rows == {0}:
        raise ArgumentError("expected reference rows, got a table without rows or columns: give some rows of your data")
    if len(rows) > 1:
        raise ArgumentError(f"expected columns of one length, got lengths {', '.join(map(str, sorted(rows)))}")
    return tuple(fields)


def _plain_field(name: str, column: Any) -> Field:
    values: NDArray[Any] = np.asarray(column)
    if values.ndim != 1:
        raise ArgumentError(f"expected column {name!r} to be one-dimensional, got shape {values.shape}")
    items = [None if is_missing(value) else value for value in values.tolist()]
    numeric = values.dtype.kind in "iuf"
    readable = values.dtype.kind in "biufUO"
    single = values.dtype.kind == "f" and values.dtype.itemsize < 8
    return Field(name, items, numeric, values.dtype.kind == "b", readable, None, single, values, name)


def _frame_fields(frame: Any) -> list[Field]:
    columns = [str(name) for name in (frame.column_names if hasattr(frame, "column_names") else frame.columns)]
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise ArgumentError(f"expected different column names, got {', '.join(twice)} more than once: rename them")
    try:
        import narwhals as nw
    except ImportError:
        raise ArgumentError("expected narwhals, which reads frames: pip install 'zomirror[tables]'") from None
    table = nw.from_native(frame, eager_only=True)
    labels = list(getattr(frame, "columns", columns)) if hasattr(frame, "index") else columns
    found = zip(columns, labels, table.iter_columns(), strict=True)
    return [_frame_field(nw, name, label, series) for name, label, series in found]


def _frame_field(nw: Any, name: str, label: Any, series: Any) -> Field:
    dtype = series.dtype
    items = [None if is_missing(value) else value for value in series.to_list()]
    numeric, boolean = bool(dtype.is_numeric()), dtype == nw.Boolean
    if dtype == nw.Object and items and all(isinstance(item, bool) for item in items if item is not None):
        boolean = any(item is not None for item in items)
    readable = numeric or boolean or dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object)
    native = series.to_native()
    categories = getattr(getattr(native, "dtype", None), "categories", None)
    ordered = bool(getattr(getattr(native, "dtype", None), "ordered", False))
    order = tuple(categories.tolist()) if ordered and categories is not None else None
    return Field(name, items, numeric, boolean, readable, order, dtype == nw.Float32, native, label)


@dataclass(frozen=True, slots=True, eq=False)
class Builder:
    """Makes tables like the reference rows from codes."""

    library: str
    fields: tuple[Field, ...]
    levels: tuple[tuple[Any, ...] | None, ...]
    """The category of each code, for each column; None for numbers."""
    _natives: tuple[Any, ...] = field(init=False)
    """For categories, a native column with one entry for each code, and a missing one at the end; else the dtype."""

    def __post_init__(self) -> None:
        natives = tuple(self._native(one, levels) for one, levels in zip(self.fields, self.levels, strict=True))
        object.__setattr__(self, "_natives", natives)
        # Only the types are needed from now on: workers need not be sent the rows.
        empty = tuple(_emptied(one) for one in self.fields)
        object.__setattr__(self, "fields", empty)

    @staticmethod
    def _native(one: Field, levels: tuple[Any, ...] | None) -> Any:
        if levels is None:
            return getattr(one.native, "dtype", None) if not hasattr(one.native, "type") else one.native.type
        first: dict[Any, int] = {}
        for row, value in enumerate(one.values):
            first.setdefault(value, row)
        rows = [first[level] for level in levels] + ([first[None]] if None in first else [])
        return _taken(one.native, np.array(rows, dtype=np.intp))

    def __call__(self, codes: NDArray[np.float64]) -> Any:
        """The rows of codes (n, columns) as a table of the reference's library, columns and types."""
        if self.library == "array":
            return codes.astype(self._natives[0])
        columns = {
            one.label: self._column(native, levels, codes[:, j], one)
            for j, (one, native, levels) in enumerate(zip(self.fields, self._natives, self.levels, strict=True))
        }
        if self.library == "dict":
            return columns
        module = _module(self.library)
        return module.table(columns) if self.library == "pyarrow" else module.DataFrame(columns)

    def _column(self, native: Any, levels: tuple[Any, ...] | None, codes: NDArray[np.float64], one: Field) -> Any:
        absent = np.isnan(codes)
        if levels is not None:
            return _taken(native, np.where(absent, len(levels), codes).astype(np.intp))
        if self.library == "dict":
            return codes.astype(native)
        if self.library == "pandas":
            if native == np.float64:
                return codes
            column = _module("pandas").Series(codes)
            if absent.any() and native.kind != "O":
                column = column.astype("Float64" if hasattr(native, "na_value") else np.float64)
            return column.astype(native)
        if self.library == "polars":
            column = _module("polars").Series(one.name, codes)
            return (column.fill_nan(None) if one.values else column).cast(native)
        arrow = _module("pyarrow")
        return arrow.array(codes, mask=absent if one.values else None).cast(native)


def _emptied(one: Field) -> Field:
    """The column without its rows; of the values, only whether a null was among them."""
    null = bool(getattr(one.native, "null_count", 0))
    if callable(getattr(one.native, "null_count", None)):
        null = bool(one.native.null_count())
    return replace(one, values=[None] if null else [], native=None)


def _taken(native: Any, rows: NDArray[np.intp]) -> Any:
    """Some entries of a native column, in its own type."""
    if hasattr(native, "array"):  # pandas: a Series, then the array inside
        native = native.array
    return native.gather(rows) if hasattr(native, "gather") else native.take(rows)


def _module(library: str) -> Any:
    import importlib

    return importlib.import_module(library)


def is_frame(rows: object) -> bool:
    """Whether it is a frame of pandas, polars or pyarrow."""
    return type(rows).__module__.split(".")[0] in LIBRARIES and len(getattr(rows, "shape", ())) == 2


def rows_of(frame: Any) -> Iterator[dict[str, Any]]:
    """The rows of a frame, as dicts."""
    fields = _frame_fields(frame)
    for values in zip(*(one.values for one in fields), strict=True):
        yield dict(zip((one.name for one in fields), values, strict=True))


def row_of(x0: Any, names: Sequence[str]) -> dict[str, Any]:
    """The values of one row by column, in the order of `names`; ArgumentError if it has other columns."""
    found = _named(x0, names)
    absent = [name for name in names if name not in found]
    extra = [name for name in found if name not in names]
    if absent or extra:
        said = [f"without {', '.join(absent)}"] * bool(absent) + [f"with {', '.join(extra)}"] * bool(extra)
        raise ArgumentError(
            f"expected x0 with the columns of the reference rows, got one {' and '.join(said)}: "
            "give the columns that the model takes"
        )
    return {name: found[name] for name in names}


def _named(x0: Any, names: Sequence[str]) -> dict[str, Any]:
    """The values by column: from a Series, a frame of one row, a dict, or a sequence in the order of `names`."""
    if isinstance(x0, Mapping) or _is_series(x0):
        given = [str(name) for name in (x0 if isinstance(x0, Mapping) else x0.index)]
        if twice := sorted({name for name in given if given.count(name) > 1}):
            raise ArgumentError(f"expected x0 with different column names, got {', '.join(twice)} more than once")
        return {str(name): value for name, value in x0.items()}
    if is_frame(x0):
        fields = _frame_fields(x0)
        if len(fields[0].values if fields else ()) != 1:
            raise ArgumentError(
                f"expected x0 as one row, got a frame of {len(fields[0].values) if fields else 0}: use explain_many()"
            )
        return {one.name: one.values[0] for one in fields}
    if isinstance(x0, Sequence | np.ndarray) and not isinstance(x0, str | bytes):
        values = x0.tolist() if isinstance(x0, np.ndarray) else list(x0)
        if not isinstance(values, list) or len(values) != len(names):
            count = len(values) if isinstance(values, list) else "one value"
            raise ArgumentError(f"expected x0 with {len(names)} values ({', '.join(names)}), got {count}")
        return dict(zip(names, values, strict=True))
    raise ArgumentTypeError(
        "expected x0 as a row of the table (a Series, a frame of one row, a dict or a sequence), "
        f"got {type(x0).__name__}"
    )


def row_values(x0: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """A row as plain values by column: None where one is missing, numbers and texts as in Python, others as texts."""
    found = {}
    for name, value in _named(x0, names or ()).items():
        item = value.item() if isinstance(value, np.generic) else value
        plain = isinstance(item, bool | int | float | str)
        found[name] = None if is_missing(item) else item if plain else str(item)
    return found


def row_like(x0: Any, row: Mapping[str, Any], changed: Mapping[str, Any]) -> Any:
    """The row in the type of x0; `changed` are the columns that differ from it."""
    names = list(row)
    if isinstance(x0, Mapping):
        return {name: changed.get(str(name), value) for name, value in x0.items()}
    if _is_series(x0):
        values = [changed.get(str(name), value) for name, value in x0.items()]
        dtype = x0.dtype if getattr(x0.dtype, "kind", "O") == "f" and not _texts(values) else object
        return type(x0)(values, index=x0.index, name=x0.name, dtype=dtype)
    if isinstance(x0, np.ndarray):
        values = [changed.get(name, value) for name, value in zip(names, x0.tolist(), strict=True)]
        return np.array(values, dtype=x0.dtype if x0.dtype.kind in "fO" else None)
    if isinstance(x0, tuple):
        return tuple(changed.get(name, value) for name, value in zip(names, x0, strict=True))
    return [changed.get(name, value) for name, value in zip(names, x0, strict=True)]


def _is_series(x0: object) -> bool:
    """Whether x0 is a pandas Series, whose index are the columns."""
    return hasattr(x0, "index") and hasattr(x0, "items") and len(getattr(x0, "shape", ())) == 1


def _texts(values: list[Any]) -> bool:
    return any(isinstance(value, str) for value in values)
