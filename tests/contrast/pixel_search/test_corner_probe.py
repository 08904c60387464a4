"""The probe at full contrast: a first point, then fewer pixels and smaller changes, within the queries."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contrast.pixel_search.test_pixel import placed
from tests.support.search_driver import Rows, drive, read_only
from zomirror.contrast.candidate import Goal
from zomirror.contrast.pixel_search.corner_probe import fewer, first, smaller
from zomirror.contrast.pixel_search.pixel import Pixels
from zomirror.numerics.random import Draws, key_of
from zomirror.problem import ElasticNet

PLACE = placed((1, 10, 10))
PIXELS = Pixels.of(PLACE)
GOAL = Goal(ElasticNet(1.0, 0.0), 0.0, pixels=PIXELS.size)


def two_needed(batch: Rows) -> Rows:
    """Adversarial where pixels 7 and 42 both change by more than 0.2."""
    return np.asarray(0.2 - np.minimum(np.abs(batch[:, 7]), np.abs(batch[:, 42])))


@pytest.mark.parametrize("allowed", [1, 3, 9])
def test_the_first_points_have_more_and_more_pixels(allowed: int) -> None:
    origin = read_only(np.zeros(100))
    found, asked = drive(first(PIXELS, origin, GOAL, Draws(key_of(0)), allowed), lambda w: np.ones(len(w)), PLACE.box)
    assert [PIXELS.size(w) for w in asked] == [50, 50, 100, 100, 100, 100, 100, 100, 100][:allowed]
    assert not found.valid
    found, asked = drive(first(PIXELS, origin, GOAL, Draws(key_of(0)), 9), lambda w: -np.ones(len(w)), PLACE.box)
    assert found.valid
    assert len(asked) == 1


@pytest.mark.parametrize("allowed", [1, 10, 200])
def test_only_the_needed_pixels_are_left(allowed: int) -> None:
    w = PIXELS.painted(np.zeros(100), np.arange(100), PIXELS.corners(np.arange(100), Draws(key_of(0))))
    start = GOAL.candidate(read_only(w), float(two_needed(w[None])[0]))
    found, asked = drive(fewer(PIXELS, start, GOAL, Draws(key_of(0)), allowed), two_needed, PLACE.box)
    assert len(asked) <= allowed
    assert found.valid
    if allowed == 200:
        assert np.flatnonzero(found.w).tolist() == [7, 42]
        less, _ = drive(smaller(PLACE, found, GOAL, 50), two_needed, PLACE.box)
        assert less.valid
        assert np.abs(less.w).sum() < 0.7 * np.abs(found.w).sum()


def test_a_patient_probe_goes_on_with_squares() -> None:
    origin = read_only(np.zeros(100))

    def corner(batch: Rows) -> Rows:
        """Adversarial where a whole corner of 4 x 4 pixels is white."""
        white = np.isclose(batch, PIXELS.upper).reshape(-1, 10, 10)
        return np.where(white[:, :4, :4].all(axis=(1, 2)), -1.0, 1.0)

    found, asked = drive(first(PIXELS, origin, GOAL, Draws(key_of(0)), 60, patient=True), corner, PLACE.box)
    assert found.valid
    assert 9 < len(asked) <= 60
    hasty, asked = drive(first(PIXELS, origin, GOAL, Draws(key_of(0)), 60), corner, PLACE.box)
    assert not hasty.valid
    assert len(asked) == 9
