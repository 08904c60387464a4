"""The gradient memory on random groups: its algebra, its thrift on plains, its sense of noise and scale."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import zomirror as zm
from zomirror.contrast.loss import Hinge
from zomirror.methods.coordinate_groups import Groups, mended
from zomirror.methods.directions import key_of
from zomirror.methods.group_memory import Remembered
from zomirror.methods.noise import balanced, looked_again

D = 40
KEY = key_of(5)


def problem(d: int = D, box: zm.methods.Box | None = None) -> zm.methods.Problem:
    return zm.methods.Problem(
        d, np.dtype(np.float64), zm.methods.ElasticNet(0.1), zm.methods.Box() if box is None else box
    )


def groups_of(seed: int, k: int = 7, d: int = D) -> Groups:
    rng = np.random.default_rng(seed)
    return Groups(rng.permutation(d) % k, rng.choice([-1.0, 1.0], d) * rng.uniform(0.5, 2, d), k, None, d)


def test_the_memory_is_projected_on_what_was_seen() -> None:
    """After one update with theta = 1 the memory foretells the differences exactly, and moves no more than needed."""
    groups, rng = groups_of(0), np.random.default_rng(1)
    gradient = rng.normal(size=D)
    w = gradient + 1e-3 * rng.normal(size=D)
    y = groups.sums(gradient)[0]
    _, after, earned = mended(groups, y, w, 1.0)
    foretold = groups.sums(w)[0]
    theta = float(y @ foretold) / float(foretold @ foretold)
    assert earned == pytest.approx(theta, rel=1e-12)
    assert 0 < theta < 2
    U = np.zeros((groups.count, D))
    U[groups.labels, np.arange(D)] = groups.moves
    expected = w + U.T @ np.linalg.solve(U @ U.T, y - theta * foretold)
    np.testing.assert_allclose(after, expected, rtol=1e-12, atol=1e-12)


def test_a_perfect_memory_gives_the_gradient_from_any_groups() -> None:
    gradient = np.random.default_rng(2).normal(size=D)
    for seed in range(5):
        groups = groups_of(seed)
        g, after, theta = mended(groups, groups.sums(gradient)[0], gradient, 1.0)
        assert theta == pytest.approx(1.0)
        np.testing.assert_allclose(g, gradient, rtol=1e-10)
        np.testing.assert_allclose(after, gradient, rtol=1e-10)


@pytest.mark.parametrize("theta", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("gain", [1.0, 0.5, 0.1])
def test_the_estimate_is_unbiased_whatever_the_memory_and_the_trust_in_it(theta: float, gain: float) -> None:
    """With a gain of 1; with a smaller one its mean lies so far on the way from the memory to the gradient."""
    w = np.random.default_rng(9).normal(size=D)
    gradient, total, squares, draws = np.random.default_rng(3).normal(size=D), np.zeros(D), np.zeros(D), 4000
    for seed in range(draws):
        groups = groups_of(seed)
        g, _, _ = mended(groups, groups.sums(gradient)[0], w, theta, gain)
        total += g
        squares += g * g
    mean = total / draws
    error = np.sqrt((squares / draws - mean**2) / draws)
    wanted = theta * w + gain * (gradient - theta * w)
    assert np.abs((mean - wanted) / error).max() < 4.5


def test_a_noisy_or_stochastic_function_keeps_the_estimate_unbiased() -> None:
    """The gain makes no difference to it there once there is a memory, and does elsewhere."""
    slope = np.random.default_rng(4).normal(size=D)

    def second(gain: float, *, noise: float, stochastic: bool) -> Any:
        place = replace(problem(), stochastic=stochastic)
        estimator = zm.methods.GroupMemory(5, noise=noise, gain=gain)
        memory = estimator.init(place)
        for t in range(2):
            query = estimator.ask(memory, place, np.zeros(D), t, KEY)
            (_, g), memory = estimator.tell(memory, query, query.points() @ slope)
        return g

    for noise, stochastic, same in ((0.0, False, False), (0.1, False, True), (0.0, True, True)):
        one, half = (second(gain, noise=noise, stochastic=stochastic) for gain in (1.0, 0.5))
        assert (one == half).all() == same


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("stochastic", [False, True])
def test_the_first_step_size_does_not_depend_on_the_gain(*, noise: float, stochastic: bool) -> None:
    slope, paces = np.random.default_rng(4).normal(size=D), []
    for gain in (1.0, 0.5):
        method = zm.methods.zo_group_expmd(gain=gain, noise=noise)
        opt = zm.Optimizer(np.zeros(D), l1=0.01, rng=0, method=method, stochastic=stochastic)
        g = method.estimator.tell(*first(opt, slope))[0].gradient
        assert g is not None
        paces.append(method.step.eta(opt.state.pace, g))
    assert paces[0] == pytest.approx(paces[1], rel=1e-12)


def first(opt: zm.Optimizer, slope: NDArray[Any]) -> tuple[Any, Any, Any]:
    """What the estimator is told of the first batch of a linear function."""
    return opt.state.memory, opt.query, opt.query.points() @ slope


def test_the_opening_has_twice_the_groups_and_takes_in_all_they_bring() -> None:
    slope, place = np.random.default_rng(4).normal(size=D), problem()
    estimators = zm.methods.GroupMemory(5, noise=0.0, opening=3), zm.methods.GroupMemory(10, noise=0.0)
    memories = [estimator.init(place) for estimator in estimators]
    for t in range(3):
        queries = [
            one.ask(memory, place, np.zeros(D), t, KEY) for one, memory in zip(estimators, memories, strict=True)
        ]
        assert queries[0].points().tobytes() == queries[1].points().tobytes()
        told = [
            one.tell(memory, query, query.points() @ slope)
            for one, memory, query in zip(estimators, memories, queries, strict=True)
        ]
        assert told[0][0].gradient is not None
        assert told[1][0].gradient is not None
        assert told[0][0].gradient.tobytes() == told[1][0].gradient.tobytes()
        memories = [memory for _, memory in told]
    short = estimators[0].ask(memories[0], place, np.zeros(D), 3, KEY)
    assert short.segments[1].count == 5
    assert memories[0].batches == 3
    _, later = estimators[0].tell(memories[0], short, short.points() @ slope)
    assert later.batches == 3, "what comes after the opening is not counted"


def test_the_opening_takes_in_all_once_there_is_a_memory() -> None:
    """The first gradient has the unit that the first step size expects; the others are unbiased, until it is over."""
    slope, place, gradients = np.random.default_rng(4).normal(size=D), problem(), []
    for gain in (1.0, 0.5):
        estimator = zm.methods.GroupMemory(5, noise=0.0, gain=gain, opening=3)
        memory, found = estimator.init(place), []
        for t in range(4):
            query = estimator.ask(memory, place, np.zeros(D), t, KEY)
            (_, g), memory = estimator.tell(memory, query, query.points() @ slope)
            found.append(np.asarray(g))
        gradients.append(found)
    whole, half = gradients
    np.testing.assert_array_equal(half[0], whole[0] / 2)
    np.testing.assert_array_equal(half[1:3], whole[1:3])
    assert (half[3] != whole[3]).any()


def test_the_batch_that_looks_for_noise_is_not_of_the_opening() -> None:
    slope, place = np.random.default_rng(4).normal(size=D), problem()
    plain, opened = zm.methods.GroupMemory(5, gain=0.5), zm.methods.GroupMemory(5, gain=0.5, opening=3)
    memories = plain.init(place), opened.init(place)
    one, other = (e.ask(m, place, np.zeros(D), 0, KEY) for e, m in zip((plain, opened), memories, strict=True))
    assert one.points().tobytes() == other.points().tobytes()
    _, memory = opened.tell(memories[1], other, other.points() @ slope)
    assert memory.batches == 0
    assert opened.ask(memory, place, np.zeros(D), 1, KEY).segments[1].count == 10


@pytest.mark.parametrize(("noise", "stochastic"), [(0.1, False), (0.0, True)])
def test_where_f_is_noisy_or_stochastic_the_opening_has_no_more_groups(noise: float, stochastic: bool) -> None:
    estimator, place = zm.methods.GroupMemory(5, noise=noise, opening=3), replace(problem(), stochastic=stochastic)
    memory = estimator.init(place)
    for t in range(3):
        query = estimator.ask(memory, place, np.zeros(D), t, KEY)
        assert query.segments[1].count == 5
        _, memory = estimator.tell(memory, query, query.points() @ np.ones(D))


def test_a_plain_is_not_part_of_the_opening() -> None:
    estimator, place = zm.methods.GroupMemory(5, noise=0.0, opening=3), problem()
    memory = estimator.init(place)
    for t in range(4):
        query = estimator.ask(memory, place, np.zeros(D), t, KEY)
        _, memory = estimator.tell(memory, query, np.zeros(len(query)))
    assert memory.flat
    assert memory.batches == 0


def test_the_memory_lowers_the_variance_of_later_batches() -> None:
    """On a linear function the memory converges, and the estimate with it."""
    estimator, place, slope = zm.methods.GroupMemory(5, noise=0.0), problem(), np.random.default_rng(4).normal(size=D)
    memory, errors = estimator.init(place), []
    for t in range(120):
        query = estimator.ask(memory, place, np.zeros(D), t, KEY)
        (_, g), memory = estimator.tell(memory, query, query.points() @ slope)
        assert g is not None
        errors.append(float(np.linalg.norm(g - slope)))
    assert np.mean(errors[-10:]) < 0.05 * np.mean(errors[:5])


def test_rows_move_disjoint_groups_that_cover_all_free_coordinates() -> None:
    lower, upper = np.full(D, -1.0), np.full(D, 1.0)
    lower[[3, 17]] = upper[[3, 17]] = 0.0
    place = problem(box=zm.methods.Box(lower, upper))
    estimator = zm.methods.GroupMemory(6, noise=0.0)
    x = np.zeros(D)
    query = estimator.ask(estimator.init(place), place, x, 0, KEY)
    moved = query.points()[1:] != x
    assert len(query) == 7
    assert (moved.sum(axis=0) == np.where(lower < upper, 1, 0)).all()


def test_on_a_plain_two_queries_an_iteration_are_enough() -> None:
    place, estimator = problem(), zm.methods.GroupMemory(8, radius=1e-3)
    memory = estimator.init(place)
    sizes = []
    for t in range(4):
        query = estimator.ask(memory, place, np.ones(D), t, KEY)
        sizes.append(len(query))
        (_, g), memory = estimator.tell(memory, query, np.zeros(len(query)))
        assert g is not None
        assert not g.any()
    assert sizes == [9, 2, 2, 2]
    query = estimator.ask(memory, place, np.ones(D), 4, KEY)
    (_, g), memory = estimator.tell(memory, query, np.array([0.0, 1e-3]))
    assert g is None, "the slope is back: all groups are asked before a step"
    assert len(estimator.ask(memory, place, np.ones(D), 5, KEY)) == 9


def test_a_staircase_is_met_with_a_longer_reach() -> None:
    place, estimator = problem(), zm.methods.GroupMemory(4)
    memory: Remembered = estimator.init(place)
    reach = []
    for t in range(6):
        query = estimator.ask(memory, place, np.full(D, 1.0 - 0.1 * t), t, KEY)
        _, memory = estimator.tell(memory, query, np.full(len(query), -float(t)))
        reach.append(memory.radius)
    assert reach[0] == pytest.approx(1e-3)
    assert reach[-1] == pytest.approx(0.1)


@pytest.mark.parametrize("sd", [0.0, 1e-3])
def test_noise_is_found_and_met_with_two_sided_differences(sd: float) -> None:
    place, estimator, rng = problem(), zm.methods.GroupMemory(6), np.random.default_rng(0)
    memory = estimator.init(place)
    x = np.full(D, 0.3)
    query = estimator.ask(memory, place, x, 0, KEY)
    values = np.square(query.points()).sum(axis=1) + sd * rng.normal(size=len(query))
    _, memory = estimator.tell(memory, query, values)
    assert memory.central == (sd > 0)
    assert (memory.radius > 1e-2) == (sd > 0)
    assert len(estimator.ask(memory, place, x, 1, KEY)) == (13 if sd else 7)


@pytest.mark.parametrize("first", [1e-3, 0.1])
@pytest.mark.parametrize(("bend", "lowest", "highest"), [(24.0, 1.0, 2.0), (0.0, 5.0, 5.0)])
def test_the_radius_goes_to_where_bias_and_noise_balance(
    first: float, bend: float, lowest: float, highest: float
) -> None:
    """f = bend sum x^3 at 0: a difference has bias nu^2 bend sum u^3 and noise sd/(sqrt 2 nu), least at nu = 0.02.

    Too long is noticed some way beyond that; without bias there is no end but the longest reach, 0.1.
    """
    sd, k, best = 1e-3, 6, 0.02
    assert best**6 == pytest.approx(sd**2 / (4 * 24**2 * D / k), rel=0.05)
    place, estimator, rng = problem(), zm.methods.GroupMemory(k), np.random.default_rng(4)
    memory, radii, noises = Remembered(np.zeros(D), radius=first, central=True, sd=2 * sd), [], []
    for t in range(3, 3 + 32 * 60, 32):
        query = estimator.ask(memory, place, np.zeros(D), t, KEY)
        assert len(query) == 1 + 4 * k + 12
        points = query.points()
        _, memory = estimator.tell(memory, query, bend * (points**3).sum(axis=1) + sd * rng.normal(size=len(query)))
        radii.append(memory.radius / best)
        noises.append(memory.sd)
    assert lowest - 1e-9 <= np.median(radii[30:]) <= highest + 1e-9
    assert np.median(noises[10:]) == pytest.approx(sd, rel=0.2)


def test_a_given_radius_stays_and_exact_functions_are_not_tried() -> None:
    for estimator, memory in (
        (zm.methods.GroupMemory(6, radius=0.03, noise=1e-3), None),
        (zm.methods.GroupMemory(6), Remembered(np.zeros(D), radius=1e-5)),
    ):
        begun = estimator.init(problem()) if memory is None else memory
        sizes = {len(estimator.ask(begun, problem(), np.zeros(D), t, KEY)) for t in range(1, 100)}
        assert sizes == {13 if begun.central else 7}


def test_a_given_noise_is_believed_and_not_measured() -> None:
    estimator, rng = zm.methods.GroupMemory(6, noise=1e-3), np.random.default_rng(0)
    memory = Remembered(np.zeros(D), radius=0.01, central=True, sd=1e-3)
    query = estimator.ask(memory, problem(), np.zeros(D), 3, KEY)
    assert len(query) == 1 + 4 * 6
    _, after = estimator.tell(memory, query, 1e-3 * rng.normal(size=len(query)))
    assert after.sd == 1e-3
    assert after.radius == pytest.approx(1.25 * 0.01), "no more than noise is seen"


def test_two_sided_differences_use_more_groups_where_there_are_many_coordinates() -> None:
    for d, groups in ((5, 5), (100, 10), (150, 15), (1_000, 20)):
        memory = Remembered(np.zeros(d), radius=0.01, central=True, drowned=True)
        assert len(zm.methods.GroupMemory(10).ask(memory, problem(d), np.zeros(d), 1, KEY)) == 1 + 2 * groups
        less = replace(memory, drowned=False)
        assert len(zm.methods.GroupMemory(10).ask(less, problem(d), np.zeros(d), 1, KEY)) == 1 + 2 * min(10, d)


@pytest.mark.parametrize(("sd", "drowned"), [(3e-4, False), (0.1, True)])
def test_much_noise_is_told_from_little(sd: float, drowned: bool) -> None:
    place, estimator, rng = problem(), zm.methods.GroupMemory(6), np.random.default_rng(0)
    query = estimator.ask(estimator.init(place), place, np.zeros(D), 0, KEY)
    _, memory = estimator.tell(estimator.init(place), query, query.points().sum(axis=1) + sd * rng.normal(size=13))
    assert (memory.central, memory.drowned) == (True, drowned)


def test_a_trial_looks_at_half_the_radius_and_mends_the_radius_by_the_sixth_root() -> None:
    """gap^2 = 100 v: then bias^2 = 16/9 (100 - 5) v, and nu^6 falls by 2 bias^2 / v; below 15 v it grows by 1/4."""
    estimator = zm.methods.GroupMemory(6)
    memory = Remembered(np.zeros(D), radius=0.04, central=True, sd=1e-3)
    radii = [segment.radius for segment in estimator.ask(memory, problem(), np.zeros(D), 35, KEY).segments]
    assert radii[:5] == [0.0, 0.04, -0.04, 0.02, -0.02]
    assert radii[5:] == pytest.approx([1e-6 * i for i in range(1, 13)])
    v = 1e-6 / (2 * 0.04**2)
    for times, factor in ((100, (2 * 16 / 9 * 95) ** (-1 / 6)), (15.1, (2 * 16 / 9 * 10.1) ** (-1 / 6)), (14.9, 1.25)):
        gap = np.full(6, math.sqrt(times * v))
        assert balanced(0.04, 1e-3, gap, 1.0, gap.dtype) == pytest.approx(0.04 * factor, rel=1e-9)
    assert balanced(0.04, 1e-3, np.full(6, 1e9), 1.0, gap.dtype) == pytest.approx(0.01), "a quarter at most"
    assert balanced(0.09, 1e-3, np.zeros(6), 1.0, gap.dtype) == 0.1


def test_the_noise_is_looked_at_again_without_the_slope_and_without_belief_in_everything() -> None:
    noise = 1e-3 * np.random.default_rng(0).normal(size=13)
    seen = float(np.sqrt(np.sum((noise - np.polyval(np.polyfit(range(13), noise, 1), range(13))) ** 2) / 11))
    assert 0.7e-3 < seen < 1.4e-3
    for slope in (0.0, 5.0):
        after = looked_again(2e-3, noise + slope * np.arange(13))
        assert after == pytest.approx(math.sqrt(0.7 * 4e-6 + 0.3 * seen**2), rel=1e-6)
    for off in (1e3, 1e160, np.finfo(np.float64).max):
        noise[4] = off
        assert looked_again(1e-3, noise) == pytest.approx(1e-3 * math.sqrt(0.7 + 0.3 * 10))
    noise[4] = noise[0]
    assert looked_again(1e-3, noise) == 1e-3, "a refused point is read as f(x), and then nothing is known"


def test_a_link_multiplies_the_gradient_and_a_flat_link_is_a_plain() -> None:
    place, slope = problem(), np.random.default_rng(6).normal(size=D)
    plain, linked = zm.methods.GroupMemory(5, noise=0.0), zm.methods.GroupMemory(5, noise=0.0, link=Hinge())
    x = slope / 10  # <slope, x> > 0: before the kink
    for sign, expected in ((1.0, 1.0), (-1.0, 0.0)):
        query = plain.ask(plain.init(place), place, sign * x, 0, KEY)
        values = query.points() @ slope
        (f, g), _ = plain.tell(plain.init(place), query, values)
        (loss, h), memory = linked.tell(linked.init(place), query, values)
        assert g is not None
        assert h is not None
        np.testing.assert_array_equal(h, expected * g)
        assert loss == max(f, 0.0)
        assert memory.flat == (expected == 0)


def quadratic(d: int = 200) -> tuple[Any, NDArray[np.float64]]:
    x_star = np.zeros(d)
    x_star[::20] = np.random.default_rng(8).choice([-1.0, 1.0], d // 20)
    return (lambda X: 0.5 * np.square(X - x_star).sum(axis=1)), x_star


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_multiplying_the_objective_changes_nothing(factor: float) -> None:
    """Not bit for bit, for the rounding differs; but the iterates are the same to many digits."""
    f, x_star = quadratic()
    start = np.full(x_star.size, 0.1)
    settings: dict[str, Any] = {"bounds": (-2, 2), "budget": 3000, "rng": 1, "noise": 0.0}
    plain = zm.minimize(f, start, l1=0.02, l2=0.01, **settings)
    scaled = zm.minimize(lambda X: factor * f(X), start, l1=0.02 * factor, l2=0.01 * factor, **settings)
    np.testing.assert_allclose(scaled.x, plain.x, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_rescaling_x_changes_nothing(factor: float) -> None:
    f, x_star = quadratic()
    start = np.full(x_star.size, 0.1)
    settings: dict[str, Any] = {"budget": 3000, "rng": 1, "noise": 0.0}
    plain = zm.minimize(f, start, l1=0.02, bounds=(-2, 2), **settings)
    scaled = zm.minimize(
        lambda X: f(X / factor), factor * start, l1=0.02 / factor, bounds=(-2 * factor, 2 * factor), **settings
    )
    np.testing.assert_allclose(scaled.x / factor, plain.x, rtol=1e-4, atol=1e-6)


def test_the_default_solves_a_sparse_quadratic_with_exact_zeros() -> None:
    f, x_star = quadratic()
    best = np.sign(x_star) * np.maximum(np.abs(x_star) - 0.02, 0)
    least = float(f(best[None])[0] + 0.02 * np.abs(best).sum())
    result = zm.minimize(f, np.zeros(x_star.size), l1=0.02, bounds=(-2, 2), budget=8000, rng=0)
    assert result.fun == pytest.approx(least, rel=1e-3)
    assert np.count_nonzero(result.x) < 2 * np.count_nonzero(x_star)


def test_noise_does_not_keep_the_default_from_the_optimum() -> None:
    f, x_star = quadratic()
    rng = np.random.default_rng(3)
    best = np.sign(x_star) * np.maximum(np.abs(x_star) - 0.02, 0)
    least = float(f(best[None])[0] + 0.02 * np.abs(best).sum())
    noisy = zm.minimize(
        lambda X: f(X) + 1e-3 * rng.normal(size=len(X)),
        np.zeros(x_star.size),
        l1=0.02,
        bounds=(-2, 2),
        budget=8000,
        rng=0,
    )
    reached = float(f(noisy.x[None])[0] + 0.02 * np.abs(noisy.x).sum())
    assert reached < 1.05 * least


def test_scale_free_step_begins_at_the_first_gradient_that_stands_out() -> None:
    rule = zm.methods.ScaleFree(c=1.0, floor=0.1)
    memory, x, y = rule.init(), np.zeros(3), np.array([1.0, 0.0, 0.0])
    assert rule.eta(memory, np.zeros(3)) == 0.1
    assert zm.methods.ScaleFree(first=2.0).eta(memory, np.array([0.0, -5.0, 2.0])) == 10.0
    memory = rule.advance(memory, zm.methods.Entropy(), x, y, 0.1)
    assert rule.eta(memory, np.array([0.0, -5.0, 2.0])) == 5.0
    memory = rule.advance(memory, zm.methods.Entropy(), x, y, 5.0)
    assert rule.eta(memory, np.zeros(3)) == pytest.approx(5.0 * math.hypot(1, 0.5))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch_size": 0}, "batch_size >= 1"),
        ({"scale": 0.0}, "scale > 0"),
        ({"rho": 1.0}, "rho < 1"),
        ({"gain": 1.5}, "gain <= 1"),
        ({"gain": 0}, "gain"),
        ({"radius": -1.0}, "radius > 0"),
        ({"noise": -1.0}, "noise >= 0"),
        ({"opening": -1}, "opening >= 1"),
        ({"opening": 1.5}, "opening to be an integer"),
        ({"opening": None}, "opening to be an integer"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises((zm.errors.ArgumentError, zm.errors.ArgumentTypeError), match=sentence):
        zm.methods.GroupMemory(**options)


def test_a_problem_without_a_free_coordinate_is_refused() -> None:
    def never(points: Any) -> Any:
        raise AssertionError("nothing is asked")

    with pytest.raises(zm.errors.ArgumentError, match="none that can move: widen the bounds"):
        zm.minimize(never, np.full(4, 0.5), bounds=(0.5, 0.5), budget=100)


@pytest.mark.parametrize("x", [np.array([5e-324]), np.full(20, 1e-45, np.float32), np.array([0.0, 1e-310])])
def test_an_x_that_is_nearly_nothing_is_moved_like_0(x: Any) -> None:
    place, estimator = (
        zm.methods.Problem(x.size, x.dtype, zm.methods.ElasticNet(0.1), zm.methods.Box()),
        zm.methods.GroupMemory(6),
    )
    query = estimator.ask(estimator.init(place), place, x, 0, KEY)
    assert np.isfinite(query.points()).all()
