"""The surveyed descent: it never ends above where it began, prunes to exact zeros, and resumes bit for bit."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.contrast.loss import Hinge
from zomirror.methods.averaging import Stretch
from zomirror.methods.group_memory import Remembered
from zomirror.methods.group_testing import Search
from zomirror.methods.quasi_newton import Refinement
from zomirror.methods.survey import DOUBT, SHARE, SURVEY, Findings, Pruned
from zomirror.numerics.random import key_of

D = 60
KEY = key_of(3)
METHOD = zm.methods.Surveyed(zm.methods.zo_group_expmd(floor=0.1), every=40)


def problem(l1: float = 0.1, box: zm.methods.Box | None = None) -> zm.methods.Problem:
    return zm.methods.Problem(
        D, np.dtype(np.float64), zm.methods.ElasticNet(l1), zm.methods.Box(-1.0, 1.0) if box is None else box
    )


def surveying(
    x: Any, place: zm.methods.Problem, *, best: Any = None, known: dict[str, Any] | None = None, **found: Any
) -> zm.methods.State:
    """A state whose next batch is a survey; `known` is what the descent knows of f."""
    memory = replace(Remembered(np.zeros(D), radius=1e-5), **(known or {}))
    descent = zm.methods.State(place, KEY, 7, x, memory, 2.0)
    best = x if best is None else best
    blank = Search.blank(place), Refinement.blank(20), Stretch.blank(x)
    findings = Findings(descent, best, best, *blank, stage=SURVEY, looked=True, **found)
    return zm.methods.State(place, KEY, 7, x, findings)


def kink(points: Any) -> Any:
    a, b, c = points[:, 7], points[:, 31], points[:, 59]
    return (a - 0.8) ** 2 + (b + 0.5) ** 2 + np.abs(c - 0.3)


def rough(points: Any) -> Any:
    """Kinks in every coordinate and valleys everywhere: a descent goes astray."""
    return np.abs(np.sin(9 * points) + points).sum(axis=1)


def cliff(points: Any) -> Any:
    """A kink between a gentle and a very steep slope."""
    return np.maximum(points.sum(axis=1), -100 * points.sum(axis=1))


@pytest.mark.parametrize("f", [kink, rough, cliff], ids=lambda f: f.__name__)
@pytest.mark.parametrize("start", [0.0, 0.3])
def test_no_run_ends_above_where_it_began(f: Any, start: float) -> None:
    x0 = np.full(D, start)
    began = float(f(x0[None])[0]) + 0.05 * D * start
    for budget in (30, 333, 1500):
        for seed in range(3):
            result = zm.minimize(f, x0, l1=0.05, bounds=(-1, 1), budget=budget, rng=seed)
            assert result.fun <= began
            assert result.fun == pytest.approx(f(result.x[None])[0] + 0.05 * np.abs(result.x).sum(), rel=1e-12)
            assert result.fun <= result.history.fun.min(), "without noise the best measured point is returned"


@pytest.mark.parametrize("f", [kink, rough], ids=lambda f: f.__name__)
def test_no_noisy_run_ends_clearly_above_where_it_began(f: Any) -> None:
    sd = 0.02
    began = float(f(np.zeros((1, D)))[0])
    for seed in range(4):
        rng = np.random.default_rng(seed)
        result = zm.minimize(
            lambda X, rng=rng: f(X) + sd * rng.normal(size=len(X)),
            np.zeros(D),
            l1=0.05,
            bounds=(-1, 1),
            budget=1000,
            rng=seed,
        )
        assert f(result.x[None])[0] + 0.05 * np.abs(result.x).sum() <= began + 2 * DOUBT * sd


def test_a_kink_among_two_thousand_coordinates_is_solved() -> None:
    """Without surveys the same descent ends above the 1.19 it began with."""

    def f(points: Any) -> Any:
        return (points[:, 17] - 0.8) ** 2 + (points[:, 404] + 0.5) ** 2 + np.abs(points[:, 1999] - 0.3)

    settings: dict[str, Any] = {"l1": 0.05, "bounds": (-1, 1), "budget": 5000, "rng": 0}
    result = zm.minimize(f, np.zeros(2000), **settings)
    assert result.fun < 0.2
    assert set(np.argsort(-np.abs(result.x))[:3]) == {17, 404, 1999}
    alone = zm.minimize(f, np.zeros(2000), method=zm.methods.zo_group_expmd(floor=0.05), **settings)
    assert alone.fun > 1.19


def test_a_sparse_quadratic_of_ten_thousand_coordinates_ends_at_its_minimum() -> None:
    rng = np.random.default_rng(0)
    x_star = np.zeros(10_000)
    x_star[rng.choice(10_000, 10, replace=False)] = rng.choice([-1.0, 1.0], 10)
    result = zm.minimize(
        lambda X: 0.5 * np.square(X - x_star).sum(axis=1),
        np.zeros(10_000),
        l1=0.02,
        bounds=(-2, 2),
        budget=10_000,
        rng=0,
    )
    assert result.fun == pytest.approx(10 * (0.5 * 0.02**2 + 0.02 * 0.98), rel=1e-2)
    assert np.count_nonzero(result.x) < 100


def test_a_survey_asks_x_and_x_pruned() -> None:
    x = np.zeros(D)
    x[:4] = 0.8, -0.07, 0.02, 0.0005
    query = METHOD.ask(surveying(x, problem()))
    rows = query.points()
    assert len(query) == 1 + len(METHOD.cuts)
    assert rows[0].tobytes() == x.tobytes()
    for row, cut in zip(rows[1:], METHOD.cuts, strict=True):
        np.testing.assert_array_equal(row, np.where(np.abs(x) < cut * 0.8, 0, x))


def test_what_has_begun_to_grow_is_not_pruned() -> None:
    """Where the memory of the gradient pulls away from 0 far harder than l1 holds, and than it pulls elsewhere."""
    x, w = np.full(D, 1e-4), np.zeros(D)
    x[0], x[1] = 0.8, -1e-4
    w[:5] = 1.0, 2.0, -2.0, 2.0, -0.3
    pruned = METHOD.ask(surveying(x, problem(), known={"w": w})).points()[-1]
    assert np.flatnonzero(pruned).tolist() == [0, 1, 2], "inwards is pruned, and so is what does not stand out"


def test_pruning_never_leaves_the_box_and_without_l1_nothing_is_pruned() -> None:
    box = zm.methods.Box(np.full(D, 0.001), np.full(D, 1.0))
    x = np.full(D, 0.002)
    x[0] = 0.9
    rows = METHOD.ask(surveying(x, problem(box=box))).points()
    assert (rows >= 0.001).all()
    assert (rows[-1][1:] == 0.001).all()
    assert len(METHOD.ask(surveying(x, problem(l1=0.0)))) == 1


@pytest.mark.parametrize(("rise", "pruned"), [(0.0, True), (0.99 * SHARE, True), (1.01 * SHARE, False)])
def test_a_pruning_is_taken_if_f_rises_by_a_quarter_of_what_it_saves(rise: float, pruned: bool) -> None:
    x = np.full(D, 1e-2)
    x[0] = 0.9
    state = surveying(x, problem())
    query = METHOD.ask(state)
    rows = query.points()
    saved = 0.1 * (np.abs(rows[0]).sum() - np.abs(rows[-1]).sum())
    values = np.full(len(query), 1.0)
    values[1:] += rise * saved
    values[1:-1] += 10.0
    after = METHOD.tell(state, query, values)
    assert (np.count_nonzero(after.x) == 1) == pruned
    assert after.memory.descent.pace == 2.0
    assert after.t == after.memory.descent.t == 8
    assert after.memory.descent.x is after.x
    assert after.last is not None
    assert after.last.x.tobytes() == after.x.tobytes()
    assert after.last.f == values[-1 if pruned else 0]


def test_a_gain_below_the_noise_prunes_nothing() -> None:
    x = np.full(D, 1e-2)
    x[0] = 0.9
    for sd, left in ((0.0, 1), (1.0, D)):
        state = surveying(x, problem(), known={"sd": sd})
        query = METHOD.ask(state)
        assert np.count_nonzero(METHOD.tell(state, query, np.ones(len(query))).x) == left


def test_where_f_is_noisy_a_survey_asks_four_times_and_believes_the_mean() -> None:
    x = np.full(D, 1e-2)
    x[0] = 0.9
    state = surveying(x, problem(), known={"sd": 0.005, "central": True})
    query = METHOD.ask(state)
    once = 1 + len(METHOD.cuts)
    assert len(query) == 4 * once
    np.testing.assert_array_equal(query.points(), np.tile(query.points(0, once), (4, 1)))
    saved = problem().penalty(x) - problem().penalty(np.where(x < 0.5, 0, x))
    for rise, left in ((0.7, 1), (0.8, D)):
        # Of four answers to a pruned point one alone is told, four times as large.
        values = np.zeros((4, once))
        values[2, 1:] = 4 * rise * saved
        assert np.count_nonzero(METHOD.tell(state, query, values.ravel()).x) == left


def test_refused_prunings_of_a_noisy_f_overflow_nothing() -> None:
    rng = np.random.default_rng(0)

    def f(points: Any) -> Any:
        values = np.square(points - 0.3).sum(axis=1) + 1e-3 * rng.normal(size=len(points))
        return np.where((points == 0).any(axis=1), np.nan, values)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = zm.minimize(f, np.full(30, 0.9), l1=0.01, bounds=(0, 1), budget=3_000, rng=0, nonfinite="refuse")
    assert result.status is zm.Status.BUDGET
    assert result.fun < 0.2


def test_where_f_has_risen_for_long_it_goes_back_with_half_the_step() -> None:
    x, best = np.full(D, 0.5), np.full(D, 0.25)
    for waited, back in ((0, False), (1000, True)):
        found: dict[str, Any] = {"best": best, "f": 0.5, "least": 2.0, "waited": waited}
        state = surveying(x, problem(), **found)
        query = METHOD.ask(state)
        after = METHOD.tell(state, query, np.full(len(query), 3.0))
        assert after.x.tobytes() == (best if back else x).tobytes()
        assert after.memory.descent.pace == (4.0 if back else 2.0)
        kept = METHOD.kept(after)
        assert kept is not None
        assert (kept.x.tobytes(), kept.f, kept.fun, kept.slack) == (best.tobytes(), 0.5, 2.0, 0.0)
        noisy = surveying(x, problem(), known={"sd": 10.0}, **found)
        assert METHOD.tell(noisy, query, np.full(len(query), 3.0)).x.tobytes() == x.tobytes()


def smooth(points: Any) -> Any:
    return np.square(points[:, ::7] - 0.4).sum(axis=1) + 0.5 * np.square(points[:, :3].sum(axis=1))


def test_a_snapshot_at_any_stage_goes_on_bit_for_bit() -> None:
    def fresh() -> zm.Optimizer:
        return zm.Optimizer(np.where(np.arange(D) < 5, 0.25, 0.0), l1=0.05, bounds=(-1, 1), method=METHOD, rng=5)

    whole = fresh()
    stages = [0, 0, 0, 0, 0]
    for _ in range(80):
        stages[whole.state.memory.stage] += 1
        resumed = fresh()
        resumed.restore(whole.snapshot())
        assert resumed.ask().tobytes() == whole.ask().tobytes()
        values = smooth(whole.ask())
        whole.tell(values)
        resumed.tell(values)
        assert resumed.x.tobytes() == whole.x.tobytes()
        assert resumed.result.x.tobytes() == whole.result.x.tobytes()
        one, other = resumed.snapshot(), whole.snapshot()
        assert one.keys() == other.keys()
        assert all(one[name].tobytes() == other[name].tobytes() for name in one)
    assert min(stages) > 3


def test_ask_and_tell_end_where_minimize_does() -> None:
    result = zm.minimize(kink, np.zeros(D), l1=0.05, bounds=(-1, 1), budget=2000, rng=1)
    opt = zm.Optimizer(np.zeros(D), l1=0.05, bounds=(-1, 1), rng=1)
    while opt.nfev + len(opt.query) + 1 <= 2000:
        opt.tell(kink(opt.ask()))
    assert opt.result.fun >= result.fun >= opt.result.fun - 5e-3
    assert opt.result.fun <= opt.result.history.fun.min()


def test_a_stochastic_function_is_not_surveyed_and_returns_its_last_iterate() -> None:
    def f(points: Any, draws: Any) -> Any:
        return np.square(points - 0.5).sum(axis=1) + 0.1 * np.sin(draws)

    result = zm.minimize(f, np.zeros(D), l1=0.05, bounds=(-1, 1), budget=2000, rng=0, stochastic=True)
    assert result.fun == result.history.fun[-1]
    assert result.fun < result.history.fun[0]
    assert np.isfinite(result.history.eta[:-1]).all(), "every batch was a step"


def test_a_refused_pruning_is_not_taken() -> None:
    """A function that refuses sparse points: a survey must not read a refused point as one as good as x."""

    def f(points: Any) -> Any:
        values = np.square(points - 0.01).sum(axis=1)
        return np.where((points == 0).any(axis=1), np.nan, values)

    result = zm.minimize(
        f, np.full(D, 0.25), l1=0.001, bounds=(0, 1), budget=2000, rng=0, nonfinite="refuse", method=None
    )
    assert result.status in (zm.Status.BUDGET, zm.Status.NONFINITE)
    assert (result.x > 0).all()
    assert math.isfinite(result.fun)


def test_rows_of_a_pruning_can_be_made_in_any_blocks() -> None:
    x = np.linspace(-1, 1, D)
    moves = Pruned(np.array([0.1, 0.5, 0.9]), np.zeros(D), np.arange(D) != 3)
    whole = np.empty((3, D))
    moves.add(x, 0.0, 0, whole)
    for j in range(3):
        row = np.empty((1, D))
        moves.add(x, 0.0, j, row)
        assert row.tobytes() == whole[j].tobytes()
    assert (np.diff([np.count_nonzero(row) for row in whole]) < 0).all()
    assert (whole[:, 3] == x[3]).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"every": 0}, "every >= 1"),
        ({"cuts": (0.1, 1.0)}, "cuts between 0 and 1"),
        ({"descent": zm.methods.zo_ada_expmd()}, "GroupMemory"),
        ({"descent": zm.methods.zo_group_expmd(link=Hinge())}, "without a link"),
        ({"descent": replace(zm.methods.zo_group_expmd(), step=zm.methods.Constant(1.0))}, "step rule can be halved"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(zm.errors.ArgumentError, match=sentence):
        replace(METHOD, **options)


def test_a_step_astray_is_taken_back_at_once() -> None:
    """With no bound to stop it, an early step may go where f overflows."""
    rng = np.random.default_rng(100)
    x_star = np.zeros(1000)
    x_star[rng.choice(1000, 10, replace=False)] = rng.choice([-1.0, 1.0], 10) * rng.uniform(0.5, 2, 10)
    least = float(np.sum(0.5 * 0.02**2 + 0.02 * (np.abs(x_star[x_star != 0]) - 0.02)))
    for seed in range(3):
        result = zm.minimize(
            lambda X: 0.5 * np.square(X - x_star).sum(axis=1), np.zeros(1000), l1=0.02, budget=3000, rng=seed
        )
        assert result.status is zm.Status.BUDGET
        assert result.fun == pytest.approx(least, rel=1e-3)
    state = METHOD.init(np.zeros(D), problem(), KEY)
    state = METHOD.tell(state, METHOD.ask(state), np.arange(float(len(METHOD.ask(state)))))
    astray = METHOD.tell(state, METHOD.ask(state), np.full(len(METHOD.ask(state)), 1e9))
    assert astray.x.tobytes() == np.zeros(D).tobytes()
    assert astray.memory.descent.pace == 2 * state.memory.descent.pace
