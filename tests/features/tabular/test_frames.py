"""Frames: what is built of codes equals what was read, in columns, types and missing values."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest

from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.tabular.frames import is_missing, row_of, row_values, rows_of
from zomirror.features.tabular.table import Table

pd: Any = None
pl: Any = None
pa: Any = None


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    """Imported by the worker that runs these tests, and not by all that collect them."""
    global pd, pl, pa
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def pandas_frame() -> Any:
    rng = np.random.default_rng(0)
    n = 40
    frame = pd.DataFrame(
        {
            "int": rng.integers(0, 1000, n),
            "small": rng.integers(0, 9, n).astype(np.int8),
            "float": rng.random(n),
            "single": rng.random(n).astype(np.float32),
            "gap": np.where(rng.random(n) < 0.3, np.nan, rng.random(n).round(1)),
            "nullable": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "half": pd.array(rng.random(n), dtype="Float64"),
            "text": rng.choice(["a", "b", "c"], n),
            "object": np.array(rng.choice(["x", "y"], n), dtype=object),
            "hole": pd.Series([None if gap else "q" for gap in rng.random(n) < 0.3]),
            "category": pd.Categorical(rng.choice(["u", "v", "w"], n), categories=["w", "v", "u", "never"]),
            "ordered": pd.Categorical(rng.choice(["lo", "hi"], n), categories=["lo", "mid", "hi"], ordered=True),
            "bool": rng.random(n) < 0.5,
            "maybe": pd.array(rng.random(n) < 0.5, dtype="boolean"),
        }
    )
    frame.loc[3, ["nullable", "maybe", "half"]] = pd.NA
    return frame


def polars_frame() -> Any:
    frame = pandas_frame()
    plain = {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame}
    made = pl.DataFrame(plain, strict=False)
    return made.with_columns(
        pl.col("small").cast(pl.Int8),
        pl.col("single").cast(pl.Float32),
        pl.col("category").cast(pl.Categorical),
        pl.col("ordered").cast(pl.Enum(["lo", "mid", "hi"])),
    )


def test_pandas_frames_come_back_as_they_were():
    frame = pandas_frame()
    table = Table(frame)
    pd.testing.assert_frame_equal(table.build(table.reference), frame)
    some = pickle.loads(pickle.dumps(table.build))(table.reference[5:8])  # noqa: S301 - as workers do
    pd.testing.assert_frame_equal(some, frame.iloc[5:8].reset_index(drop=True))


def test_polars_and_pyarrow_frames_come_back_as_they_were():
    frame = polars_frame()
    table = Table(frame)
    assert table.build(table.reference).equals(frame)
    assert table.build(table.reference).schema == frame.schema
    arrow = frame.to_arrow()
    table = Table(arrow)
    built = table.build(table.reference)
    assert built.schema.equals(arrow.schema)
    assert [built[name].to_pylist() for name in built.column_names] == [c.to_pylist() for c in arrow.columns]


def test_a_number_that_a_model_has_not_seen_has_the_type_of_its_column():
    table = Table(pandas_frame())
    codes = table.reference[:1].copy()
    for name, value in (("int", 777), ("small", 8), ("nullable", 7), ("gap", np.nan), ("half", np.nan)):
        codes[0, table.names.index(name)] = value
    built = table.build(codes)
    assert built.dtypes.equals(pandas_frame().dtypes)
    assert (built["int"][0], built["small"][0], built["nullable"][0]) == (777, 8, 7)
    assert built["gap"].isna()[0]
    assert built["half"].isna()[0]


def test_dicts_and_arrays_come_back_as_dicts_and_arrays():
    table = Table({"n": [1, 2, 3], "t": ["x", "y", "x"]})
    built = table.build(table.reference)
    assert {name: column.tolist() for name, column in built.items()} == {"n": [1, 2, 3], "t": ["x", "y", "x"]}
    assert built["n"].dtype == np.int64
    array = np.random.default_rng(0).random((5, 3)).astype(np.float32)
    table = Table(array)
    np.testing.assert_array_equal(table.build(table.reference), array)
    assert table.build(table.reference).dtype == np.float32
    assert table.names == ("column 0", "column 1", "column 2")


def test_names_of_pandas_columns_need_not_be_texts():
    frame = pd.DataFrame(np.random.default_rng(0).random((5, 3)))
    table = Table(frame, fixed=[0])
    assert table.names == ("0", "1", "2")
    pd.testing.assert_frame_equal(table.build(table.reference), frame)
    pd.testing.assert_frame_equal(
        table.place(frame.iloc[[1]], "PN").perturbed(table.reference[2]), frame.iloc[[2]].set_axis([1])
    )


def test_a_row_is_read_from_each_of_its_types():
    frame = pandas_frame()[["int", "text", "float"]]
    wanted = frame.iloc[2].to_dict()
    names = tuple(frame.columns)
    some = (
        frame.iloc[2],
        frame.iloc[[2]],
        wanted,
        list(wanted.values()),
        tuple(wanted.values()),
        frame.iloc[2].to_numpy(),
        pl.from_pandas(frame)[2],
        pa.Table.from_pandas(frame, preserve_index=False).slice(2, 1),
        dict(reversed(wanted.items())),
    )
    for x0 in some:
        assert row_of(x0, names) == wanted
    assert list(rows_of(frame))[2] == wanted


def test_plain_values_of_a_row():
    row = {"a": np.int64(3), "b": None, "c": float("nan"), "d": pd.NaT, "e": pd.Timestamp("2020-01-02"), "f": True}
    plain = row_values(row, tuple(row))
    assert plain == {"a": 3, "b": None, "c": None, "d": None, "e": "2020-01-02 00:00:00", "f": True}


@pytest.mark.parametrize("value", [None, float("nan"), np.float32("nan")], ids=["None", "nan", "float32"])
def test_missing_values(value):
    assert is_missing(value)
    assert is_missing(pd.NA)
    assert not is_missing("")
    assert not is_missing(0)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: [1, 2], ArgumentTypeError, "expected a table of reference rows, got list"),
        (lambda: pl.DataFrame({"a": [1]}).lazy(), ArgumentTypeError, "a table of reference rows, got LazyFrame"),
        (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), ArgumentError, "got a more than once: rename them"),
        (lambda: pd.DataFrame({"a": []}), ArgumentError, "got a table without rows or columns"),
        (dict, ArgumentError, "got a table without rows or columns"),
        (lambda: {"a": [1, 2], "b": [1]}, ArgumentError, "columns of one length, got lengths 1, 2"),
        (lambda: {"a": [[1, 2]]}, ArgumentError, "column 'a' to be one-dimensional"),
        (lambda: np.array([["x"]]), ArgumentTypeError, "an array of numbers"),
        (lambda: np.zeros(3), ArgumentTypeError, "an array of numbers"),
        (lambda: pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}), ArgumentTypeError, "name it in fixed"),
        (lambda: {"when": np.array(["2020-01-01"], "datetime64[D]")}, ArgumentTypeError, "name it in fixed"),
        (lambda: pl.DataFrame({"a": [[1]]}), ArgumentTypeError, "name it in fixed"),
        (lambda: pd.DataFrame({"a": [[1], [2]]}), ArgumentTypeError, "hold plain values"),
        (lambda: {"a": [1.0, float("inf")]}, ArgumentError, "finite numbers in column 'a'"),
        (lambda: {"a": [2**60, 1]}, ArgumentError, "below 2\\^53"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_table_is_refused(make, error, says):
    with pytest.raises(error, match=says):
        Table(make())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: 3, "a row of the table .*, got int"),
        (lambda: "ab", "a row of the table .*, got str"),
        (lambda: [1], "2 values \\(a, b\\), got 1"),
        (lambda: np.array(3.0), "2 values \\(a, b\\), got one value"),
        (lambda: pd.DataFrame({"a": [1, 2], "b": [1, 2]}), "one row, got a frame of 2"),
        (lambda: {"a": 1}, "got one without b"),
        (lambda: {"a": 1, "b": 2, "class": 0}, "got one with class"),
        (lambda: {"a": 1, "c": 2}, "got one without b and with c"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_row_of_the_table_is_refused(make, says):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=says):
        row_of(make(), ("a", "b"))


def test_a_missing_narwhals_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ArgumentError, match=r"pip install 'zomirror\[tables\]'"):
        Table(pd.DataFrame({"a": [1, 2]}))
