"""Columns: the legal codes are those that exist, and the nearest one is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zomirror.features.tabular.column import Column, snapped

NUMBERS = st.floats(-50, 50, allow_nan=False).map(lambda x: round(x, 3))


@st.composite
def columns(draw: st.DrawFn) -> tuple[Column, float]:
    """A column of any kind, and the code of a row in it."""
    kind = draw(st.sampled_from(["continuous", "integer", "ordinal", "binary", "categorical"]))
    missing = draw(st.booleans())
    if kind in ("continuous", "integer"):
        step = 1.0 if kind == "integer" else draw(st.sampled_from([0.0, 0.01, 0.1, 10.0]))
        low, high = sorted(snapped(np.array([draw(NUMBERS), draw(NUMBERS)]), step).tolist())
        column = Column("c", kind, low, high, None, step, unit=max(high - low, 1.0), missing=missing)
        own = draw(NUMBERS)  # on the grid or off it, inside or not
    else:
        count = 2 if kind == "binary" else draw(st.integers(1, 6))
        values = np.array(sorted(draw(st.sets(st.integers(0, count - 1), min_size=1))), np.float64)
        unit = float(max(count - 1, 1)) if kind == "ordinal" else 1.0
        column = Column("c", kind, values[0], values[-1], values, unit=unit, missing=missing)
        own = float(draw(st.sampled_from(range(count))))
    return column, float("nan") if draw(st.integers(0, 4)) == 0 else own


@given(columns(), st.booleans(), st.sampled_from([-1, 0, 1]), st.lists(NUMBERS, min_size=1, max_size=8), st.booleans())
def test_legal_codes_exist_keep_the_rules_and_are_nearest(case, fixed, direction, codes, gap):
    column, own = case
    mine = column.narrowed(own, fixed=fixed, direction=direction)
    given_codes = np.array([*codes, np.nan] if gap else codes)
    legal = mine.legal(given_codes, own)
    np.testing.assert_array_equal(mine.legal(legal, own), legal)  # what is legal stays
    np.testing.assert_array_equal(mine.legal(np.array([own]), own), [own])
    for code, near in zip(given_codes, legal, strict=True):
        if np.isnan(near):
            assert np.isnan(own) or mine.missing
            continue
        if fixed:
            assert near == own
        if not np.isnan(own):
            assert direction * (near - own) >= 0
            assert min(column.low, own) <= near <= max(column.high, own)
        if near != own:
            assert near in column.values if column.values is not None else snapped(np.array(near), column.step) == near
        if not np.isnan(code) and not fixed and direction == 0:
            exist = _exist(mine, own)
            assert abs(near - code) <= np.abs(exist - code).min() + 1e-9
    if np.isnan(own) and (fixed or not column.missing):
        assert np.isnan(legal).all()
        assert not mine.free


def _exist(column: Column, own: float) -> np.ndarray:
    """Some codes that exist, by brute force: all members, or the grid."""
    if column.values is not None:
        exist = column.values
    elif column.step:
        grid = snapped(np.arange(-60, 60, column.step), column.step)
        exist = grid[(grid >= column.low) & (grid <= column.high)]
    else:
        exist = np.linspace(column.low, column.high, 7)
    return exist if np.isnan(own) else np.append(exist, own)


@given(columns(), NUMBERS, NUMBERS, NUMBERS)
def test_the_distance_is_a_metric(case, a, b, c):
    column, _ = case

    def apart(x: float, y: float) -> float:
        return float(column.parts(np.array([x]), y)[0])

    for x in (a, float("nan")):
        assert apart(x, x) == 0.0
        assert apart(x, b) == apart(b, x)
        assert apart(x, c) <= apart(x, b) + apart(b, c) + (0.0 if x == a else 1.0) + 1e-12
    assert apart(float("nan"), a) == 1.0


def test_decimals_are_the_floats_that_a_person_writes():
    numbers = snapped(np.array([0.28999, 0.1 + 0.2, 1234.5678]), 0.01)
    assert numbers.tolist() == [0.29, 0.3, 1234.57]
    assert snapped(np.array([36_457.0]), 100.0).tolist() == [36_500.0]


def test_a_column_of_float32_holds_float32():
    column = Column("c", "continuous", 0.0, 1.0, single=True)
    near = column.legal(np.array([0.1]), 0.5)
    assert near[0] == np.float32(0.1)


@pytest.mark.parametrize(("low", "high", "free"), [(0.0, 1.0, True), (1.0, 1.0, False)])
def test_free_means_more_than_one_code(low, high, free):
    assert Column("c", "continuous", low, high).free is free
    assert Column("c", "continuous", low, high, missing=True).free
