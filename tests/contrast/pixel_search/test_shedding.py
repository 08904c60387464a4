"""Parts undone together: of an additive margin the largest union that stays valid, within the queries."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.search_driver import Rows, drive, read_only
from zomirror.contrast.candidate import Goal
from zomirror.contrast.pixel_search.shedding import Counted, least, replaced, shed
from zomirror.problem import Box, ElasticNet

WEIGHTS = np.array([0.1, 0.1, 0.2, 0.3, 5.0, 0.1, 0.4, 0.2])
BOX = Box(np.zeros(8), np.ones(8))
GOAL = Goal(ElasticNet(1.0, 0.0), 0.0)


def margin(batch: Rows) -> Rows:
    return np.asarray(5.05 - batch @ WEIGHTS)


@pytest.mark.parametrize("allowed", [0, 3, 8, 20])
def test_what_is_not_needed_is_undone(allowed: int) -> None:
    start = GOAL.candidate(read_only(np.ones(8)), float(margin(np.ones((1, 8)))[0]))
    parts = [(np.array([i]), np.zeros(1)) for i in range(8)]
    found, asked = drive(shed(start, parts, GOAL, allowed), margin, BOX)
    assert len(asked) <= allowed
    assert found.valid
    assert found.margin == pytest.approx(float(margin(found.w[None])[0]))
    if allowed == 20:
        assert np.flatnonzero(found.w).tolist() == [4, 6], "the union of the six least important ones"


def test_parts_are_replaced_in_a_copy() -> None:
    w = read_only(np.ones(4))
    np.testing.assert_array_equal(replaced(w, [(np.array([0, 2]), np.array([3.0, 4.0]))]), [3, 1, 4, 1])
    np.testing.assert_array_equal(w, np.ones(4))


def test_the_least_margin_is_a_number() -> None:
    assert least(np.array([np.nan, 2.0, 1.0])) == 2


def test_points_are_counted() -> None:
    start = GOAL.candidate(np.ones(8), -1.0)
    counted = Counted(shed(start, [(np.array([0]), np.zeros(1))], GOAL, 5))
    _, asked = drive(counted.run(), margin, BOX)
    assert counted.asked == len(asked) == 1
