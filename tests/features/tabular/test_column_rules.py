"""Rules of one column; those that a user meets are tested in test_table.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zomirror.errors import ArgumentError
from zomirror.features.tabular.column import Column, snapped
from zomirror.features.tabular.column_rules import (
    allowed_codes,
    as_step,
    decimals,
    inwards,
    sides,
    sort_key,
    tens,
    typical,
)


@given(st.integers(0, 6), st.lists(st.integers(-9999, 9999), min_size=1, max_size=30))
def test_the_decimals_of_all_numbers_are_found(places, counts):
    there = np.array(counts) / 10.0**places
    step = decimals(there, single=False)
    assert step >= 10.0**-places * (1 - 1e-12)
    np.testing.assert_array_equal(snapped(there, step), there)


def test_numbers_without_a_grid():
    assert decimals(np.array([np.pi, 1.0]), single=False) == 0.0
    assert decimals(np.array([0.5]), single=True) == 0.0
    assert tens(np.arange(30, dtype=np.float64) * 200) == 100.0
    assert tens(np.arange(19, dtype=np.float64) * 100) == 1.0


@given(st.floats(-50, 50), st.floats(0, 20), st.sampled_from([0.01, 0.1, 1.0, 10.0]))
def test_bounds_move_inwards_to_the_grid(low, width, step):
    high = low + width
    least, largest = inwards(low, high, step)
    assert low <= least <= largest <= high
    if (least, largest) != (low, high):
        np.testing.assert_array_equal(snapped(np.array([least, largest]), step), [least, largest])


def test_typical_values_exist():
    number = Column("n", "integer", 0, 9, step=1.0)
    assert typical(number, np.array([1.0, 2.0, 7.0, 9.0, np.nan])) == 2.0
    assert np.isnan(typical(number, np.array([np.nan])))
    category = Column("c", "categorical", 0, 2, np.arange(3.0))
    assert typical(category, np.array([0.0, 2.0, 2.0])) == 2.0


def test_sides_steps_and_orders():
    assert sides("a", (None, 5), 1.0, 9.0) == (1.0, 5.0)
    assert as_step("a", 0.25) == 0.25
    assert as_step("a", 0) == 0.0
    with pytest.raises(ArgumentError, match="one over a whole number"):
        as_step("a", 0.3)
    assert allowed_codes("a", ("lo", None), ("lo", "mid", "hi"), ranked=True).tolist() == [0.0, 1.0, 2.0]
    assert allowed_codes("a", ["hi", "lo"], ("lo", "mid", "hi"), ranked=True).tolist() == [0.0, 2.0]
    assert sorted(["b", 2, True, "a", 1.5], key=sort_key) == [True, 1.5, 2, "a", "b"]
