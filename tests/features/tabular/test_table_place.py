"""A row ready to be searched: sizes, changes, and rows in the type that was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zomirror.features.place import Change
from zomirror.features.tabular.table import Table
from zomirror.features.tabular.table_place import in_codes

FRAME: dict[str, Any] = {
    "income": [1000, 2000, 3000, 4000, 1500],
    "rate": [0.1, 0.25, 0.4, 0.9, 0.5],
    "housing": ["rent", "own", "free", "own", "rent"],
    "job": ["a", None, "b", "a", "a"],
    "debt": [None, 1.5, 2.5, 3.0, 0.5],
}


def table(**options: Any) -> Table:
    import pandas as pd

    return Table(pd.DataFrame(FRAME), **options)


def test_sizes_and_changes_of_a_pn():
    place = table().place({"income": 2000, "rate": 0.25, "housing": "rent", "job": "a", "debt": 1.5}, "PN")
    w = np.array([3500.0, 0.25, 1.0, 0.0, 1.5])
    np.testing.assert_allclose(place.sizes(w), [0.5, 0.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(place.sizes(np.stack([w, place.code]))[1], 0.0)
    assert place.changes(w) == (Change("housing", "rent", "own"), Change("income", 2000, 3500))
    assert place.distances(w[None], place.code).tolist() == [1.5]
    assert place.perturbed(w) == {"income": 3500, "rate": 0.25, "housing": "own", "job": "a", "debt": 1.5}
    assert place.free == 5
    assert place.start is place.as_it_is


def test_a_pp_has_whole_columns():
    options = {"income": 4000, "rate": 0.9, "housing": "own"}
    row = {"income": 2000, "rate": 0.25, "housing": "rent", "job": "a", "debt": 1.5}
    place = table(baseline=options, fixed=["rate"]).place(row, "PP")
    assert place.baseline[:3].tolist() == [4000.0, 0.25, 1.0]  # a fixed column is present
    np.testing.assert_array_equal(place.legal(np.array([2900.0, 0.3, 1.0, 0.0, 1.4])), [2000, 0.25, 1, 0, 1.5])
    w = place.legal(np.array([2000.0, 0.25, 1.0, 0.0, 1.5]))
    assert place.sizes(w).tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert place.changes(w) == (Change("income", 4000, 2000),)
    assert place.can_change == (True, False, True, False, False)
    assert place.absent is place.baseline


def test_missing_values_stay_missing_unless_the_column_allows_it():
    row = {"income": 2000, "rate": 0.25, "housing": "rent", "job": None, "debt": float("nan")}
    place = table().place(row, "PN")
    jump = np.array([np.nan, 0.25, 2.0, 1.0, 2.5])
    legal = place.legal(jump)
    assert legal[0] == 2000.0
    assert np.isnan(legal[3:]).all()
    assert place.fixed == (False, False, False, True, True)
    place = table(missing=["job", "debt"]).place(row, "PN")
    legal = place.legal(jump)
    assert legal[3:].tolist() == [1.0, 2.5]
    assert place.changes(legal) == (Change("job", None, "b"), Change("debt", None, 2.5))
    assert place.perturbed(place.code) == row | {"job": None} or np.isnan(place.perturbed(place.code)["debt"])
    assert np.isfinite(place.box.lower).all()


@pytest.mark.parametrize("kind", ["series", "frame", "dict", "list", "tuple", "array", "polars", "pyarrow"])
def test_the_answer_has_the_type_of_the_row(kind):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    frame = pd.DataFrame({name: FRAME[name] for name in ("income", "rate", "housing")})
    made = {"polars": pl.from_pandas(frame), "pyarrow": pa.Table.from_pandas(frame, preserve_index=False)}
    table = Table(made.get(kind, frame))
    values = [2000, 0.25, "rent"]
    x0 = {
        "series": frame.iloc[1].copy(),
        "frame": frame.iloc[[1]][["housing", "income", "rate"]],
        "dict": dict(zip(frame, values, strict=True)),
        "list": values,
        "tuple": tuple(values),
        "array": np.array(values, dtype=object),
        "polars": made["polars"][1],
        "pyarrow": made["pyarrow"].slice(1, 1),
    }[kind]
    place = table.place(x0, "PN")
    after = place.perturbed(np.array([3000.0, 0.25, 0.0]))
    assert type(after) is type(x0)
    plain = list(after.values()) if kind == "dict" else after
    if kind == "series":
        assert after.index.equals(x0.index)
        assert after.name == x0.name
        plain = after.tolist()
    if kind == "frame":
        assert list(after.columns) == ["housing", "income", "rate"]
        assert after.index.equals(x0.index)
        assert after.dtypes.equals(x0.dtypes)
        plain = after[["income", "rate", "housing"]].iloc[0].tolist()
    if kind == "polars":
        assert after.schema == x0.schema
        plain = after.row(0)
    if kind == "pyarrow":
        assert after.schema.equals(x0.schema)
        plain = [column[0].as_py() for column in after.columns]
    assert list(plain) == [3000, 0.25, "free"]
    again = place.restored({"income": 3000, "rate": 0.25, "housing": "free"})
    assert type(again) is type(x0)
    assert str(again) == str(after)


def test_a_series_of_floats_stays_one():
    import pandas as pd

    frame = pd.DataFrame({"a": [0.5, 1.5, 2.25], "b": [1.0, 2.5, 3.0]})
    after = Table(frame).place(frame.iloc[0], "PN").perturbed(np.array([1.5, 1.0]))
    assert after.dtype == np.float64
    assert after.tolist() == [1.5, 1.0]


def test_thresholds_of_numbers_become_thresholds_of_codes():
    learned = table(ordinal=["income"], categorical=["rate"])
    income, rate, _, _, debt = learned.columns
    np.testing.assert_array_equal(in_codes(income, np.array([1700.0, 3500.0])), [1.5, 3.5])
    assert in_codes(rate, np.array([0.3])) is None
    np.testing.assert_array_equal(in_codes(debt, np.array([2.0, 1.0, 2.0])), [1.0, 2.0])
    assert in_codes(debt, None) is None
    place = learned.place({"income": 2000, "rate": 0.25, "housing": "rent", "job": "a", "debt": 1.5}, "PN")
    assert place.stepped(None) is place
    stepped = place.stepped((np.array([1700.0]), None, None, None, np.array([2.0])))
    assert stepped.arrays()["thresholds"].tolist() == [1.5, 2.0]
    assert place.arrays()["thresholds"].size == 0
