"""Values for each entry, channel or all, and features of an array that is no picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.schema.feature_space import features_of, like, normalised, space_of

PICTURE = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("values", "shape"),
    [([5.0], ()), ([1.0, 2.0], (2, 1, 1)), ([1.0, 2.0, 3.0, 4.0], (4,)), (list(range(24)), (2, 3, 4))],
)
def test_values_are_those_of_all_of_a_channel_or_of_an_entry(values: Any, shape: tuple[int, ...]) -> None:
    expected = np.broadcast_to(np.array(values, float).reshape(shape), PICTURE.shape)
    np.testing.assert_array_equal(like(values, PICTURE), expected)


def test_other_counts_are_refused() -> None:
    with pytest.raises(ArgumentError, match="expected mean and std with one number"):
        like([1.0, 2.0, 3.0, 4.0, 5.0], PICTURE)


def test_normalised_is_the_formula() -> None:
    np.testing.assert_array_equal(normalised(PICTURE, [2.0], [4.0]), (PICTURE - 2) / 4)
    assert normalised(PICTURE, None, None) is PICTURE


def test_indices_fix_entries_of_an_array_that_is_no_picture() -> None:
    x0 = np.zeros(3)
    found = features_of("vector", {"fixed": [True, False, True], "signed": True}, x0=x0)
    assert isinstance(found, zm.Vector)
    assert found.signed
    np.testing.assert_array_equal(np.asarray(found.fixed), [True, False, True])
    assert found.place(x0, "PN").free == 1


def test_the_choice_of_regions_decides_the_space_of_a_picture() -> None:
    assert [space_of({"regions": one}, "regions") for one in ("grid", "pixels", None)] == [
        "regions",
        "vector",
        "regions",
    ]
    assert space_of({"regions": "superpixels"}, "vector") == "regions"
    assert space_of({}, "table") == "table"
