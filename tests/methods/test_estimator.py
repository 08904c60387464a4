"""The two-point estimator: its formula, its layout, its options."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.conftest import DIRECTIONS
from zomirror.methods.directions import Directions
from zomirror.methods.query import Query
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.random import key_of
from zomirror.testing import check_estimator

pytestmark = pytest.mark.usefixtures("loops")

KEY = key_of(5)


def problem(
    d: int, *, dtype: Any = np.float64, box: zm.methods.Box | None = None, stochastic: bool = False
) -> zm.methods.Problem:
    return zm.methods.Problem(
        d, np.dtype(dtype), zm.methods.ElasticNet(), box or zm.methods.Box(), stochastic=stochastic
    )


def quadratic(points: Array) -> Values:
    values: Values = (points.astype(np.float64) ** 2).sum(axis=1) + points[:, 0]
    return values


def told(estimator: zm.methods.TwoPoint, query: Query, values: Values) -> Array:
    """The gradient that the values give; two-point estimators never want to ask again."""
    gradient = estimator.tell(None, query, values)[0].gradient
    assert gradient is not None
    return gradient


def gradient(estimator: zm.methods.TwoPoint, p: zm.methods.Problem, x: Array, t: int = 0) -> Array:
    query = estimator.ask(None, p, x, t, KEY)
    return told(estimator, query, quadratic(query.points()))


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_the_formula(directions: Directions) -> None:
    """g = delta/(m nu) sum_j (f(x + nu u_j) - f(x)) u_j, written out."""
    m, d, nu = 13, 6, 0.01
    x = np.linspace(0, 1, d)
    u = np.empty((m, d))
    directions.fill(u, KEY, 2, 0, 1.0)
    differences = quadratic(x + nu * u) - quadratic(x[None])
    wanted = directions.delta(d) / (m * nu) * differences @ u
    query = zm.methods.TwoPoint(m, directions, nu).ask(None, problem(d), x, 2, KEY)
    (f, found), memory = zm.methods.TwoPoint(m, directions, nu).tell(None, query, quadratic(query.points()))
    assert found is not None
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert f == quadratic(x[None])[0]
    assert memory is None


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_unbiased_within_three_standard_errors_on_a_linear_function(directions: Directions) -> None:
    d, batches = 8, 500
    slope = np.random.default_rng(1).normal(size=d)
    estimator, p, x = zm.methods.TwoPoint(4, directions, 0.1), problem(d), np.zeros(d)
    found = []
    for t in range(batches):
        query = estimator.ask(None, p, x, t, KEY)
        found.append(told(estimator, query, query.points() @ slope))
    error = np.std(found, axis=0, ddof=1) / math.sqrt(batches)
    assert (np.abs(np.mean(found, axis=0) - slope) <= 3 * error).all()
    assert (error < 0.5).all()


@pytest.mark.parametrize(
    ("rule", "d", "m", "nu"),
    [
        (zm.methods.EntropyRadius(), 784, 200, 7.38e-4),
        (zm.methods.EuclideanRadius(), 784, 200, 2.53e-3),
        (zm.methods.EntropyRadius(), 3072, 200, 2.08e-4),
        (zm.methods.EuclideanRadius(), 3072, 200, 1.28e-3),
    ],
)
def test_radius_of_the_paper(rule: Any, d: int, m: int, nu: float) -> None:
    assert rule(d, m) == pytest.approx(nu, rel=5e-3)


def test_radius_formulas() -> None:
    assert zm.methods.EntropyRadius()(50, 7) == pytest.approx(
        math.sqrt(2 * math.e * (2 * math.log(50) - 1) / 7) / 50, rel=1e-15
    )
    assert zm.methods.EuclideanRadius()(50, 7) == pytest.approx(1 / math.sqrt(350), rel=1e-15)


@pytest.mark.parametrize("d", [1, 2])
def test_radius_below_three_dimensions_uses_the_logarithm_of_three(d: int) -> None:
    """2 ln d - 1 is negative at d = 1."""
    assert zm.methods.EntropyRadius()(d, 10) == pytest.approx(math.sqrt(2 * math.e * (2 * math.log(3) - 1) / 10) / d)


@pytest.mark.parametrize("directions", DIRECTIONS, ids=str)
def test_points_do_not_depend_on_the_block_size_and_the_gradient_only_by_rounding(directions: Directions) -> None:
    x, p = np.linspace(-1, 1, 37), problem(37)
    whole = zm.methods.TwoPoint(20, directions, 0.01)
    wanted = gradient(whole, p, x)
    for max_block_bytes in (1, 300, 4000):
        pieces = replace(whole, max_block_bytes=max_block_bytes)
        a, b = whole.ask(None, p, x, 0, KEY), pieces.ask(None, p, x, 0, KEY)
        assert a.points().tobytes() == b.points().tobytes()
        assert len(list(b.blocks())) > 1
        np.testing.assert_allclose(gradient(pieces, p, x), wanted, rtol=1e-12, atol=1e-12)


def test_free_only_never_moves_a_fixed_coordinate() -> None:
    box = zm.methods.Box(np.array([0.0, 0.5, 0.0, 1.0]), np.array([1.0, 0.5, 1.0, 1.0]))
    p, x = problem(4, box=box), np.array([0.2, 0.5, 0.8, 1.0])
    query = zm.methods.TwoPoint(50, free_only=True).ask(None, p, x, 0, KEY)
    assert (query.points()[:, [1, 3]] == x[[1, 3]]).all()
    assert (query.points()[1:, [0, 2]] != x[[0, 2]]).all()
    g = gradient(zm.methods.TwoPoint(50, free_only=True), p, x)
    assert g[[1, 3]].tolist() == [0, 0]
    moved = zm.methods.TwoPoint(50).ask(None, p, x, 0, KEY).points()
    assert (moved[1:] != x).all(), "the presets perturb every coordinate, as the paper does"


def test_free_only_changes_nothing_when_everything_is_free() -> None:
    x, p = np.linspace(-1, 1, 9), problem(9)
    a, b = (zm.methods.TwoPoint(10, free_only=on).ask(None, p, x, 0, KEY).points() for on in (False, True))
    assert a.tobytes() == b.tobytes()


def test_free_only_removes_the_noise_of_fixed_coordinates() -> None:
    """What fixed coordinates contribute to the differences is pure noise in the others."""
    d = 100
    fixed = np.arange(d) >= 10
    box = zm.methods.Box(np.where(fixed, 0.0, -5.0), np.where(fixed, 0.0, 5.0))
    p, slope = problem(d, box=box), np.ones(d)

    def spread(estimator: zm.methods.TwoPoint) -> float:
        errors = []
        for t in range(100):
            query = estimator.ask(None, p, np.zeros(d), t, KEY)
            errors.append(told(estimator, query, query.points() @ slope)[:10] - 1)
        return float(np.square(errors).mean())

    assert spread(zm.methods.TwoPoint(5, free_only=True)) < spread(zm.methods.TwoPoint(5)) / 5


def test_clip_keeps_the_points_inside_and_halves_the_slope_at_a_side() -> None:
    """The bias that the docstring states: at the side only half of the differences are seen."""
    d, m = 4, 4000
    p, x = problem(d, box=zm.methods.Box(0.0, 1.0)), np.array([0.0, 0.5, 0.5, 1.0])
    slope = np.array([1.0, 2.0, -1.0, 3.0])
    found = {}
    for clip in (False, True):
        query = zm.methods.TwoPoint(m, radius=0.1, clip=clip).ask(None, p, x, 0, KEY)
        points = query.points()
        inside = ((points >= 0) & (points <= 1)).all()
        assert inside == clip
        found[clip] = told(zm.methods.TwoPoint(m, radius=0.1, clip=clip), query, points @ slope)
    np.testing.assert_allclose(found[False], slope, atol=0.3)
    np.testing.assert_allclose(found[True], slope * [0.5, 1, 1, 0.5], atol=0.3)


def test_layout_of_a_stochastic_query() -> None:
    x, p = np.linspace(0, 1, 5), problem(5, stochastic=True)
    query = zm.methods.TwoPoint(6, radius=0.1).ask(None, p, x, 3, KEY)
    points = query.points()
    assert len(query) == 12
    assert (points[:6] == x).all()
    assert (points[6:] != x).all()
    assert query.samples().tolist() == [*range(18, 24), *range(18, 24)], "rows j and m + j share the draw t m + j"


def test_noise_of_shared_draws_cancels_exactly() -> None:
    x, p = np.linspace(0, 1, 5), problem(5, stochastic=True)
    estimator = zm.methods.TwoPoint(6, radius=0.125)
    query = estimator.ask(None, p, x, 3, KEY)
    # Integers and a radius that is a power of two: nothing is rounded, so nothing may remain.
    quiet = np.round(query.points().sum(axis=1) * 64)
    noise = np.random.default_rng(0).integers(-(10**6), 10**6, 24)[query.samples()]
    assert told(estimator, query, quiet).tobytes() == told(estimator, query, quiet + noise).tobytes()
    assert estimator.tell(None, query, quiet + noise)[0].f == np.mean((quiet + noise)[:6])


def test_float32_stays() -> None:
    x = np.linspace(0, 1, 16).astype(np.float32)
    query = zm.methods.TwoPoint(8).ask(None, problem(16, dtype=np.float32), x, 0, KEY)
    assert query.points().dtype == np.float32
    assert told(zm.methods.TwoPoint(8), query, quadratic(query.points())).dtype == np.float32


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"batch_size": 0}, ValueError, "batch_size >= 1, got 0"),
        ({"batch_size": 2.0}, TypeError, "batch_size to be an integer, got 2.0"),
        ({"batch_size": True}, TypeError, "batch_size to be an integer, got True"),
        ({"radius": 0.0}, ValueError, "radius > 0, got 0.0"),
        ({"radius": -1}, ValueError, "radius > 0, got -1"),
        ({"radius": np.nan}, ValueError, "radius to be finite, got nan"),
        ({"radius": "small"}, TypeError, "radius to be a number, got 'small'"),
        ({"max_block_bytes": 0}, ValueError, "max_block_bytes >= 1, got 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence) as caught:
        zm.methods.TwoPoint(**options)
    assert isinstance(caught.value, zm.errors.ZomirrorError)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'batchsize'"):
        zm.methods.TwoPoint(batchsize=3)  # type: ignore[call-arg]


def test_numpy_numbers_become_plain_ones() -> None:
    small: Any = np.uint8(200)
    radius: Any = np.float32(0.5)
    estimator = zm.methods.TwoPoint(small, radius=radius)
    assert (type(estimator.batch_size), type(estimator.radius)) == (int, float)
    assert len(estimator.ask(None, problem(3), np.zeros(3), 0, KEY)) == 201


def test_a_foreign_query_is_refused() -> None:
    query = zm.methods.TwoPoint(3).ask(None, problem(3), np.zeros(3), 0, KEY)
    foreign = Query((query.segments[0], query.segments[0]))
    with pytest.raises(zm.errors.ArgumentError, match="expected the query that ask"):
        zm.methods.TwoPoint(3).tell(None, foreign, np.zeros(2))


def test_a_radius_of_ones_own() -> None:
    class Halved:
        def __call__(self, d: int, batch_size: int) -> float:
            return 0.5 / d

    check_estimator(zm.methods.TwoPoint(5, radius=Halved()))
    points = zm.methods.TwoPoint(5, radius=Halved()).ask(None, problem(4), np.zeros(4), 0, KEY).points()
    assert set(np.abs(points[1:]).ravel()) == {0.125}
