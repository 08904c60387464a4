"""The least elastic-net point beyond half-spaces: optimal, inside its box, and the same bits without the compiler."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize

from zomirror.numerics import kernels
from zomirror.numerics.elastic_point import least_points

Problem = tuple[Any, Any, Any, Any]


def draw(n: int, k: int, d: int, seed: int) -> Problem:
    """Boxes around 0 and beside it, and half-spaces that a point of the box fulfils."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, k, d))
    ends = np.sort(rng.normal(size=(2, n, d)), axis=0)
    inside = ends[0] + rng.random((n, d)) * (ends[1] - ends[0])
    return rows, np.einsum("nkd,nd->nk", rows, inside) - 0.1, ends[0], ends[1]


def penalty(v: Any, l1: float, l2: float) -> Any:
    return l1 * np.abs(v).sum(axis=-1) + l2 / 2 * np.square(v).sum(axis=-1)


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 12), st.integers(0, 1000), st.floats(0, 0.5), st.floats(0.05, 2))
def test_no_multiplier_is_better(k: int, d: int, seed: int, l1: float, l2: float) -> None:
    """Weak duality: the Lagrangian at its minimiser bounds the penalty of every feasible point from below."""
    rows, need, lower, upper = draw(3, k, d, seed)
    v, mu = least_points(rows, need, lower, upper, l1, l2)
    assert ((v >= lower) & (v <= upper)).all()
    assert (mu >= 0).all()
    reached = np.einsum("nkd,nd->nk", rows, v)
    for i in range(3):
        farthest = np.maximum(rows[i] * lower[i], rows[i] * upper[i]).sum(axis=1)
        if k == 1 and need[i, 0] < 0.9 * farthest[0]:
            assert reached[i, 0] >= need[i, 0] - 1e-9 * (1 + abs(need[i, 0]))
            slack = float(mu[i] @ (reached[i] - need[i]))
            assert abs(slack) <= 1e-7 * (1 + float(mu[i].sum()))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(2, 6), st.integers(0, 1000))
def test_a_general_solver_finds_nothing_better(k: int, d: int, seed: int) -> None:
    rows, need, lower, upper = draw(1, k, d, seed)
    lower, upper = np.minimum(lower, 0.0), np.maximum(upper, 0.0)
    v, mu = least_points(rows, need, lower, upper, 0.05, 0.3)

    def objective(z: Any) -> float:
        w = z[:d] - z[d:]
        return float(0.05 * z.sum() + 0.15 * (w @ w))

    constraint: Any = {"type": "ineq", "fun": lambda z: rows[0] @ (z[:d] - z[d:]) - need[0]}
    bounds: Any = [*[(0, u) for u in upper[0]], *[(0, -low) for low in lower[0]]]
    found = minimize(objective, np.zeros(2 * d), method="SLSQP", bounds=bounds, constraints=[constraint])
    if found.success and mu.max() < 50:  # larger multipliers: hardly feasible, where both stop early
        assert penalty(v[0], 0.05, 0.3) <= found.fun + 1e-3 * (1 + found.fun)


def test_one_half_space_of_equal_slopes_is_shared_equally() -> None:
    v, _ = least_points(np.ones((1, 1, 5)), np.array([[2.0]]), np.zeros((1, 5)), np.ones((1, 5)), 0.1, 0.1)
    np.testing.assert_allclose(v, 0.4)


def test_without_l2_the_cheapest_features_are_filled_first() -> None:
    rows = np.array([[[3.0, 2.0, 1.0]]])
    v, _ = least_points(rows, np.array([[4.0]]), np.zeros((1, 3)), np.ones((1, 3)), 0.1, 0.0)
    np.testing.assert_allclose(v, [[1.0, 0.5, 0.0]], atol=1e-4)


def test_what_the_box_does_not_reach_is_aimed_at() -> None:
    v, _ = least_points(np.ones((1, 1, 4)), np.array([[100.0]]), np.zeros((1, 4)), np.ones((1, 4)), 0.1, 0.1)
    assert v.sum() == pytest.approx(0.95 * 4)


def test_slopes_of_zero_leave_the_point_nearest_to_zero() -> None:
    v, mu = least_points(np.zeros((1, 2, 3)), np.ones((1, 2)), np.full((1, 3), 0.2), np.ones((1, 3)), 0.1, 0.1)
    np.testing.assert_array_equal(v, np.full((1, 3), 0.2))
    assert not mu.any()


@pytest.mark.parametrize(
    ("k", "d", "l1", "l2"), [(1, 784, 0.1, 0.15), (1, 30, 0.1, 0.0), (3, 40, 0.0, 0.1), (8, 17, 0.05, 0.3)]
)
def test_the_same_bits_without_the_compiler(
    monkeypatch: pytest.MonkeyPatch, k: int, d: int, l1: float, l2: float
) -> None:
    problem = draw(2, k, d, d)
    found = []
    for compiled in (kernels.found(), None):
        monkeypatch.setattr(kernels, "compiled", compiled)
        v, mu = least_points(*problem, l1, l2)
        found.append(v.tobytes() + mu.tobytes())
    assert found[0] == found[1]


@pytest.mark.skipif(kernels.found() is None, reason="no compiled loops")
def test_buffers_that_do_not_belong_together_are_refused() -> None:
    library, v = kernels.there(), np.zeros((1, 16))
    with pytest.raises(ValueError, match="belong together"):
        library.least_points(v, np.zeros((1, 1)), np.zeros((1, 1, 15)), np.zeros((1, 1)), v, v, 1, 0.1, 0.1, 9)
    with pytest.raises(ValueError, match="belong together"):
        library.least_points(v, np.zeros((1, 1)), np.zeros((1, 1, 16)), np.zeros((1, 1)), v, v, 1, 0.1, 0.0, 9)
