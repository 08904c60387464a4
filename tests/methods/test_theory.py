"""The lemmas of the paper, checked by numbers; those on Rademacher directions exactly, over all 2^d of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import zomirror as zm
from tests.methods.test_estimator import told
from zomirror.numerics.arrays import Array, Values
from zomirror.numerics.random import Key, key_of

D = 8


@dataclass(frozen=True)
class AllSigns:
    """Every vector of signs in turn: a batch of 2^d of them makes an expectation a sum."""

    def delta(self, d: int) -> float:
        return 1.0

    def fill(self, out: Array, key: Key, t: int, start: int, scale: float) -> None:
        number = t + start + np.arange(len(out))
        out[:] = scale * (1.0 - 2.0 * ((number[:, None] >> np.arange(out.shape[1])) & 1))


@dataclass(frozen=True)
class Waves:
    """f(x) = sum_k c_k cos(<a_k, x>): nonconvex, and L-smooth in |.|_2 with L = sum_k |c_k| |a_k|_2^2."""

    a: Values
    c: Values

    def __call__(self, points: Array) -> Values:
        values: Values = np.cos(points @ self.a.T) @ self.c
        return values

    def gradient(self, x: Array) -> Values:
        slope: Values = -(np.sin(self.a @ x) * self.c) @ self.a
        return slope

    @property
    def smoothness(self) -> float:
        return float(np.abs(self.c) @ np.square(self.a).sum(axis=1))


def waves(seed: int) -> tuple[Waves, Array]:
    rng = np.random.default_rng(seed)
    return Waves(rng.normal(size=(3, D)) / 3, rng.normal(size=3)), rng.normal(size=D)


def estimates(f: Waves, x: Array, nu: float, tilt: Values | None = None) -> Values:
    """The estimate of every single direction; `tilt` is a random draw's gradient of its own."""
    problem = zm.methods.Problem(D, np.dtype(np.float64), zm.methods.ElasticNet(), zm.methods.Box())
    one = zm.methods.TwoPoint(1, AllSigns(), nu)
    found = []
    for t in range(2**D):
        query = one.ask(None, problem, x, t, (0, 0))
        points = query.points()
        values = f(points) + (0 if tilt is None else points @ tilt)
        found.append(told(one, query, values))
    return np.array(found)


SETTINGS = [(seed, nu) for seed in range(4) for nu in (1e-4, 1e-2, 0.3)]


@pytest.mark.parametrize(("seed", "nu"), SETTINGS)
def test_lemma_2a_bias(seed: int, nu: float) -> None:
    """|E g - grad f(x)|_inf <= nu d L / 2."""
    f, x = waves(seed)
    problem = zm.methods.Problem(D, np.dtype(np.float64), zm.methods.ElasticNet(), zm.methods.Box())
    everything = zm.methods.TwoPoint(2**D, AllSigns(), nu)
    query = everything.ask(None, problem, x, 0, (0, 0))
    mean = told(everything, query, f(query.points()))
    np.testing.assert_allclose(mean, estimates(f, x, nu).mean(axis=0), rtol=1e-7, atol=1e-9)
    bias = float(np.abs(mean - f.gradient(x)).max())
    assert bias <= nu * D * f.smoothness / 2
    assert bias > 0


@pytest.mark.parametrize(("seed", "nu"), SETTINGS)
def test_lemma_2b_second_moment(seed: int, nu: float) -> None:
    """E |g|_inf^2 <= nu^2 d^2 L^2 / 2 + 2 |grad f(x)|_2^2."""
    f, x = waves(seed)
    moment = np.square(np.abs(estimates(f, x, nu)).max(axis=1)).mean()
    slope = float(np.square(f.gradient(x)).sum())
    assert moment <= nu**2 * D**2 * f.smoothness**2 / 2 + 2 * slope
    if nu == 1e-4:  # E <grad, u>^2 = |grad|_2^2: what remains without smoothing error
        assert moment == pytest.approx(slope, rel=1e-2)


@pytest.mark.parametrize(("seed", "nu"), SETTINGS[:6])
@pytest.mark.parametrize("noise", [0.0, 0.5, 5.0])
def test_lemma_3_variance(seed: int, nu: float, noise: float) -> None:
    """E |g - grad f(x)|_inf^2 <= 3 nu^2 d^2 L^2 / 2 + 10 |grad f(x)|_2^2 + 8 sigma^2, over directions and draws."""
    f, x = waves(seed)
    draws = [noise * np.eye(D)[0], -noise * np.eye(D)[0], noise * np.eye(D)[5], -noise * np.eye(D)[5]]
    slope = f.gradient(x)
    errors = np.concatenate([estimates(f, x, nu, tilt) - slope for tilt in draws])
    variance = np.square(np.abs(errors).max(axis=1)).mean()
    bound = 1.5 * nu**2 * D**2 * f.smoothness**2 + 10 * float(slope @ slope) + 8 * noise**2
    assert 0 < variance <= bound


def deviations(d: int, m: int, batches: int) -> Values:
    """|mean of m estimates - gradient|_inf^2 of a linear function, once for each batch."""
    slope = np.random.default_rng(d).normal(size=d)
    problem = zm.methods.Problem(d, np.dtype(np.float64), zm.methods.ElasticNet(), zm.methods.Box())
    estimator = zm.methods.TwoPoint(m, zm.methods.rademacher, 0.5)
    found = []
    for t in range(batches):
        query = estimator.ask(None, problem, np.zeros(d), t, key_of(m))
        gradient = told(estimator, query, query.points() @ slope)
        found.append(np.abs(gradient - slope).max() ** 2)
    return np.array(found)


@pytest.mark.parametrize("d", [3, 30, 784])
@pytest.mark.parametrize("m", [4, 30])
def test_lemma_4_mini_batch_in_the_max_norm(d: int, m: int) -> None:
    """E |mean - gradient|_inf^2 <= e (2 ln d - 1) sigma^2 / m: the batch pays for ln d, not for d."""
    sigma2 = deviations(d, 1, 300).mean()
    shrunk = deviations(d, m, 100).mean()
    assert shrunk <= math.e * (2 * math.log(d) - 1) * sigma2 / m
    assert shrunk > sigma2 / m / 10


def test_lemma_4_variance_falls_like_one_over_m() -> None:
    assert deviations(100, 10, 200).mean() / deviations(100, 40, 200).mean() == pytest.approx(4, rel=0.25)


def test_smoothing_with_normal_directions_has_the_gradient_of_the_smoothed_function() -> None:
    """For a quadratic, f(x + nu u) averages to f(x) plus a constant: the estimate is unbiased at any radius."""
    d = 5
    problem = zm.methods.Problem(d, np.dtype(np.float64), zm.methods.ElasticNet(), zm.methods.Box())
    x = np.linspace(-1, 1, d)
    for directions in (zm.methods.gaussian, zm.methods.sphere, zm.methods.rademacher):
        estimator = zm.methods.TwoPoint(20_000, directions, 0.7)
        query = estimator.ask(None, problem, x, 0, key_of(1))
        gradient = told(estimator, query, np.square(query.points()).sum(axis=1))
        np.testing.assert_allclose(gradient, 2 * x, atol=0.3)
