"""Exchanging pixels: the few that matter are found, never more than before, within the queries."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contrast.pixel_search.test_corner_probe import GOAL, PIXELS, PLACE
from tests.support.search_driver import Rows, drive, read_only
from zomirror.contrast.pixel_search.exchange import brought, exchanged
from zomirror.numerics.random import Draws, key_of

WEIGHTS = np.full(100, 0.3)
WEIGHTS[[13, 14, 24]] = 3.0


def hidden(batch: Rows) -> Rows:
    """Three pixels weigh ten times as much as the others."""
    return np.asarray(4.0 - np.abs(batch) @ WEIGHTS)


@pytest.mark.parametrize(("limit", "allowed"), [(1, 7), (1, 1_500), (5, 1_500)])
def test_fewer_pixels_suffice_when_they_are_the_right_ones(limit: int, allowed: int) -> None:
    w = PIXELS.painted(np.zeros(100), np.arange(40, 90), PIXELS.corners(np.arange(40, 90), Draws(key_of(0))))
    start = GOAL.candidate(read_only(w), float(hidden(w[None])[0]))
    assert start.valid
    found, asked = drive(exchanged(PIXELS, start, GOAL, Draws(key_of(0)), allowed, limit), hidden, PLACE.box)
    assert len(asked) <= allowed
    assert found.valid
    assert found.margin == pytest.approx(float(hidden(found.w[None])[0]))
    if allowed > 100:
        assert PIXELS.size(found.w) <= max(limit, 3)


def test_an_invalid_point_is_brought_across_with_as_many_pixels() -> None:
    w = PIXELS.painted(np.zeros(100), np.arange(40, 44), PIXELS.corners(np.arange(40, 44), Draws(key_of(0))))
    start = GOAL.candidate(read_only(w), float(hidden(w[None])[0]))
    found, asked = drive(brought(PIXELS, start, GOAL, Draws(key_of(0)), 800), hidden, PLACE.box)
    assert found.valid
    assert PIXELS.size(found.w) == 4
    assert all(PIXELS.size(one) == 4 for one in asked)
