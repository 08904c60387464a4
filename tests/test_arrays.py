"""Sums that are kept: only of points that nobody can change, and never of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zomirror.arrays import KEPT, norm1, norm2, sums


def frozen(values: Any) -> Any:
    point = np.array(values, float)
    point.flags.writeable = False
    return point


def test_kept_sums_are_those_of_these_points() -> None:
    points = [frozen([i, -2.0 * i, 0.5]) for i in range(6)]
    for _ in range(3):
        for i, x in enumerate(points):
            assert sums(x) == (3 * i + 0.5, 5 * i**2 + 0.25)
            for j, y in enumerate(points):
                assert norm1(x, y) == 3 * abs(i - j)
                assert norm2(x, y) == pytest.approx(5**0.5 * abs(i - j))


def test_points_that_may_change_are_summed_anew() -> None:
    x = np.ones(4)
    assert sums(x) == (4.0, 4.0)
    x[0] = 3.0
    assert sums(x) == (6.0, 12.0)
    view = x[:]
    view.flags.writeable = False  # and x can still be written to
    assert sums(view) == (6.0, 12.0)
    x[0] = 0.0
    assert sums(view) == (3.0, 3.0)
    y = frozen([1.0, 1.0])
    assert sums(y, frozen([0.0, 0.0])) == (2.0, 2.0)
    assert sums(y) == (2.0, 2.0)
    y.flags.writeable = True
    y[0] = 5.0
    assert sums(y) == (6.0, 26.0)


def test_large_points_are_not_kept_alive() -> None:
    import weakref

    small, large = frozen(np.ones(3)), frozen(np.ones(KEPT + 1))
    sums(small)
    sums(large)
    gone = weakref.ref(large)
    del large
    assert gone() is None
