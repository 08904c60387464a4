"""The named methods are the ones of the paper."""

from __future__ import annotations

import math
from typing import Any

import pytest

import zomirror as zm


def test_presets_are_what_they_are_called() -> None:
    two_point = zm.methods.TwoPoint
    assert zm.methods.zo_expmd(3.0) == zm.methods.MirrorDescent(
        zm.methods.Entropy(),
        two_point(200, zm.methods.rademacher, zm.methods.EntropyRadius()),
        zm.methods.Constant(3.0),
    )
    assert zm.methods.zo_ada_expmd() == zm.methods.MirrorDescent(
        zm.methods.Entropy(),
        two_point(200, zm.methods.rademacher, zm.methods.EntropyRadius()),
        zm.methods.Adaptive(c=2.0, first=1.0),
    )
    assert zm.methods.zo_psgd(3.0) == zm.methods.MirrorDescent(
        zm.methods.Euclidean(),
        two_point(200, zm.methods.gaussian, zm.methods.EuclideanRadius()),
        zm.methods.Constant(3.0),
    )
    assert zm.methods.zo_ada_psgd() == zm.methods.MirrorDescent(
        zm.methods.Euclidean(),
        two_point(200, zm.methods.gaussian, zm.methods.EuclideanRadius()),
        zm.methods.Adaptive(c=1.0, first=1.0),
    )


@pytest.mark.parametrize(
    "preset",
    [zm.methods.zo_ada_expmd(), zm.methods.zo_ada_psgd(), zm.methods.zo_expmd(1.0), zm.methods.zo_psgd(1.0)],
    ids=repr,
)
def test_presets_perturb_every_coordinate_and_do_not_clip(preset: zm.methods.MirrorDescent) -> None:
    assert isinstance(preset.estimator, zm.methods.TwoPoint)
    assert not preset.estimator.free_only
    assert not preset.estimator.clip


def test_options_arrive() -> None:
    method = zm.methods.zo_ada_expmd(20, c=1.0, radius=0.01)
    assert method == zm.methods.MirrorDescent(
        zm.methods.Entropy(), zm.methods.TwoPoint(20, zm.methods.rademacher, 0.01), zm.methods.Adaptive(1.0)
    )
    assert zm.methods.zo_ada_psgd(c=0.5).step == zm.methods.Adaptive(0.5)


@pytest.mark.parametrize(("iterations", "d"), [(1, 3), (200, 784), (1000, 10**6)])
def test_theorem_schedule(iterations: int, d: int) -> None:
    """m = 2 T e (2 ln d - 1), a whole number of directions at least that; nu = 1/(d sqrt T)."""
    batch_size, radius = zm.methods.theorem_schedule(iterations, d)
    exact = 2 * iterations * math.e * (2 * math.log(d) - 1)
    assert isinstance(batch_size, int)
    assert exact <= batch_size < exact + 1
    assert radius == pytest.approx(1 / (d * math.sqrt(iterations)), rel=1e-15)


def test_theorem_schedule_by_hand() -> None:
    schedule = zm.methods.theorem_schedule(200, 784)
    assert schedule.batch_size == 13406  # 400 e (2 ln 784 - 1) = 13405.4
    assert schedule.radius == pytest.approx(9.0191e-5, rel=1e-4)
    method = zm.methods.zo_ada_expmd(schedule.batch_size, radius=schedule.radius)
    assert method.estimator == zm.methods.TwoPoint(13406, zm.methods.rademacher, schedule.radius)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: zm.methods.theorem_schedule(0, 10), "expected iterations >= 1, got 0"),
        (lambda: zm.methods.theorem_schedule(10, 2), "expected d >= 3, got 2"),
        (lambda: zm.methods.theorem_schedule(10, 0), "expected d >= 1, got 0"),
        (lambda: zm.methods.zo_expmd(0), "expected eta > 0, got 0"),
        (lambda: zm.methods.zo_expmd(-2.0), "expected eta > 0, got -2.0"),
        (lambda: zm.methods.zo_psgd(-1), "expected eta > 0, got -1"),
        (lambda: zm.methods.zo_ada_expmd(0), "expected batch_size >= 1, got 0"),
        (lambda: zm.methods.zo_ada_expmd(c=-1), "expected c > 0, got -1"),
        (lambda: zm.methods.zo_ada_psgd(radius=0), "expected radius > 0, got 0"),
    ],
)
def test_wrong_numbers_are_refused_at_construction(make: Any, sentence: str) -> None:
    with pytest.raises(zm.errors.ArgumentError, match=sentence):
        make()
