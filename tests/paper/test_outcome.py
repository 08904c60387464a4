"""Outcomes: at which steps F is kept, and what is refused."""

from __future__ import annotations

import math

import pytest

from tests.support.experiments import falling, made
from zomirror.errors import DataError
from zomirror.paper.outcome import RunOutcome, steps


def test_steps_are_dense_first_and_end_with_the_last() -> None:
    assert steps(3) == (0, 1, 2, 3)
    assert steps(200)[:52] == (*range(51), 55)
    assert steps(200)[-1] == 200
    assert {25, 50, 100, 150, 200} <= set(steps(200))


def test_a_short_or_wild_curve_is_refused() -> None:
    whole = made("adaexpmd", falling(0.1)).to_dict()
    for fun in (whole["fun"][:-1], [*whole["fun"][:-1], math.nan], [*whole["fun"][:-1], "x"], None):
        with pytest.raises(DataError, match="expected"):
            RunOutcome.from_dict(whole | {"fun": fun})
