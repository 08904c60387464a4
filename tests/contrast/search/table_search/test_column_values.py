"""The levels of a column: legal, on both sides, and behind every split."""

from __future__ import annotations

import numpy as np
import pytest

from zomirror.contrast.search.table_search.column_values import axis_of, fine, spread
from zomirror.features.tabular.column import Column

WHOLE = Column("age", "integer", 18.0, 75.0, step=1.0, unit=57.0)
ANY = Column("rate", "continuous", 0.0, 1.0, unit=1.0)
CITY = Column("city", "categorical", 0.0, 3.0, np.arange(4.0))


@pytest.mark.parametrize(("column", "own"), [(WHOLE, 30.0), (ANY, 0.37), (CITY, 2.0)])
def test_levels_are_legal_and_leave_out_the_value_of_x0(column: Column, own: float) -> None:
    axis = axis_of(0, column, own, np.linspace(column.low, column.high, 50))
    assert axis is not None
    np.testing.assert_array_equal(axis.codes, column.legal(axis.codes, own))
    assert own not in axis.codes
    np.testing.assert_array_equal(axis.sizes, column.parts(axis.codes, own))
    side, tau = axis.places(np.append(axis.codes, own))
    np.testing.assert_array_equal(side, np.append(axis.side, 0))
    np.testing.assert_allclose(tau, np.append(axis.tau, 0.0), atol=1e-12)


def test_all_whole_numbers_and_all_other_categories_are_levels() -> None:
    ages, cities = axis_of(0, WHOLE, 30.0, np.arange(18.0, 76.0)), axis_of(0, CITY, 2.0, np.arange(4.0))
    assert ages is not None
    assert cities is not None
    assert sorted(ages.codes) == [i for i in range(18, 76) if i != 30]
    assert sorted(cities.codes) == [0.0, 1.0, 3.0]
    assert len(fine(cities)) == 3


def test_neighbouring_levels_of_a_number_differ_by_less_than_one_per_cent() -> None:
    axis = axis_of(0, ANY, 0.37, np.linspace(0, 1, 50))
    assert axis is not None
    for side in (-1, 1):
        sizes = np.sort(axis.sizes[axis.side == side])
        assert (np.diff(sizes) <= 0.012 * sizes[1:]).all()
        assert sizes[0] <= 1.1e-5
        assert (np.diff(axis.tau[axis.side == side]) >= 0).all()


@pytest.mark.parametrize("step", [0.0, 0.1])
def test_one_level_lies_behind_each_split(step: float) -> None:
    splits = np.array([0.12, 0.5, 0.55, 0.93])
    column = Column("rate", "continuous", 0.0, 1.0, step=step, unit=1.0, thresholds=splits)
    axis = axis_of(0, column, 0.6, np.linspace(0, 1, 50))
    assert axis is not None
    intervals = set(np.searchsorted(splits, axis.codes).tolist())
    reachable = {0, 1, 4} | ({2} if step == 0.0 else set())
    assert intervals == reachable | ({3} & intervals)
    assert len(axis.codes) <= len(splits) + 1


def test_a_fixed_column_has_no_axis_and_a_directed_one_a_single_side() -> None:
    assert axis_of(0, WHOLE.narrowed(30.0, fixed=True), 30.0, np.arange(18.0, 76.0)) is None
    rising = axis_of(0, WHOLE.narrowed(30.0, direction=1), 30.0, np.arange(18.0, 76.0))
    assert rising is not None
    assert rising.codes.min() == 31.0
    assert set(rising.codes[spread(rising, 4)]) <= set(rising.codes)
