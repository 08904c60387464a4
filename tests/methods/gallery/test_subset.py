"""Sparse directions: their moments, and how many coordinates each one moves."""

from __future__ import annotations

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.testing import check_directions


@pytest.mark.parametrize("directions", [zm.methods.Subset(0.5), zm.methods.Subset(0.4, normalised=True)], ids=str)
def test_they_keep_the_promises_of_directions(directions: zm.methods.Subset) -> None:
    check_directions(directions)


def test_each_direction_moves_its_own_part() -> None:
    rows = np.empty((50, 100))
    zm.methods.Subset(0.07).fill(rows, (1, 2), 3, 0, 2.0)
    assert (np.count_nonzero(rows, axis=1) == 7).all()
    assert np.count_nonzero(rows.any(axis=0)) > 90
    zm.methods.Subset(0.07, normalised=True).fill(rows, (1, 2), 3, 0, 2.0)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 2.0)


def test_all_coordinates_are_the_plain_directions() -> None:
    rows, plain = np.empty((4, 30)), np.empty((4, 30))
    zm.methods.Subset(1.0).fill(rows, (1, 2), 3, 5, 0.5)
    zm.methods.gaussian.fill(plain, (1, 2), 3, 5, 0.5)
    np.testing.assert_array_equal(rows, plain)


def test_a_share_above_one_is_refused() -> None:
    with pytest.raises(ArgumentError, match="expected share <= 1"):
        zm.methods.Subset(1.5)
