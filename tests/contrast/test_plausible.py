"""What makes a row plausible: rows, or a function of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.contrast.plausible import BatchCost, NearRows, as_plausible
from zomirror.errors import ArgumentError, ArgumentTypeError

TABLE = zm.Table({"a": list(range(10)), "b": [float(i) for i in range(0, 100, 10)]})


def model(frame: Any) -> Any:
    total = np.asarray(frame["a"], float) + np.asarray(frame["b"], float) / 10 - 9
    return np.stack((-total, total), axis=1)


def changes_b(frame: Any) -> Any:
    return np.abs(np.asarray(frame["b"], float) - 20) / 10


@dataclass(frozen=True)
class Named:
    weight: float

    def __call__(self, frame: Any) -> Any:
        return self.weight * changes_b(frame)


@pytest.mark.parametrize("cost", [changes_b, Named(1.0), lambda frame: changes_b(frame)])
def test_a_function_decides_which_column_changes(cost: Any, tmp_path) -> None:
    """a and b are alike for the model; what makes b implausible leaves only a, unless its weight is 0."""
    x0, asked = {"a": 2, "b": 20.0}, 0

    def counted(frame: Any) -> Any:
        nonlocal asked
        asked += len(frame["a"])
        return model(frame)

    e = zm.explain(counted, x0, features=TABLE, plausible=cost, run_dir=tmp_path / "run")
    assert asked == e.nfev  # calls of the function are none of the model
    assert [change.name for change in e.changes] == ["a"]
    again = zm.explain(counted, x0, features=TABLE, plausible=cost, run_dir=tmp_path / "run")
    assert asked == e.nfev
    assert again.perturbed == e.perturbed
    assert zm.Explanation.from_json(e.to_json()).settings["plausible"] == e.settings["plausible"]


def test_a_function_is_recorded_by_its_repr_or_its_name() -> None:
    assert "weight=2.0" in BatchCost(Named(2.0)).record()
    assert BatchCost(changes_b).record() == f"{__name__}.changes_b"


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (lambda frame: -changes_b(frame) - 1, ArgumentError, "to return 1 numbers >= 0, one for each row, got -"),
        (lambda frame: np.ones(3), ArgumentError, r"one for each row, got shape \(3,\)"),
        (3, ArgumentTypeError, "expected plausible to be True, rows or a function of a batch"),
        ({"a": [1]}, ArgumentError, "expected plausible with the columns of the table, got none named 'b'"),
    ],
)
def test_what_is_wrong_with_it_is_said_before_the_first_query(given: Any, error: Any, said: str) -> None:
    def unasked(frame: Any) -> Any:
        raise AssertionError

    with pytest.raises(error, match=said):
        zm.explain(unasked, {"a": 2, "b": 20.0}, features=TABLE, plausible=given)


def test_rows_are_those_of_the_table_or_the_given_ones() -> None:
    own = as_plausible(True, TABLE)
    assert isinstance(own, NearRows)
    np.testing.assert_array_equal(own.codes, TABLE.reference)
    given = as_plausible({"b": [5.0], "a": [1]}, TABLE)
    assert isinstance(given, NearRows)
    np.testing.assert_array_equal(given.codes, [[1.0, 5.0]])
    assert own.record() != given.record()
    assert as_plausible(False, TABLE) is as_plausible(None, TABLE) is None
