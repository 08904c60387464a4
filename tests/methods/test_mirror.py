"""Mirror steps: against fifty digits, against a scalar minimiser, against their optimality condition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize_scalar

import zomirror as zm
from tests.conftest import MIRRORS, phi_entropy
from tests.numerics.test_entropy import exact, strict
from zomirror.methods.mirror import CHUNK, MirrorMap
from zomirror.numerics.arrays import Array

pytestmark = pytest.mark.usefixtures("loops")

SEPARABLE = [zm.methods.Entropy(), zm.methods.Entropy(width=0.2), zm.methods.Euclidean()]


def one_coordinate(
    mirror: MirrorMap, d: int, x: float, g: float, eta: float, h: zm.methods.ElasticNet
) -> Callable[[float], float]:
    """One coordinate's share of <g, y> + h(y) + eta B(y, x), as a function of y."""

    b = mirror.width / d if isinstance(mirror, zm.methods.Entropy) else 0.0

    def phi(y: float) -> float:
        return (abs(y) + b) * math.log1p(abs(y) / b) - abs(y) if b else y * y / 2

    slope = math.copysign(math.log1p(abs(x) / b), x) if b else x

    def objective(y: float) -> float:
        return g * y + h.l1 * abs(y) + h.l2 / 2 * y * y + eta * (phi(y) - phi(x) - slope * (y - x))

    return objective


@pytest.mark.parametrize("mirror", SEPARABLE, ids=str)
def test_no_scalar_minimiser_does_better(mirror: MirrorMap) -> None:
    """Coordinate by coordinate, on random problems: the objective excess is below 1e-12."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        d = int(rng.integers(3, 50))
        lower = -rng.exponential(size=d) * rng.choice([0.0, 1.0, 5.0], d)
        upper = rng.exponential(size=d) * rng.choice([0.0, 1.0, 5.0], d)
        x = rng.uniform(lower, upper)
        g = rng.normal(size=d) * 10 ** rng.uniform(-2, 1)
        eta = float(10 ** rng.uniform(-1, 1))
        h = zm.methods.ElasticNet(*(float(v) for v in rng.exponential(size=2) * rng.choice([0.0, 1.0], 2)))
        with strict():
            y = mirror.step(x, g, eta, h, zm.methods.Box(lower, upper))
        for i in rng.choice(d, 3):
            objective = one_coordinate(mirror, d, float(x[i]), float(g[i]), eta, h)
            reached = objective(float(y[i]))
            if lower[i] < upper[i]:
                sides = (float(lower[i]), float(upper[i]))
                best = minimize_scalar(objective, bounds=sides, method="bounded", options={"xatol": 1e-13})
                assert reached - best.fun < 1e-12 * max(1.0, abs(best.fun))
            assert reached - min(objective(lower[i]), objective(upper[i])) < 1e-12 * max(1.0, abs(reached))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 50, 784])
def test_entropy_step_agrees_with_fifty_digits(d: int, dtype: type[Any]) -> None:
    """The whole step: what z = phi'(x) - g/eta loses to rounding is all that may be added to the solver's error."""
    rng = np.random.default_rng(d)
    eps, worst = float(np.finfo(dtype).eps), 0.0
    for _ in range(8):
        x = (rng.normal(size=d) * rng.choice([0.0, 1e-4, 1.0], d)).astype(dtype)
        g = (rng.normal(size=d) * 10 ** rng.uniform(-1, 3)).astype(dtype)
        eta, l1, l2 = (float(dtype(v)) for v in 10 ** rng.uniform(-1, 2, 3))
        with strict():
            y = zm.methods.Entropy().step(x, g, eta, zm.methods.ElasticNet(l1, l2), zm.methods.Box(-10.0, 10.0))
        for i in rng.choice(d, 8):
            with mp.workdps(50):
                slope = mp.sign(float(x[i])) * mp.log1p(d * abs(mp.mpf(float(x[i]))))
                push = mp.mpf(float(g[i])) / mp.mpf(eta)
                z, a, b = slope - push, mp.mpf(l1) / mp.mpf(eta), mp.mpf(l2) / mp.mpf(eta)
                wanted = exact(z, a, b, d, -10.0, 10.0)
                lost = 4 * eps * (abs(slope) + abs(push) + a)  # of s = |z| - a
                steepness = 1 / (d / (1 + d * abs(wanted)) + b)  # dv/ds
                allowed = lost * steepness + (2e-6 if dtype is np.float32 else 1e-12) * abs(wanted)
                worst = max(worst, float(abs(mp.mpf(float(y[i])) - wanted) / (allowed + mp.mpf(10) ** -300)))
    assert worst <= 1


@pytest.mark.parametrize(
    ("d", "dtype"), [(2, np.float64), (3, np.float64), (10_000, np.float64), (3, np.float32), (40, np.float32)]
)
def test_pnorm_step_meets_its_optimality_condition(d: int, dtype: type[Any]) -> None:
    """-(g + eta (phi'(y) - phi'(x))) is a subgradient of l1 |.|_1 at y."""
    rng = np.random.default_rng(d)
    p = 1 + 1 / (2 * np.log(d))

    def slope(x: Array) -> Array:
        x = x.astype(np.float64)
        norm = np.sum(np.abs(x) ** p) ** (1 / p)
        mapped: Array = np.sign(x) * np.abs(x) ** (p - 1) * norm ** (2 - p) / (p - 1)
        return mapped

    for l1 in (0.0, 0.5, 3.0):
        x = (rng.normal(size=d) * (rng.random(d) < 0.5)).astype(dtype)
        x[0] = 1
        g = rng.normal(size=d).astype(dtype)
        eta = 0.7
        with strict():
            y = zm.methods.PNorm().step(x, g, eta, zm.methods.ElasticNet(l1), zm.methods.Box())
        residual = -(g + eta * (slope(y) - slope(x)))
        scale = np.abs(g).max() + eta * np.abs(slope(x)).max()
        tolerance = (3e-5 if dtype is np.float32 else 1e-12) * scale
        assert y.dtype == dtype
        assert (np.abs(residual[y == 0]) <= l1 + tolerance).all()
        assert np.abs(residual[y != 0] - l1 * np.sign(y[y != 0])).max(initial=0) <= tolerance


@pytest.mark.parametrize("h", [zm.methods.ElasticNet(l2=0.1), zm.methods.ElasticNet(0.1, 0.1)], ids=str)
def test_pnorm_refuses_l2(h: zm.methods.ElasticNet) -> None:
    with pytest.raises(zm.errors.ArgumentError, match=r"expected l2 = 0 and no bounds with PNorm.*use Entropy"):
        zm.methods.PNorm().step(np.ones(3), np.ones(3), 1.0, h, zm.methods.Box())


@pytest.mark.parametrize(
    "box", [zm.methods.Box(0.0, 1.0), zm.methods.Box(lower=0.0), zm.methods.Box(upper=np.array([np.inf, 1.0, np.inf]))]
)
def test_pnorm_refuses_a_box(box: zm.methods.Box) -> None:
    with pytest.raises(ValueError, match="no bounds"):
        zm.methods.PNorm().step(np.ones(3), np.ones(3), 1.0, zm.methods.ElasticNet(), box)


def test_pnorm_power() -> None:
    assert zm.methods.PNorm.power(784) == pytest.approx(1 + 1 / (2 * np.log(784)), rel=1e-15)
    assert zm.methods.PNorm.power(1) == 2.0
    assert 1 < zm.methods.PNorm.power(2) < 2


def test_pnorm_does_not_overflow() -> None:
    x, g = np.array([1e200, -1e-200, 0.0]), np.array([1e150, 1.0, -1e150])
    with strict():
        assert np.isfinite(zm.methods.PNorm().step(x, g, 1.0, zm.methods.ElasticNet(1.0), zm.methods.Box())).all()
    assert zm.methods.PNorm().step(
        np.zeros(3), np.zeros(3), 1.0, zm.methods.ElasticNet(), zm.methods.Box()
    ).tolist() == [0, 0, 0]


VECTORS = hnp.arrays(np.float64, 12, elements=st.floats(-50, 50))


@pytest.mark.parametrize("mirror", SEPARABLE, ids=str)
@given(
    x=VECTORS, g=VECTORS, eta=st.floats(1e-2, 1e3), l1=st.floats(0, 10), l2=st.floats(0, 10), seed=st.integers(0, 99)
)
def test_step_is_firm_about_the_box(
    mirror: MirrorMap, x: Array, g: Array, eta: float, l1: float, l2: float, seed: int
) -> None:
    """Any box, any numbers: the constrained step is the clipped unconstrained one, and clipping changes nothing."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 12)) * rng.choice([0.0, 1.0, 30.0], (2, 12))
    box = zm.methods.Box(np.minimum(a, b), np.maximum(a, b))
    x = box.project(x)
    h = zm.methods.ElasticNet(l1, l2)
    with strict():
        free, inside = mirror.step(x, g, eta, h, zm.methods.Box()), mirror.step(x, g, eta, h, box)
    np.testing.assert_allclose(inside, box.project(free), rtol=1e-12)
    assert (box.project(inside) == inside).all()


@pytest.mark.parametrize("mirror", SEPARABLE, ids=str)
def test_threshold_is_exact(mirror: MirrorMap) -> None:
    """From x = 0 a coordinate stays exactly 0 if and only if |g| <= l1."""
    g = np.array([-1.0, -0.5000001, -0.5, -0.1, 0.0, 0.3, 0.5, 0.5000001, 2.0])
    y = mirror.step(np.zeros(9), g, 1.0, zm.methods.ElasticNet(0.5, 0.1), zm.methods.Box())
    assert (np.sign(y) == np.where(np.abs(g) > 0.5, -np.sign(g), 0)).all()


@pytest.mark.parametrize("size", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_entropy_step_does_not_see_its_chunks(size: int) -> None:
    rng = np.random.default_rng(size)
    x, g = rng.normal(size=(2, size))
    lower, upper = -rng.random(size), rng.random(size)
    h = zm.methods.ElasticNet(0.1, 0.2)
    x = np.clip(x, lower, upper)
    y = zm.methods.Entropy().step(x, g, 2.0, h, zm.methods.Box(lower, upper))
    for i in {0, size // 2, size - 1, min(CHUNK, size - 1)}:
        wanted = exact(np.copysign(np.log1p(size * abs(x[i])), x[i]) - g[i] / 2, 0.05, 0.1, size, lower[i], upper[i])
        assert float(y[i]) == pytest.approx(float(wanted), rel=1e-11)


@pytest.mark.parametrize("mirror", [mirror for mirror, _ in MIRRORS], ids=str)
def test_one_and_two_dimensions(mirror: MirrorMap) -> None:
    for d in (1, 2):
        x, g = np.full(d, 0.3), np.full(d, -1.0)
        with strict():
            y = mirror.step(x, g, 1.0, zm.methods.ElasticNet(0.1), zm.methods.Box())
        assert (y > x).all()
        assert np.isfinite(mirror.movement(x, y))


@pytest.mark.parametrize("width", [0, -1.0, np.nan])
def test_a_width_is_positive(width: float) -> None:
    with pytest.raises(zm.errors.ArgumentError, match="expected width"):
        zm.methods.Entropy(width)


def test_a_width_is_a_change_of_units() -> None:
    """Entropy(width) on x is Entropy() on x / width, with g and l1 unchanged and l2 and the box rescaled."""
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=(2, 30))
    wide = zm.methods.Entropy(width=4.0).step(x, g, 2.0, zm.methods.ElasticNet(0.1, 0.3), zm.methods.Box(-2.0, 1.0))
    unit = zm.methods.Entropy().step(x / 4, g, 2.0, zm.methods.ElasticNet(0.1, 1.2), zm.methods.Box(-0.5, 0.25))
    np.testing.assert_allclose(wide, 4 * unit, rtol=1e-12)


def test_numpy_scalars_keep_the_dtype() -> None:
    x, g = np.ones(4, np.float32), np.ones(4, np.float32)
    for mirror, _ in MIRRORS:
        assert (
            mirror.step(x, g, np.float64(2.0), zm.methods.ElasticNet(np.float64(0.1)), zm.methods.Box()).dtype
            == np.float32
        )


# --- strong convexity (Lemma 5) ---------------------------------------------------------------------------------


def divergence(y: Array, x: Array, width: float = 1.0) -> float:
    slope = np.copysign(np.log1p(x.size / width * np.abs(x)), x)
    return phi_entropy(y, width) - phi_entropy(x, width) - float(slope @ (y - x))


@given(
    d=st.integers(3, 200),
    scale=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    sparsity=st.floats(0.05, 1),
    seed=st.integers(0, 2**32),
    width=st.sampled_from([1.0, 0.1, 5.0]),
)
def test_entropy_is_strongly_convex_with_the_corrected_constant(
    d: int, scale: float, sparsity: float, seed: int, width: float
) -> None:
    """B(y, x) >= |y - x|_1^2 / (2 (max(|x|_1, |y|_1) + width)), that is movement(x, y) |y - x|_1 / 2."""
    rng = np.random.default_rng(seed)
    x, y = scale * rng.normal(size=(2, d)) * (rng.random((2, d)) < sparsity)
    bound = zm.methods.Entropy(width).movement(x, y) * float(np.abs(y - x).sum()) / 2
    radius = max(np.abs(x).sum(), np.abs(y).sum())
    assert bound == pytest.approx(np.abs(y - x).sum() ** 2 / (2 * (radius + width)), rel=1e-12)
    rounding = 1e-13 * (1 + phi_entropy(x, width) + phi_entropy(y, width))
    assert divergence(y, x, width) >= bound * (1 - 1e-9) - rounding


def test_the_printed_constant_fails() -> None:
    """Twice the constant, as Lemma 5 prints it, is refuted by a small move spread over all coordinates."""
    d = 100
    x, y = np.zeros(d), np.full(d, 0.1 / d)
    corrected = 0.1**2 / (2 * (0.1 + 1))
    assert corrected <= divergence(y, x) < 2 * corrected
    assert divergence(y, x) == pytest.approx(1.1 * np.log(1.1) - 0.1, rel=1e-12)


def test_movements_by_hand() -> None:
    x, y = np.array([1.0, -2.0, 0.0]), np.array([0.0, -2.0, 4.0])
    assert zm.methods.Entropy().movement(x, y) == pytest.approx(5 / (6 + 1), rel=1e-15)
    assert zm.methods.Entropy(width=0.5).movement(x, y) == pytest.approx(5 / (6 + 0.5), rel=1e-15)
    assert zm.methods.Euclidean().movement(x, y) == pytest.approx(np.sqrt(17), rel=1e-15)
    p = zm.methods.PNorm.power(3)
    assert zm.methods.PNorm().movement(x, y) == pytest.approx((1 + 4**p) ** (1 / p), rel=1e-14)


def test_float32_movements_are_added_up_in_float64() -> None:
    """A million entries of 1/3: added up in float32, one after the other, the sum would be off in its third digit."""
    x, y = np.zeros(1_000_000, np.float32), np.full(1_000_000, 1 / 3, np.float32)
    third = float(np.float32(1 / 3))
    total = third * x.size
    assert zm.methods.Entropy().movement(x, y) == pytest.approx(total / (total + 1), rel=1e-12)
    assert zm.methods.Euclidean().movement(x, y) == pytest.approx(
        third * math.sqrt(x.size), rel=1e-7
    )  # squares are float32
