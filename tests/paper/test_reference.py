"""Directions of another implementation: those of a plain loop over numpy's generator, whatever rows are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.optimizer import Optimizer
from zomirror.paper.reference import Replayed, replayed


@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 9),
    count=st.integers(1, 5),
    t=st.integers(0, 4),
    start=st.integers(0, 4),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_any_rows_are_those_of_the_loop(seed: int, d: int, count: int, t: int, start: int, dtype: Any) -> None:
    draw = np.random.default_rng(seed)
    drawn = [2 * draw.integers(0, 2, (count, d)) - 1 for _ in range(t + 1)][t]
    start = min(start, count - 1)
    out = np.empty((count - start, d), dtype)
    Replayed(seed, count).fill(out, (1, 2), t, start, 0.5)
    assert (out == 0.5 * drawn[start:]).all()


def test_a_method_asks_what_the_loop_asks() -> None:
    method = replayed(zm.methods.zo_ada_expmd(4, radius=0.25), 7)
    optimizer = Optimizer(np.zeros(5), l1=0.1, method=method, rng=0)
    draw = np.random.default_rng(7)
    for _ in range(3):
        x, points = optimizer.x, optimizer.ask()
        assert (points[1:] == x + 0.25 * (2 * draw.integers(0, 2, (4, 5)) - 1)).all()
        optimizer.tell(np.square(points - 1).sum(axis=1))
    assert optimizer.x.any()


@pytest.mark.parametrize("method", [zm.methods.zo_group_expmd(), zm.methods.zo_psgd(10.0)], ids=["groups", "normal"])
def test_only_two_point_differences_with_signs_have_such_directions(method: zm.methods.MirrorDescent) -> None:
    with pytest.raises(ArgumentError, match="two-point differences and random signs"):
        replayed(method, 7)
