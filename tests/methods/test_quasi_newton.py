"""Quasi-Newton steps on chosen coordinates: their algebra, the signs and sides they hold, and where they lead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.methods.quasi_newton import ALPHAS, CLOSE, PAIRS, Refinement, _lbfgs, aimed, begun
from zomirror.methods.query import Query, Segment

D = 30


def problem(box: zm.methods.Box | None = None, l1: float = 0.1, l2: float = 0.0) -> zm.methods.Problem:
    return zm.methods.Problem(
        D, np.dtype(np.float64), zm.methods.ElasticNet(l1, l2), zm.methods.Box() if box is None else box
    )


def test_the_two_loops_are_the_bfgs_matrix() -> None:
    """H = V^T H V + s s^T / <s, y>, V = I - y s^T / <s, y>, from the oldest pair to the latest."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(D, D))
    A = A @ A.T + np.eye(D)
    steps = rng.normal(size=(5, D))
    changes = steps @ A
    q = rng.normal(size=D)
    H = np.eye(D) * (steps[0] @ changes[0]) / (changes[0] @ changes[0])
    for s, y in zip(steps[::-1], changes[::-1], strict=True):
        V = np.eye(D) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(_lbfgs(q, steps, changes), H @ q, rtol=1e-10)


def test_the_largest_entries_are_chosen_and_the_zeros_that_would_move() -> None:
    x, w = np.zeros(D), np.zeros(D)
    x[[3, 8, 20]] = 1.0, -0.5, 1e-4
    w[[1, 3, 9]] = 0.05, 5.0, -0.3
    chosen = begun(Refinement.blank(10), x, w, problem())
    assert chosen.chosen[: chosen.count].tolist() == [3, 8, 9]
    every = begun(Refinement.blank(10), x, w, problem(), small=0.0)
    assert every.chosen[: every.count].tolist() == [3, 8, 9, 20], "small entries only where they are asked for"
    assert begun(Refinement.blank(10), np.zeros(D), np.zeros(D), problem()).count == 0
    most = begun(Refinement.blank(10), np.linspace(0.5, 1, D), np.full(D, 9.0), problem())
    assert most.count == 10
    assert set(range(D - 7, D)) <= set(most.chosen.tolist())


def test_fixed_coordinates_are_not_chosen() -> None:
    lower, upper = np.full(D, -1.0), np.full(D, 1.0)
    lower[[3, 5]] = upper[[3, 5]] = 0.7
    place = problem(zm.methods.Box(lower, upper))
    x = np.full(D, 0.7)
    chosen = begun(Refinement.blank(D), x, np.zeros(D - 2), place)
    assert not {3, 5} & set(chosen.chosen[: chosen.count].tolist())
    assert chosen.count == 21


def test_slopes_are_asked_inside_an_upper_bound_and_are_those_of_f() -> None:
    place = problem(zm.methods.Box(-1.0, 1.0))
    slope = np.random.default_rng(1).normal(size=D)
    x = np.where(np.arange(D) % 2, 1.0, 0.5)
    chosen = begun(Refinement.blank(D), x, np.zeros(D), place)
    query = chosen.slopes(x, 0.01, place)
    points = query.points()
    assert (points <= 1).all()
    _, slopes = aimed(chosen, x, points @ slope, place, query, 1.0)
    np.testing.assert_allclose(slopes, slope[chosen.chosen[: chosen.count]], rtol=1e-9)
    with pytest.raises(ArgumentError, match="slopes"):
        aimed(chosen, x, points @ slope, place, Query((Segment(x, 1), Segment(x, 21))), 1.0)


def test_a_line_holds_signs_and_sides() -> None:
    place = problem(zm.methods.Box(-1.0, 1.0))
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, D)
    x[::5] = 0.0
    chosen = begun(Refinement.blank(D), x, np.full(D, 1.0), place)
    direction = 3 * rng.normal(size=D)
    chosen = replace(chosen, place=x[chosen.chosen], direction=direction)
    rows = chosen.line(x, place).points()
    assert len(rows) == len(ALPHAS)
    assert (np.abs(rows) <= 1).all()
    assert (rows * x >= 0).all(), "no entry changes its sign"
    assert (rows[0] == 0).sum() > 0, "an entry that would stops at zero"
    off = np.setdiff1d(np.arange(D), chosen.chosen[: chosen.count])
    assert (rows[:, off] == x[off]).all()


def test_a_first_direction_is_tried_shorter_until_it_is_close_to_x() -> None:
    blank = Refinement.blank(4)
    long = replace(blank, direction=np.array([0.1, -0.2, 0.0, 0.0]))
    shorter = long.shorter(1.0)
    assert shorter is not None
    np.testing.assert_allclose(shorter.direction, min(ALPHAS) * long.direction)
    assert replace(long, pairs=1).shorter(1.0) is None, "L-BFGS knows how far to look"
    assert long.shorter(0.21 / CLOSE) is None


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_rounds_on_a_quadratic_lead_to_its_minimum(l1: float) -> None:
    """Ill-conditioned: thirty rounds gain all but a thousandth of what there is, and never lose anything."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(D, D)) * np.logspace(0, -1, D)
    A = A @ A.T / D + 0.02 * np.eye(D)
    b = A @ np.where(np.arange(D) % 3, 0.0, 1.0)
    place, L = problem(l1=l1), float(np.linalg.norm(A, 2))

    def total(points: Any) -> Any:
        return 0.5 * np.einsum("ij,jk,ik->i", points, A, points) - points @ b + l1 * np.abs(points).sum(axis=1)

    ista = np.zeros(D)
    for _ in range(5000):
        z = ista - (A @ ista - b) / L
        ista = np.sign(z) * np.maximum(np.abs(z) - l1 / L, 0)
    least = float(total(ista[None])[0])
    x: Any = np.where(np.arange(D) % 3, 0.1, 0.5)
    r = begun(Refinement.blank(D), x, np.ones(D), place)
    totals = []
    for _ in range(30):
        query = r.slopes(x, 1e-6, place)
        points = query.points()
        r, _ = aimed(r, x, total(points) - l1 * np.abs(points).sum(axis=1), place, query, 1.0)
        totals.append(r.total)
        rows = r.line(x, place).points()
        after = total(rows)
        if after.min() < r.total:
            x = rows[int(np.argmin(after))]
    assert r.count == D
    assert (np.diff(totals) <= 1e-12).all()
    assert r.pairs == PAIRS
    assert totals[-1] - least < 1e-3 * (totals[0] - least)


def test_the_default_polishes_a_curved_valley() -> None:
    """200 rows of a sigmoid loss: what the descent alone has not reached after 20,000 queries."""
    rng = np.random.default_rng(200)
    model = np.zeros(100)
    on = rng.choice(100, 10, replace=False)
    model[on] = 2.0 * rng.choice([-1, 1], 10)
    rows = rng.standard_normal((200, 100))
    rows *= np.sign(rows @ model + 0.1 * rng.standard_normal(200))[:, None]

    def f(points: Any) -> Any:
        return (1 / (1 + np.exp(points @ rows.T))).mean(axis=1)

    result = zm.minimize(f, np.zeros(100), l1=0.005, budget=6000, rng=0)
    assert result.fun < 0.16326
    longer = zm.minimize(f, np.zeros(100), l1=0.005, budget=12_000, rng=0)
    x, h = longer.x, 1e-6
    slope = (f(x + h * np.eye(100)) - f(x - h * np.eye(100))) / (2 * h)
    off = np.where(x == 0, np.maximum(np.abs(slope) - 0.005, 0), slope + 0.005 * np.sign(x))
    assert np.abs(off).max() < 1e-5, "what the descents that came to nothing have left is mended to the end"
    surveyed = zm.methods.Surveyed(zm.methods.zo_group_expmd(batch_size=20, floor=0.005), refined=0)
    assert result.fun < zm.minimize(f, np.zeros(100), l1=0.005, budget=6000, rng=0, method=surveyed).fun
