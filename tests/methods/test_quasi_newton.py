"""Quasi-Newton steps on chosen coordinates: their algebra, the signs and sides they hold, and where they lead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.methods.quasi_newton import ALPHAS, CLOSE, PAIRS, Refinement, _lbfgs, aimed, chosen, sloped
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
    inverse = rng.uniform(0.5, 2.0, D)
    H = np.diag(inverse) * (steps[0] @ changes[0]) / (changes[0] @ (inverse * changes[0]))
    for s, y in zip(steps[::-1], changes[::-1], strict=True):
        V = np.eye(D) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(_lbfgs(q, steps, changes, inverse), H @ q, rtol=1e-10)


def test_the_largest_entries_are_chosen_and_the_zeros_that_would_move() -> None:
    x, w = np.zeros(D), np.zeros(D)
    x[[3, 8, 20]] = 1.0, -0.5, 1e-4
    w[[1, 3, 9]] = 0.05, 5.0, -0.3
    r = chosen(Refinement.blank(10), x, w, problem(), 10)
    assert r.chosen[: r.count].tolist() == [3, 8, 9]
    every = chosen(Refinement.blank(10), x, w, problem(), 10, small=0.0)
    assert every.chosen[: every.count].tolist() == [3, 8, 9, 20], "small entries only where they are asked for"
    assert chosen(Refinement.blank(10), np.zeros(D), np.zeros(D), problem(), 10).count == 0
    most = chosen(Refinement.blank(D), np.linspace(0.5, 1, D), np.full(D, 9.0), problem(), 10)
    assert most.count == 10
    assert set(range(D - 7, D)) <= set(most.chosen.tolist())


def test_without_l1_the_steepest_coordinates_are_chosen() -> None:
    w = np.random.default_rng(4).normal(size=D)
    r = chosen(Refinement.blank(12), np.ones(D), w, problem(l1=0.0), 3)
    assert set(r.chosen.tolist()) == set(np.argsort(-np.abs(w))[:12].tolist())


def test_fixed_coordinates_are_not_chosen() -> None:
    lower, upper = np.full(D, -1.0), np.full(D, 1.0)
    lower[[3, 5]] = upper[[3, 5]] = 0.7
    place = problem(zm.methods.Box(lower, upper))
    x = np.full(D, 0.7)
    r = chosen(Refinement.blank(D), x, np.zeros(D - 2), place, D)
    assert not {3, 5} & set(r.chosen[: r.count].tolist())
    assert r.count == 21


@pytest.mark.parametrize("central", [False, True])
def test_slopes_are_asked_inside_the_box_and_are_those_of_f(central: bool) -> None:
    place = problem(zm.methods.Box(-1.0, 1.0))
    rng = np.random.default_rng(1)
    slope, bend = rng.normal(size=D), rng.normal(size=D) if central else np.zeros(D)
    x = np.where(np.arange(D) % 2, 1.0, np.where(np.arange(D) % 4, 0.5, -1.0))
    r = chosen(Refinement.blank(D), x, np.zeros(D), place, D)
    query = r.slopes(x, 0.01, place, central=central)
    points = query.points()
    assert len(points) == 1 + r.count * (2 if central else 1)
    assert (np.abs(points) <= 1).all()
    slopes, bends = sloped(r, points @ slope + 0.5 * np.square(points - x) @ bend, query)
    on = r.chosen[: r.count]
    np.testing.assert_allclose(slopes, slope[on], rtol=1e-9)
    np.testing.assert_allclose(bends, bend[on], atol=1e-9)
    with pytest.raises(ArgumentError, match="slopes"):
        sloped(r, points @ slope, Query((Segment(x, 1), Segment(x, 21))))


def test_known_curvatures_solve_a_separable_quadratic_in_one_step() -> None:
    """The full step is the soft-thresholding step: entries stop at zero, and end at the sides of the box."""
    rng = np.random.default_rng(5)
    bend, centre = rng.uniform(0.1, 10.0, D), rng.normal(size=D)
    place = problem(zm.methods.Box(-1.0, 1.0), l1=0.2)
    r = replace(Refinement.blank(D).taking(np.arange(D)), bends=bend)
    x = np.zeros(D)
    r = aimed(r, x, 0.0, -bend * centre, bend, place, 100.0)
    step = np.sign(centre) * np.maximum(np.abs(centre) - 0.2 / bend, 0)
    np.testing.assert_allclose(r.line(x, place).points()[0], np.clip(step, -1, 1), rtol=1e-12)


def test_without_l1_a_step_may_change_signs() -> None:
    r = replace(Refinement.blank(D).taking(np.arange(D)), place=np.ones(D), direction=np.full(D, -3.0))
    assert (r.line(np.ones(D), problem(l1=0.0)).points()[0] == -2.0).all()
    assert (r.line(np.ones(D), problem(l1=0.1)).points()[0] == 0.0).all()


def test_a_line_holds_signs_and_sides() -> None:
    place = problem(zm.methods.Box(-1.0, 1.0))
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, D)
    x[::5] = 0.0
    r = chosen(Refinement.blank(D), x, np.full(D, 1.0), place, D)
    direction = 3 * rng.normal(size=D)
    r = replace(r, place=x[r.chosen], direction=direction)
    rows = r.line(x, place).points()
    assert len(rows) == len(ALPHAS)
    assert (np.abs(rows) <= 1).all()
    assert (rows * x >= 0).all(), "no entry changes its sign"
    assert (rows[0] == 0).sum() > 0, "an entry that would stops at zero"
    off = np.setdiff1d(np.arange(D), r.chosen[: r.count])
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
    r = chosen(Refinement.blank(D), x, np.ones(D), place, D)
    totals = []
    for _ in range(30):
        query = r.slopes(x, 1e-6, place, central=False)
        points = query.points()
        f = total(points) - l1 * np.abs(points).sum(axis=1)
        r = aimed(r, x, float(f[0]), *sloped(r, f, query), place, 1.0)
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
