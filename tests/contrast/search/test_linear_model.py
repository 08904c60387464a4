"""The linear problem, its dual solution, and explanations of linear classifiers, whose optimum is known."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize

import zomirror as zm
from tests.support.contrast_models import Affine, Counted, label_of
from zomirror.contrast.search.linear_model import Linear
from zomirror.problem import ElasticNet


def value(problem: Linear, w: Any) -> float:
    return max(float((problem.A @ w + problem.b).max()), -problem.kappa) + problem.penalty(w)


def draw(d: int, rows: int, seed: int, l1: float, l2: float, kappa: float) -> Linear:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(rows, d)), rng.uniform(0, 3, rows)
    return Linear(A, b, -rng.random(d), rng.random(d), ElasticNet(l1, l2), kappa)


@given(
    st.integers(1, 8),
    st.integers(0, 1000),
    st.floats(0, 0.5),
    st.floats(0.01, 2),
    st.floats(0, 1),
)
def test_one_row_is_solved_exactly(d: int, seed: int, l1: float, l2: float, kappa: float) -> None:
    """The value of the dual bounds every value of the primal from below, and here the two meet."""
    problem = draw(d, 1, seed, l1, l2, kappa)
    w = problem.solve()
    assert (w >= problem.lower).all()
    assert (w <= problem.upper).all()

    def dual(t: float) -> float:
        slope = t * problem.A[0]
        at = np.clip(-np.sign(slope) * np.maximum(np.abs(slope) - l1, 0) / l2, problem.lower, problem.upper)
        return t * float(problem.A[0] @ at + problem.b[0]) - (1 - t) * kappa + problem.penalty(at)

    # The dual is concave in the one multiplier: golden section finds its maximum.
    low, high, golden = 0.0, 1.0, (np.sqrt(5) - 1) / 2
    for _ in range(80):
        first, second = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, second) if dual(first) > dual(second) else (first, high)
    best = max(dual((low + high) / 2), dual(0.0), dual(1.0))
    assert value(problem, w) == pytest.approx(best, rel=1e-6, abs=1e-7)


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(2, 5), st.integers(0, 1000))
def test_several_rows_are_solved_nearly(d: int, rows: int, seed: int) -> None:
    """Against a general solver on the smooth form: min t + h(p + q) with w = p - q and rows <= t, t >= -kappa."""
    problem = draw(d, rows, seed, 0.05, 0.3, 0.2)

    def objective(z: Any) -> float:
        w = z[:d] - z[d : 2 * d]
        return float(z[-1] + 0.05 * z[:-1].sum() + 0.15 * (w @ w))

    constraint: Any = {"type": "ineq", "fun": lambda z: z[-1] - problem.A @ (z[:d] - z[d : 2 * d]) - problem.b}
    bounds: Any = [*[(0, u) for u in problem.upper], *[(0, -low) for low in problem.lower], (-0.2, None)]
    start = np.append(np.zeros(2 * d), problem.b.max())
    found = minimize(
        objective, start, method="SLSQP", bounds=bounds, constraints=[constraint], options={"maxiter": 500}
    )
    assert value(problem, problem.solve()) <= found.fun + 1e-3


def test_without_l2_the_answer_is_a_corner_but_for_one_coordinate() -> None:
    problem = draw(6, 1, 3, 0.01, 0.0, 0.0)
    w = problem.solve()
    free = ~(np.isclose(w, problem.lower) | np.isclose(w, problem.upper) | (w == 0))
    assert free.sum() <= 1
    assert value(problem, w) <= min(value(problem, v * w) for v in (0.0, 0.5, 0.9)) + 1e-9


CASES = [("PN", True), ("PN", False), ("PP", False)]


@pytest.mark.parametrize(("d", "kappa"), [(30, 0.0), (150, 0.5)])
@pytest.mark.parametrize(("kind", "signed"), CASES)
def test_a_linear_classifier_is_explained_to_within_one_percent(kind: str, signed: bool, d: int, kappa: float) -> None:
    """Two classes: the margin is a.w + b, and the least F over the decision set is known."""
    rng = np.random.default_rng(d)
    slope = 3 * rng.normal(size=d)
    x0 = rng.random(d)
    middle = 0.5 * float(slope @ x0)
    # The boundary lies half-way between the input and nothing, so both kinds exist.
    model = Affine(np.stack([slope, -slope]), np.array([-middle, middle]))
    label = label_of(model, x0)
    sign = 1.0 if label == 0 else -1.0
    if kind == "PN":
        a, b = sign * 2 * slope, float(model(x0[None])[0, label] - model(x0[None])[0, 1 - label])
        lower, upper = -x0 if signed else np.zeros(d), 1 - x0
    else:
        a, b = -sign * 2 * slope, sign * 2 * middle
        lower, upper = np.zeros(d), x0
    exact = Linear(a[None], np.array([b]), lower, upper, ElasticNet(0.1, 0.1), kappa)
    least = value(exact, exact.solve())
    found = zm.explain(model, x0, kind=kind, signed=signed, kappa=kappa, l2=0.1, rng=0, budget=3000)
    assert found.valid
    assert found.objective <= least + 0.01 * abs(least), (found.objective, least)
    assert found.objective >= least - 1e-9


def test_a_linear_classifier_of_three_classes_changes_to_the_nearest_one() -> None:
    """Of the rival classes the cheapest is found: no single-rival optimum is more than 1 % better."""
    for seed in range(2):
        model = Affine.draw(40, 3, seed)
        x0 = np.random.default_rng(seed).random(40)
        label = label_of(model, x0)
        bests = []
        for rival in {0, 1, 2} - {label}:
            a = model.weights[label] - model.weights[rival]
            b = float(a @ x0 + model.bias[label] - model.bias[rival])
            exact = Linear(a[None], np.array([b]), -x0, 1 - x0, ElasticNet(0.1, 0.1), 0.0)
            bests.append(value(exact, exact.solve()))
        counted = Counted(model)
        found = zm.explain(counted, x0, signed=True, l2=0.1, rng=seed, budget=2000)
        assert found.valid
        assert found.objective <= 1.01 * min(bests)
        assert counted.rows == found.nfev <= 2000
