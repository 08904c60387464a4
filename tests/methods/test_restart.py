"""Descents that begin again: when they do, which one goes on, and that the best point of all is what comes back."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.methods.descent import BestPoint
from zomirror.methods.restart import BACK, FALL, FULL_FALL, LEAST, NEARER, PAUSE, SHORT, Attempt, Attempts
from zomirror.methods.survey import POLISHED, SLOPES, Findings
from zomirror.numerics.random import key_of

D = 40
KEY = key_of(11)


def two_wells(points: Any) -> Any:
    """A shallow basin where all are 0.2 and a deep one where all are 0.9; what lies between is higher than both."""
    near, far = np.square(points - 0.2).sum(axis=1), np.square(points - 0.9).sum(axis=1)
    return np.minimum(near + 1.0, 0.5 * far)


def bowl(points: Any) -> Any:
    return np.square(points[:, :5] - 0.5).sum(axis=1)


def slow(points: Any) -> Any:
    """A curved valley: F falls for as long as anybody looks."""
    x = points
    return np.square(1 - x[:, 0]) + 100 * np.square(x[:, 1:] - np.square(x[:, :-1])).sum(axis=1)


def method(x0: Any, l1: float = 0.05, bounds: Any = (-1, 1)) -> zm.methods.Restarted:
    found = zm.methods.recommended(x0, zm.methods.ElasticNet(l1), zm.methods.Box.of(bounds, x0.size))
    assert isinstance(found, zm.methods.Restarted)
    return found


def driven(f: Any, budget: int, **options: Any) -> list[Attempts]:
    """What is known after each batch."""
    settings: dict[str, Any] = {"x0": np.zeros(D), "l1": 0.05, "bounds": (-1, 1), "rng": 0} | options
    optimizer = zm.Optimizer(**settings)
    seen = []
    while optimizer.nfev < budget:
        optimizer.tell(f(optimizer.ask()))
        seen.append(optimizer.state.memory)
    return seen


def test_a_descent_that_is_done_makes_way_and_one_that_falls_does_not() -> None:
    done = driven(bowl, 6_000)
    begun = [attempts.begun for attempts in done]
    assert begun == sorted(begun), "a descent is begun and not taken back"
    assert begun[-1] >= 2
    first = next(attempts for attempts in done if attempts.begun)
    assert first.aside.age >= LEAST
    falling = driven(slow, 5_000, l1=0.001, x0=np.full(D, 0.3))
    assert falling[-1].begun == 0, "F goes on falling"
    assert falling[-1].current.mark < math.inf


def judged(attempt: Attempt, age: int, best: Any, least: float, patience: float = 1.0) -> Attempt:
    """The same descent at some age, judged by F = `least` at its best point."""
    return replace(attempt, age=age).judged(BestPoint(best, least, least, 0.0), patience, FALL)


@pytest.mark.parametrize(("d", "pause"), [(D, LEAST), (4_000, 4_000 * BACK)])
def test_rest_is_half_as_many_queries_without_a_clear_fall(d: int, pause: float) -> None:
    place = zm.methods.Problem(d, np.dtype(np.float64), zm.methods.ElasticNet(0.05), zm.methods.Box(-1.0, 1.0))
    best = np.where(np.arange(d) < 20, 1.0, 0.0)
    h = place.penalty(best)
    attempt: Attempt = method(np.zeros(d)).init(np.zeros(d), place, KEY).memory.current
    for age, length in ((100, pause), (10_000, 10_000 * PAUSE)):
        fell = judged(attempt, age, best, 3.0)
        assert (fell.mark, fell.due) == (3.0, age + length)
        assert judged(fell, age + 1, best, 3.0 - 0.9 * FALL * h).due == fell.due, "not clearly"
        assert judged(fell, age + 1, best, 3.0 - 1.1 * FALL * h).due > fell.due
        assert judged(attempt, age, best, 3.0, SHORT).due == age + length * SHORT


def test_a_penalty_that_cannot_be_saved_does_not_count() -> None:
    """In a box far from 0 most of the penalty is there to stay."""
    place = zm.methods.Problem(D, np.dtype(np.float64), zm.methods.ElasticNet(0.05), zm.methods.Box(1.0, 2.0))
    best = np.where(np.arange(D) < 10, 1.1, 1.0)
    attempt: Attempt = method(best, bounds=(1, 2)).init(best, place, KEY).memory.current
    fell = judged(attempt, 100, best, 3.0)
    assert judged(fell, 101, best, 3.0 - 1.1 * FALL * 0.05).due > fell.due


def problem() -> zm.methods.Problem:
    return zm.methods.Problem(D, np.dtype(np.float64), zm.methods.ElasticNet(0.05), zm.methods.Box(-1.0, 1.0))


def at(attempt: Attempt, age: int, *, least: float, x: Any = None, **found: Any) -> Attempt:
    """The same descent at some age, with that F at its best point."""
    state = attempt.state
    findings: Findings = replace(state.memory, least=least, asked=0, stage=0, **found)
    return replace(attempt, age=age, state=replace(state, x=state.x if x is None else x, memory=findings))


@pytest.mark.parametrize(
    ("age", "least", "due", "goes_on", "still_two"),
    [
        (200, 9.0, 9_999, "new", True),
        (1_999, 9.0, 9_999, "new", True),
        (2_001, 9.0, 9_999, "old", False),
        (2_001, 1.0, 9_999, "new", False),
        (200, 1.0, 9_999, "new", True),
        (1_500, 9.0, 1_400, "old", False),
        (1_500, 1.0, 1_400, "new", False),
    ],
)
def test_the_better_of_two_goes_on_when_the_new_one_rests_or_had_as_many_queries(
    age: int, least: float, due: int, goes_on: str, still_two: bool
) -> None:
    x0 = np.full(D, 0.25)
    whole = method(x0)
    start = whole.init(x0, problem(), KEY)
    blank: Attempt = start.memory.current
    best = np.where(np.arange(D) < 10, -0.5, np.where(np.arange(D) < 20, 1e-4, 0.0))
    old = replace(at(blank, 2_000, least=5.0, best=best, x=np.full(D, -0.6)), mark=5.2, due=1_900)
    new = replace(at(blank, age, least=least, x=np.full(D, 0.75)), mark=least, due=due)
    attempts = whole._turned(Attempts(x0, new, old, begun=1, alone=False))
    assert attempts.current.state.x[0] == {"new": 0.75, "old": -0.5}[goes_on]
    assert attempts.alone != still_two, "what has lost is dropped"
    if goes_on == "old":
        assert attempts.current.due == 2_000 + age // 4
        kept = whole.kept(replace(start, memory=attempts))
        assert kept is not None
        assert kept.fun == 5.0
        findings = attempts.current.state.memory
        assert (findings.stage, findings.worth) == (SLOPES, POLISHED), "its best point is polished first"
        assert findings.refinement.count == 20, "small entries too"
        assert findings.descent.x is attempts.current.state.x


@pytest.mark.parametrize(
    ("age", "watched", "then", "least", "dropped"),
    [
        (900, 0, math.inf, 50.0, False),
        (1_000, 0, math.inf, 50.0, False),
        (1_499, 1_000, 9.0, 8.9, False),
        (1_500, 1_000, 9.0, 8.9, True),
        (1_500, 1_000, 9.0, 6.5, False),
        (1_500, 1_000, 12.0, 7.9, False),
        (1_500, 1_000, 4.9, 4.9, False),
    ],
)
def test_a_new_descent_that_will_not_catch_up_is_dropped(
    age: int, watched: int, then: float, least: float, dropped: bool
) -> None:
    """Watched when it is no longer young, then at half as much again; it may fall on by 1.5 times what it fell."""
    x0 = np.full(D, 0.25)
    whole = method(x0)
    start = whole.init(x0, problem(), KEY)
    blank: Attempt = start.memory.current
    old = replace(at(blank, 9_000, least=5.0, best=x0), mark=5.2, due=1_900)
    new = replace(at(blank, age, least=least), mark=least, due=9_999, watched=watched, then=then)
    after = whole._turned(Attempts(x0, new, old, begun=1, alone=False))
    assert after.alone == dropped
    if not dropped:
        seen = age >= (1_500 if watched else LEAST)
        assert (after.current.watched, after.current.then) == ((age, least) if seen else (watched, then))


@pytest.mark.parametrize(
    ("start", "lower", "kinds"),
    [(0.25, -1.0, ["near", "x0", "half"]), (0.0, -1.0, ["x0", "half"]), (0.1, 0.1, ["x0", "half"])],
)
def test_new_descents_start_nearer_to_0_at_x0_and_at_half_of_the_best_point_by_turns(
    start: float, lower: float, kinds: list[str]
) -> None:
    x0, zero = np.full(D, start), max(lower, 0.0)
    best = np.where(np.arange(D) < 10, 0.5, zero)
    place = zm.methods.Problem(D, np.dtype(np.float64), zm.methods.ElasticNet(0.05), zm.methods.Box(lower, 1.0))
    whole = method(x0, bounds=(lower, 1.0))
    state = whole.init(x0, place, KEY)
    blank: Attempt = state.memory.current
    inner = blank.state.memory.descent
    inner = replace(inner, t=5, memory=replace(inner.memory, radius=1e-4, sd=1e-9, w=np.ones(D)))
    blank = replace(blank, state=replace(blank.state, t=5))
    rested = replace(at(blank, 3_000, least=5.0, best=best, descent=inner), mark=5.0, due=2_900)
    for begun in range(2 * len(kinds)):
        after = whole._turned(Attempts(x0, rested, blank, begun=begun))
        new = after.current
        assert (after.begun, after.aside, after.alone, new.age) == (begun + 1, rested, False, 0)
        assert whole.surveyed.kept(new.state) is None
        descent = new.state.memory.descent
        assert new.state.t == descent.t == 5, "iterations are those of the whole run"
        known = descent.memory
        assert (known.radius, known.sd, bool(known.w.any())) == (1e-4, 1e-9, False), "only the noise is known"
        match kinds[begun % len(kinds)]:
            case "near":
                np.testing.assert_allclose(new.state.x, zero + NEARER * (x0 - zero))
            case "x0":
                assert new.state.x.tobytes() == x0.tobytes()
            case "half":
                kept = np.flatnonzero(new.state.x != zero)
                assert set(kept) < set(range(10)) or lower > 0
                later = replace(rested, state=replace(rested.state, t=8))
                elsewhere = whole._turned(Attempts(x0, later, blank, begun=begun))
                assert elsewhere.current.state.x.tobytes() != new.state.x.tobytes(), "another half each time"


def test_a_descent_from_a_full_start_is_at_rest_sooner() -> None:
    place = problem()
    x0 = np.full(D, 0.25)
    blank = method(x0).init(x0, place, KEY).memory
    assert blank.fall(place) == FULL_FALL
    assert replace(blank, start=np.zeros(D)).fall(place) == FALL
    corner = zm.methods.Problem(D, np.dtype(np.float64), zm.methods.ElasticNet(0.05), zm.methods.Box(0.25, 1.0))
    assert blank.fall(corner) == FALL, "nearer to 0 is nothing in the box"


def test_half_of_a_point_stays_in_the_box() -> None:
    x0 = np.full(D, 0.5)
    whole = method(x0, bounds=(0.1, 1.0))
    boxed = zm.methods.Problem(D, np.dtype(np.float64), zm.methods.ElasticNet(0.05), zm.methods.Box(0.1, 1.0))
    start = whole.init(x0, boxed, KEY)
    rested = replace(at(start.memory.current, 3_000, least=5.0), mark=5.0, due=2_900)
    attempts = Attempts(x0, rested, rested, begun=2)
    assert sorted(set(whole._turned(attempts).current.state.x)) == [0.1, 0.5]


def test_among_many_basins_a_better_one_is_found() -> None:
    """Sixty sines of forty coordinates: one descent ends in whatever basin it came upon first."""
    rng = np.random.default_rng(0)
    planes = rng.normal(size=(60, D))

    def f(points: Any) -> Any:
        return np.square(np.sin(3 * points @ planes.T / 4) - 0.5).mean(axis=1)

    x0 = np.full(D, 0.3)
    ends = {}
    for seed in range(6):
        settings: dict[str, Any] = {"l1": 0.002, "bounds": (-1, 1), "rng": seed}
        alone = method(x0, 0.002).surveyed
        ends[seed] = [zm.minimize(f, x0, budget=12_000, method=m, **settings).fun for m in (alone, None)]
    gains = [one / many for one, many in ends.values()]
    assert min(gains) > 0.97, "little is lost where the others' queries would have gained a little too"
    assert float(np.median(gains)) > 1.05
    assert max(gains) > 1.3
    assert float(np.exp(np.mean(np.log(gains)))) > 1.1


def test_the_best_point_of_all_descents_comes_back() -> None:
    for seed in range(3):
        result = zm.minimize(two_wells, np.full(D, 0.1), l1=0.01, bounds=(0, 1), budget=7_000, rng=seed)
        assert result.fun == result.history.fun.min() == result.history.best[-1]
        assert (np.diff(result.history.best) <= 0).all()
        assert result.fun == pytest.approx(two_wells(result.x[None])[0] + 0.01 * np.abs(result.x).sum(), rel=1e-12)


@pytest.mark.parametrize("noisy", [True, False])
def test_where_values_cannot_be_compared_there_is_one_descent(noisy: bool) -> None:
    rng = np.random.default_rng(0)

    def f(points: Any, samples: Any = None) -> Any:
        return bowl(points) + 1e-2 * rng.normal(size=len(points))

    options: dict[str, Any] = {} if noisy else {"stochastic": True}
    optimizer = zm.Optimizer(np.zeros(D), l1=0.05, bounds=(-1, 1), rng=0, **options)
    while optimizer.nfev < 6_000:
        optimizer.tell(f(optimizer.ask()))
    assert optimizer.state.memory.begun == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_snapshot_at_any_turn_goes_on_bit_for_bit(dtype: Any) -> None:
    def fresh() -> zm.Optimizer:
        return zm.Optimizer(np.zeros(D, dtype), l1=0.05, bounds=(-1, 1), rng=5)

    def on(optimizer: zm.Optimizer) -> dict[str, bytes]:
        while optimizer.nfev < 6_000:
            optimizer.tell(bowl(optimizer.ask()))
        return {name: array.tobytes() for name, array in optimizer.snapshot().items()}

    whole, stored, turns = fresh(), {}, set()
    while whole.nfev < 5_000:
        attempts = whole.state.memory
        turns.add(turn := (attempts.begun, attempts.alone))
        stored[turn] = whole.snapshot()  # the last one of each turn
        whole.tell(bowl(whole.ask()))
    assert {(0, True), (1, False), (1, True), (2, False)} <= turns
    end = on(whole)
    for snapshot in stored.values():
        resumed = fresh()
        resumed.restore(snapshot)
        assert on(resumed) == end


@pytest.mark.parametrize("n", [4, 20])
def test_with_a_group_for_each_coordinate_x0_would_lead_to_the_same_place(n: int) -> None:
    """In the opening there are up to twenty groups."""
    x0 = np.full(n, 0.5)
    attempts = driven(lambda X: np.square(X - 0.3).sum(axis=1), 3_000, x0=x0)
    begins = [a.current for a in attempts if a.begun and not a.current.age]
    assert begins
    for begin in begins:
        assert begin.state.x.tobytes() != x0.tobytes()
        assert np.count_nonzero(begin.state.x) == n // 2


@pytest.mark.parametrize("nonfinite", ["stop", "refuse"])
def test_a_new_descent_that_meets_nan_is_dropped(nonfinite: str) -> None:
    """f has no value at 0, where half of the best point is."""

    def f(points: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return (points - np.log(points)).sum(axis=1)

    met = []

    def asked(points: Any) -> Any:
        values = f(points)
        met.append(not np.isfinite(values).all())
        return values

    x0 = np.full(20, 2.0)
    result = zm.minimize(asked, x0, l1=0.1, budget=8_000, rng=0, nonfinite=nonfinite)
    assert result.status is zm.Status.BUDGET
    assert any(met)
    assert not any(one and two for one, two in pairwise(met)), "it is not asked again"
    assert result.fun == pytest.approx(20 * (1 + np.log(1.1)), rel=1e-6)
    assert zm.minimize(f, np.zeros(20), l1=0.1, budget=8_000, rng=0).status is zm.Status.NONFINITE


def test_the_states_inside_are_those_of_the_same_iteration() -> None:
    """The current descent and the mirror descent inside it are at the iterate and in the iteration of the run."""
    optimizer = zm.Optimizer(np.full(D, 0.5), l1=0.05, bounds=(-1, 1), rng=0)
    aside = 0
    while optimizer.nfev < 8_000:
        optimizer.tell(bowl(optimizer.ask()))
        state, attempts = optimizer.state, optimizer.state.memory
        surveyed = attempts.current.state
        descent = surveyed.memory.descent
        assert state.t == surveyed.t == descent.t
        assert state.x is surveyed.x is descent.x
        if not attempts.alone:
            aside += 1
            assert attempts.aside.state.t <= state.t
    assert aside
    assert attempts.begun > 1


def test_how_stationary_another_descent_is_says_nothing_of_the_best_point() -> None:
    optimizer, others = zm.Optimizer(np.full(D, 0.5), l1=0.05, bounds=(-1, 1), rng=0), 0
    while optimizer.nfev < 6_000:
        optimizer.tell(bowl(optimizer.ask()))
        attempts = optimizer.state.memory
        if not attempts.alone and attempts.aside.state.memory.least < attempts.current.state.memory.least:
            others += 1
            assert optimizer.state.last is not None
            assert math.isnan(optimizer.state.last.stationarity)
    assert optimizer.state.memory.begun
    assert others
    assert optimizer.result.stationarity < 0.1


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
def test_the_turns_do_not_depend_on_the_unit_of_f(factor: float) -> None:
    plain = driven(bowl, 4_000)
    scaled = driven(lambda X: factor * bowl(X), 4_000, l1=0.05 * factor)
    assert [a.begun for a in scaled] == [a.begun for a in plain]
    assert plain[-1].begun
