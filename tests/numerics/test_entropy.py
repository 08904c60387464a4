"""The equation log1p(d v) + b v = s against fifty digits, over all that a run can meet."""

from __future__ import annotations

from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zomirror as zm
from zomirror.numerics.arrays import Array
from zomirror.numerics.entropy import Equation, Side, entropy_step

pytestmark = pytest.mark.usefixtures("loops")

DIMENSIONS = (3, 10, 784, 10**5, 10**7)
RATIOS = (0.0, 1e-30, 1e-16, 1e-8, 1e-3, 0.1, 1.0, 30.0, 1e4, 1e6)  # l2 / eta
BOXES = (
    (-np.inf, np.inf),
    (0.0, np.inf),
    (-np.inf, 0.0),
    (0.0, 1.0),
    (-1.0, 1.0),
    (-1e-3, 1e4),
    (0.25, 0.5),
    (-2.0, -1.0),
    (0.3, 0.3),
    (0.0, 0.0),
)
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}


def solve(z: Array, a: float, b: float, d: float, lower: Side, upper: Side, reach: float = np.inf) -> Array:
    """The step that leads from 0 to z in the mirror's world."""
    return entropy_step(np.zeros_like(z), -z, Equation.within(d, 1.0, a, b, reach), lower, upper)


def exact_magnitude(s: Any, b: float, d: int) -> Any:
    """The paper's own formula, v = W0(ab exp(ab + s))/b - a with a = 1/d, where nothing is lost."""
    with mp.workdps(120):  # the subtraction costs up to forty of the digits
        b, a = mp.mpf(b), 1 / mp.mpf(d)
        v = mp.expm1(s) * a if b == 0 else mp.lambertw(a * b * mp.exp(a * b + s)).real / b - a
    with mp.workdps(50):
        return +v


def exact(z: float, a: float, b: float, d: int, lower: float, upper: float) -> Any:
    s = abs(mp.mpf(z)) - mp.mpf(a)
    v = mp.sign(z) * exact_magnitude(s, b, d) if s > 0 else mp.mpf(0)
    return min(max(v, mp.mpf(lower)), mp.mpf(upper))


def relative_error(found: Any, wanted: Any) -> float:
    if wanted == 0:
        return 0.0 if found == 0 else np.inf
    return float(abs((mp.mpf(float(found)) - wanted) / wanted))


def strict() -> Any:
    """Every floating-point event but underflow is an error."""
    return np.errstate(all="raise", under="ignore")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_agrees_with_fifty_digits(d: int, dtype: type[Any]) -> None:
    rng = np.random.default_rng(d)
    largest = float(np.finfo(dtype).max) / (4 * d)  # without a side to end at, v grows like e^s / d
    worst = 0.0
    small, middling, large = 10 ** rng.uniform(-12, 1.2, 30), rng.uniform(0, 88, 30), 10 ** rng.uniform(-2, 4, 10)
    for b, s in product((float(dtype(b)) for b in RATIOS), (small, middling, large)):
        z = (rng.permutation(s)[:8] * rng.choice([-1, 1], 8)).astype(dtype)
        with strict():
            y = solve(z, 0.0, b, d, -np.inf, np.inf)
        assert y.dtype == dtype
        for zi, yi in zip(z, y, strict=True):
            wanted = exact(float(zi), 0.0, b, d, -np.inf, np.inf)
            if abs(wanted) < largest:
                worst = max(worst, relative_error(yi, wanted))
            else:
                assert abs(yi) >= largest / 4
    assert 0 < worst <= TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("box", BOXES, ids=str)
def test_agrees_with_fifty_digits_in_every_box(box: tuple[float, float], dtype: type[Any]) -> None:
    rng = np.random.default_rng(1)
    lower, upper = (float(dtype(side)) for side in box)
    worst = 0.0
    for d, b in product((3, 784, 10**7), (0.0, 1e-3, 1.0, 1e6)):
        a = float(dtype(0.25))
        z = np.concatenate([rng.uniform(-12, 12, 6), 10 ** rng.uniform(-3, 4, 3), [-1e4, 1e4, 0.0]]).astype(dtype)
        with strict():
            y = solve(z, a, b, d, lower, upper, zm.methods.Box(lower, upper).reach)
        assert y.dtype == dtype
        assert ((y >= lower) & (y <= upper)).all()
        for zi, yi in zip(z, y, strict=True):
            wanted = exact(float(zi), a, b, d, lower, upper)
            if abs(wanted) < float(np.finfo(dtype).max) / (4 * d):
                worst = max(worst, relative_error(yi, wanted))
    assert worst <= TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("b", [0.0, 5e-324, 2e-309, 4e-307, 1e-300, 1e-12, 1.0, 1e6])
def test_beyond_the_range_it_ends_finite(b: float, dtype: type[Any]) -> None:
    z = np.array([89.0, -89.0, 709.0, 720.0, -740.0, 5000.0, -1e4, 1e4], dtype)
    with strict():
        y = solve(z, 0.0, b, 10, -np.inf, np.inf)
    assert np.isfinite(y).all()
    assert (np.sign(y) == np.sign(z)).all()
    assert (np.diff(np.abs(y[2:])) >= 0).all()


def test_sides_as_arrays_equal_sides_as_numbers() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 4, 400)
    lower, upper = -rng.random(400), rng.random(400)
    together = solve(z, 0.5, 0.3, 400, lower, upper, 1.0)
    singly = [solve(z[i : i + 1], 0.5, 0.3, 400, float(lower[i]), float(upper[i]))[0] for i in range(400)]
    np.testing.assert_allclose(together, singly, rtol=1e-14)
    assert ((together == 0) == (np.array(singly) == 0)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("b", [5e-324, 1e-310, 1e-200, 1e-100, 1e-45, 1e-38])
def test_a_vanishing_b_is_no_b(b: float, dtype: type[Any]) -> None:
    """b/d that the type cannot hold, or can hold only without digits, must not divide by zero."""
    z = np.array([1e-3, 1.0, 20.0, 80.0], dtype)
    with strict():
        np.testing.assert_allclose(solve(z, 0.0, b, 1000, -np.inf, np.inf), np.expm1(z.astype(float)) / 1000, rtol=2e-6)


FLOATS = st.sampled_from([np.float32, np.float64])


@given(
    dtype=FLOATS,
    d=st.integers(3, 10**7),
    b=st.one_of(st.just(0.0), st.floats(1e-10, 1e6)),
    a=st.floats(0, 100, width=32),
    z=st.floats(-1e4, 1e4, width=32),
)
def test_is_zero_exactly_below_the_threshold_and_only_there(
    dtype: type[Any], d: int, b: float, a: float, z: float
) -> None:
    with strict():
        [y] = solve(np.array([z], dtype), a, b, d, -np.inf, np.inf)
    if abs(z) <= a:
        assert y == 0
    elif abs(z) - a > 1e-30:  # a smaller answer may underflow
        assert np.sign(y) == np.sign(z)


@given(dtype=FLOATS, d=st.integers(3, 10**7), b=st.floats(0, 1e6), seed=st.integers(0, 2**32))
def test_is_odd_and_increasing_in_z(dtype: type[Any], d: int, b: float, seed: int) -> None:
    z = np.sort(np.random.default_rng(seed).uniform(0, 80, 50)).astype(dtype)
    with strict():
        y, mirrored = solve(z, 0.5, b, d, -np.inf, np.inf), solve(-z, 0.5, b, d, -np.inf, np.inf)
    assert (y == -mirrored).all()
    # Equal up to the last digits is as good as increasing.
    assert (np.diff(y) >= -4 * np.finfo(dtype).eps * y[1:] * 80).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gradient_that_is_not_finite_is_not_hidden(dtype: type[Any]) -> None:
    z = np.array([1.0, np.nan, 0.0, np.inf, -np.inf], dtype)
    for bound in (1.0, np.inf):
        y = solve(z, 0.5, 0.3, 3, -bound, bound, bound)
        assert np.isnan(y).tolist() == [False, True, False, False, False]
        assert y[3:].tolist() == [bound, -bound]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("b", [1e16, 1e19, 1e25, 1e37, 1e149, 1e155, 1e200, 1e300])
def test_a_strong_b_leaves_s_over_b(b: float, dtype: type[Any]) -> None:
    z = np.array([1e-20, 1e-3, 1.0, 10.0], dtype)
    with np.errstate(under="ignore", over="ignore"):
        y = solve(z, 0.0, b, 1, -np.inf, np.inf)
        np.testing.assert_allclose(y, z / dtype(b), rtol=4 * np.finfo(dtype).eps, atol=1e-37 if b > 1e16 else 0)


@given(dtype=FLOATS, d=st.integers(1, 10**6), bound=st.floats(1e-6, 1e6), b=st.floats(1e-6, 1e12))
def test_what_is_pulled_beyond_a_bound_ends_at_it(dtype: type[Any], d: int, bound: float, b: float) -> None:
    side = float(dtype(bound))
    y = solve(np.array([1e37, -1e37], dtype), 0.0, b, d, -side, side, side)
    assert y.tolist() == [side, -side]


def test_input_is_left_alone() -> None:
    z = np.linspace(-3, 3, 20)
    z.flags.writeable = False
    solve(z, 0.5, 0.3, 20, -1.0, 1.0)
    assert (z == np.linspace(-3, 3, 20)).all()
