"""Noisy descents that no longer fall: how that is told, where they go on from, and that they end nearer the minimum."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.methods.averaging import SPAN, Stretch
from zomirror.methods.survey import Findings

D = 30


def met(totals: Any, points: Any = None) -> Stretch:
    """A stretch of these values of F."""
    stretch = Stretch.blank(np.zeros(D))
    for k, total in enumerate(totals):
        stretch = stretch.met(np.zeros(D) if points is None else points[k], float(total))
    return stretch


@pytest.mark.parametrize("level", [0.0, 1e6])
def test_f_falls_where_the_line_through_its_values_does(level: float) -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(50):
        totals = level - 10 + rng.normal(size=40)
        slope = np.polyfit(np.arange(40), totals - level, 1)[0]
        assert met(totals).settled(level - 1.0) == (slope >= 0)
        seen.add(slope >= 0)
    assert seen == {True, False}


def test_the_mean_is_that_of_the_points_and_of_this_stretch_alone() -> None:
    points = np.random.default_rng(1).normal(size=(90, D))
    first = met(np.zeros(50), points[:50])
    np.testing.assert_allclose(first.mean, points[:50].mean(axis=0), atol=1e-12)
    second = first.next(longer=True)
    assert (second.steps, second.span) == (0, 2 * SPAN)
    assert first.next(longer=False).span == SPAN
    for point in points[50:]:
        second = second.met(point, 3.0)
    np.testing.assert_allclose(second.mean, points[50:].mean(axis=0), atol=1e-12)
    assert second.first == 3.0


def test_a_plain_that_nobody_has_left_is_not_rest() -> None:
    flat = met(np.full(SPAN, 5.0))
    assert flat.over
    assert not flat.settled(4.9), "not below its start"
    assert flat.settled(5.1)
    assert not met(np.zeros(SPAN - 1)).over


def target() -> Any:
    x = np.zeros(D)
    x[:5] = 1.0, -0.5, 0.7, -1.5, 2.0
    return x


def noisy(seed: int, sd: float = 1e-3) -> Any:
    rng = np.random.default_rng(seed)
    return lambda X: 0.5 * np.square(X - target()).sum(axis=1) + sd * rng.normal(size=len(X))


def found(state: zm.methods.State) -> Findings:
    """What the surveys of the current descent have found."""
    findings: Findings = state.memory.current.state.memory
    return findings


def test_a_settled_descent_goes_on_from_the_mean_with_half_the_step() -> None:
    optimizer = zm.Optimizer(np.zeros(D), l1=0.02, bounds=(-2, 2), rng=0)
    f, jumps = noisy(0), 0
    while optimizer.nfev < 12_000:
        before = optimizer.state
        optimizer.tell(f(optimizer.ask()))
        old, new = found(before).stretch, found(optimizer.state).stretch
        if new.span > old.span:
            jumps += 1
            assert optimizer.x.tobytes() == old.mean.tobytes()
            assert found(optimizer.state).descent.pace == 2 * found(before).descent.pace
            assert (new.steps, new.span) == (0, 2 * old.span)
    assert jumps >= 1


def test_without_noise_there_is_nothing_to_settle() -> None:
    optimizer = zm.Optimizer(np.zeros(D), l1=0.02, bounds=(-2, 2), rng=0)
    while optimizer.nfev < 6_000:
        optimizer.tell(noisy(0, 0.0)(optimizer.ask()))
        assert found(optimizer.state).stretch.steps == 0


def test_a_noisy_quadratic_ends_nearer_its_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    def above(seed: int) -> float:
        x = zm.minimize(noisy(seed), np.zeros(D), l1=0.02, bounds=(-2, 2), budget=20_000, rng=seed).x
        least = 5 * 0.02**2 / 2 + 0.02 * (np.abs(target()).sum() - 5 * 0.02)
        return float(0.5 * np.square(x - target()).sum() + 0.02 * np.abs(x).sum() - least)

    settled = [above(seed) for seed in range(5)]
    monkeypatch.setattr(Stretch, "over", False)
    assert statistics.median(settled) < 0.5 * statistics.median(above(seed) for seed in range(5))
