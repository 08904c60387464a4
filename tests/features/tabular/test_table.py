"""Tables: what is learned of each column, and every wrong argument in one sentence before the first query."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zomirror as zm
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.tabular.table import Table

loan: Any = None
pd: Any = None


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    global loan, pd
    import pandas as pd

    from tests.support import loan_table as loan


def column(table: Table, name: str) -> Any:
    return table.columns[table.names.index(name)]


def test_the_kinds_ranges_and_steps_are_learned():
    frame = loan.loans()
    table = Table(frame)
    kinds = {one.name: one.kind for one in table.columns}
    assert kinds == {
        "income": "integer",
        "children": "integer",
        "rate": "continuous",
        "age": "integer",
        "housing": "categorical",
        "purpose": "categorical",
        "phone": "binary",
    }
    steps = {one.name: one.step for one in table.columns if one.categories is None}
    assert steps == {"income": 100.0, "children": 1.0, "rate": 0.01, "age": 1.0}
    income = column(table, "income")
    assert (income.low, income.high) == (frame["income"].min(), frame["income"].max())
    assert income.unit == income.high - income.low
    assert column(table, "housing").categories == ("free", "own", "rent")
    assert table.typical[3] in frame["age"].to_numpy()


def test_the_user_knows_better():
    frame = loan.loans()
    table = Table(
        frame,
        categorical=["children"],
        continuous=["income"],
        ordinal={"housing": ["free", "rent", "own"], "purpose": ["study", "car", "house", "other"]},
        step={"rate": 0.25},
        bounds={"age": (20, None), "rate": (0.1, 0.9), "purpose": ("car", "house")},
    )
    assert column(table, "children").kind == "categorical"
    assert column(table, "income").step == 0.0
    assert (column(table, "housing").kind, column(table, "housing").categories) == ("ordinal", ("free", "rent", "own"))
    assert column(table, "purpose").values.tolist() == [1.0, 2.0]
    assert (column(table, "age").low, column(table, "age").high) == (20.0, frame["age"].max())
    assert (column(table, "rate").low, column(table, "rate").high) == (0.25, 0.75)
    assert column(table, "rate").unit == Table(frame).columns[2].unit  # bounds do not change the costs
    assert column(Table(frame, integer="phone"), "phone").kind == "integer"
    assert column(Table(frame, ordinal=["children"]), "children").unit == 4.0
    assert column(Table(frame, bounds={"housing": ["own", "rent"]}), "housing").values.tolist() == [1.0, 2.0]


def test_ordered_categories_are_ordinal_unless_said_otherwise():
    values = pd.Categorical(["lo", "hi", "mid"], categories=["lo", "mid", "hi"], ordered=True)
    table = Table(pd.DataFrame({"grade": values}))
    assert (table.columns[0].kind, table.columns[0].categories) == ("ordinal", ("lo", "mid", "hi"))
    table = Table(pd.DataFrame({"grade": values}), categorical=["grade"])
    assert table.columns[0].kind == "categorical"


def test_many_digits_are_kept_and_few_rows_say_nothing_of_tens():
    rng = np.random.default_rng(0)
    table = Table({"long": rng.random(30), "ten": [10, 20, 30] * 10, "flag": [0, 1, 1] * 10, "same": [3] * 30})
    assert [one.step for one in table.columns] == [0.0, 1.0, 0.0, 1.0]
    assert [one.kind for one in table.columns] == ["continuous", "integer", "binary", "integer"]
    assert table.columns[3].unit == 1.0


def test_a_long_table_is_thinned_for_the_search():
    table = Table({"a": np.arange(20_000)})
    assert len(table.reference) == 5_000
    assert (table.columns[0].low, table.columns[0].high) == (0.0, 19_999.0)


def test_the_record_tells_tables_apart():
    frame = loan.loans()
    assert Table(frame).record() == Table(frame.copy()).record()
    others = [Table(frame, fixed=["age"]), Table(frame.iloc[1:]), Table(frame, categorical=["age"])]
    assert all(other.record() != Table(frame).record() for other in others)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"fixed": ["agee"]}, "columns of the table in fixed .*, got agee"),
    ({"increasing": ["x", "y"]}, "in increasing .*, got x, y"),
    ({"bounds": {"agee": (0, 1)}}, "in bounds .*, got agee"),
    ({"bounds": [(0, 1)]}, "bounds by column"),
    ({"bounds": {"age": 3}}, r"bounds\['age'\] as \(least, largest\)"),
    ({"bounds": {"age": (3, 2)}}, "least <= largest"),
    ({"bounds": {"age": ("a", 2)}}, "to be a number"),
    ({"bounds": {"housing": "own"}}, "a list of categories"),
    ({"bounds": {"housing": ["tent"]}}, "among 'free', 'own', 'rent', got 'tent'"),
    ({"step": {"housing": 1}}, "got 'housing', a category"),
    ({"step": {"age": 1.5}}, "a whole number"),
    ({"step": {"age": -1}}, "a whole number"),
    ({"increasing": ["age"], "decreasing": ["age"]}, "'age' in one of increasing and decreasing, got both"),
    ({"increasing": ["age"], "fixed": ["age"]}, "'age' in one of fixed and increasing, got both"),
    ({"categorical": ["age"], "integer": ["age"]}, "in one of categorical and integer"),
    ({"increasing": ["housing"]}, "an order in increasing, got 'housing', a category"),
    ({"integer": ["rate"]}, "whole numbers in column 'rate'"),
    ({"integer": ["housing"]}, "housing to be a number, got"),
    ({"ordinal": ["housing"]}, "expected the order of 'housing'"),
    ({"ordinal": {"housing": ["own", "rent"]}}, "to name every value, got 'free'"),
    ({"missing": ["age"]}, "which has none in the reference rows"),
    ({"fixed": 3}, "a list of column names"),
]


@pytest.mark.parametrize(("options", "says"), WRONG, ids=[says for _, says in WRONG])
def test_wrong_options_are_refused(options, says):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=says):
        Table(loan.loans(), **options)


def never(frame: Any) -> Any:
    raise AssertionError("asked")


def changed(**values: Any) -> dict[str, Any]:
    return {**loan.loans().iloc[0].to_dict(), **values}


ROWS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"housing": "tent"}, {}, "a value of the reference rows .*, got 'tent'"),
    ({"age": "old"}, {}, "age in x0 to be a number, got 'old'"),
    ({"age": float("inf")}, {}, "a finite age"),
    ({"extra": 1}, {}, "got one with extra"),
    ({"age": 99}, {"bounds": {"age": (20, 70)}}, r"inside bounds\['age'\], got 99"),
    ({"housing": "free"}, {"bounds": {"housing": ["own"]}}, r"inside bounds\['housing'\], got 'free'"),
    ({}, {"fixed": ["income", "children", "rate", "age", "housing", "purpose", "phone"]}, "can change, got none"),
    ({}, {"baseline": {"agee": 3}}, "in baseline .*, got agee"),
    ({}, {"baseline": {"housing": "tent"}}, "housing in baseline to be a value"),
]


@pytest.mark.parametrize(("values", "options", "says"), ROWS, ids=[says for _, _, says in ROWS])
def test_wrong_rows_are_refused_before_the_first_query(values, options, says):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=says):
        zm.explain(never, changed(**values), features=Table(loan.loans(), **options))


def test_a_pp_without_absent_columns_is_refused():
    frame = loan.loans()
    with pytest.raises(ArgumentError, match="can be absent, got none"):
        Table(frame, fixed=list(frame.columns)).place(frame.iloc[0], "PP")
    with pytest.raises(ArgumentError, match="choose another baseline"):
        Table(frame, baseline=frame.iloc[0]).place(frame.iloc[0], "PP")


def test_a_frame_of_another_library_is_refused():
    import polars as pl

    row = pl.DataFrame({name: [value] for name, value in changed().items()})
    with pytest.raises(ArgumentTypeError, match=r"a row of a pandas frame .*, got polars"):
        Table(loan.loans()).place(row, "PN")


@settings(max_examples=40)
@given(st.data())
def test_legal_rows_keep_fixed_and_directed_columns(data):
    """What DiCE#260 asks for, for every table: any point of the search becomes a row that keeps all the rules."""
    frame = loan.loans()
    numbers = list(loan.NUMBERS)
    rules = {name: data.draw(st.sampled_from(["free", "fixed", "increasing", "decreasing"])) for name in numbers}
    given_rules: dict[str, Any] = {
        rule: [name for name in numbers if rules[name] == rule] for rule in ("fixed", "increasing", "decreasing")
    }
    x0 = frame.iloc[data.draw(st.integers(0, len(frame) - 1))]
    table = Table(frame, **given_rules)
    place = table.place(x0, "PN")
    jump = np.array(data.draw(st.lists(st.floats(-1e5, 1e5), min_size=7, max_size=7)))
    w = place.legal(place.code + jump)
    after = place.perturbed(w)
    np.testing.assert_array_equal(place.legal(w), w)
    for name, rule in rules.items():
        if rule == "fixed":
            assert after[name] == x0[name]
        if rule == "increasing":
            assert after[name] >= x0[name]
        if rule == "decreasing":
            assert after[name] <= x0[name]
        assert min(frame[name].min(), x0[name]) <= after[name] <= max(frame[name].max(), x0[name])
    for name in ("housing", "purpose", "phone"):
        assert after[name] in set(frame[name])
    assert after["income"] % 100 == 0
    assert after["children"] == int(after["children"])


def test_a_value_that_no_reference_row_lacks_is_not_missing_in_x0():
    table = zm.Table({"age": [20, 30], "city": ["a", None]})
    with pytest.raises(ArgumentError, match="expected a value of age in x0, got a missing one, which no reference row"):
        table.place({"age": None, "city": "a"}, "PN")
    assert np.isnan(table.place({"age": 20, "city": None}, "PN").code[1])


def test_a_series_with_a_name_twice_is_refused():
    import pandas as pd

    row = pd.Series([20, 30, "a"], index=["age", "age", "city"])
    with pytest.raises(ArgumentError, match="expected x0 with different column names, got age more than once"):
        zm.Table({"age": [20, 30], "city": ["a", "b"]}).place(row, "PN")
