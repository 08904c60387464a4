"""A guess of the gradient: a right one is used at once, a wrong one never, and bad ones are refused before a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError, ArgumentTypeError, RunError
from zomirror.methods.coordinate_groups import Groups
from zomirror.methods.gradient_guess import Evidence, GradientGuess, Guided

D = 300
C = np.random.default_rng(1).normal(size=D)


def f(points: Any) -> Any:
    return 0.5 * np.square(points - C).sum(axis=1)


def gradient(x: Any) -> Any:
    return x - C


def queries(prior: object, seed: int = 0) -> int:
    result = zm.minimize(f, np.zeros(D), l1=0.05, bounds=(-3, 3), budget=6_000, rng=seed, prior=prior, target=20.0)
    assert result.fun <= 20.0
    return result.nfev


def test_the_gradient_itself_saves_most_queries_and_chance_costs_none() -> None:
    plain = queries(None)
    assert queries(gradient) < 0.6 * plain
    assert queries(gradient(np.zeros(D))) < 0.9 * plain
    assert queries(1e3 * gradient(np.zeros(D))) < 0.9 * plain  # a guess has no unit to get right
    for seed in range(3):
        assert queries(np.random.default_rng(seed).normal(size=D)) <= 1.05 * plain
    assert queries(np.zeros(D)) == plain


def test_trust_is_the_regression_coefficient_unless_it_may_be_chance() -> None:
    rng = np.random.default_rng(0)
    q = rng.normal(size=40)
    y = 0.7 * q + 0.1 * rng.normal(size=40)
    both = Evidence().with_batch(y[:10], q[:10]).with_batch(y[10:], q[10:])
    assert both.trust == pytest.approx(float(y @ q / (q @ q)), rel=1e-12)
    assert Evidence().with_batch(-y, q).trust == 0
    assert Evidence().with_batch(5 * q, q).trust == 2
    assert Evidence().with_batch(rng.normal(size=40), q).trust == 0
    assert Evidence().trust == 0


def test_the_memory_takes_in_what_it_does_not_know_and_then_the_changes() -> None:
    groups = Groups(np.arange(D) % 30, np.ones(D), 30, None, D)
    guided, v = Guided(np.zeros(D)), C.copy()
    w: Any = np.zeros(D)
    y = groups.sums(C)[0]
    guided, w, new = guided.moved(w, v, y, groups)
    assert new
    np.testing.assert_allclose(w, C)
    change = np.random.default_rng(3).normal(size=D)
    guided, w, new = guided.moved(w, v + change, groups.sums(C + change)[0], groups)
    assert not new
    np.testing.assert_allclose(w, C + change)
    _, same, _ = guided.moved(w, v + change, groups.sums(w)[0], groups)
    np.testing.assert_array_equal(same, w)  # a vector that does not change adds nothing


@pytest.mark.parametrize(
    ("prior", "error", "words"),
    [
        (np.zeros(3), ArgumentError, "expected prior to be a vector like x0, of length 300, got 3"),
        (np.full(D, np.nan), ArgumentError, "expected prior to be finite"),
        (lambda x: x[:5], ArgumentError, r"expected prior\(x\) to return 300 finite numbers"),
        (lambda x: x / 0 * np.nan, ArgumentError, r"expected prior\(x\) to return 300 finite numbers"),
        ("gradient", ArgumentTypeError, "expected prior"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_bad_guess_is_refused_before_the_first_query(prior: object, error: type[Exception], words: str) -> None:
    asked: list[int] = []

    def watched(points: Any) -> Any:
        asked.append(len(points))
        return f(points)

    with pytest.raises(error, match=words):
        zm.minimize(watched, np.zeros(D), budget=500, prior=prior)
    assert not asked


def test_a_method_of_ones_own_takes_no_prior() -> None:
    with pytest.raises(ArgumentError, match="expected no prior with a method of your own"):
        zm.minimize(f, np.zeros(D), budget=500, prior=C, method=zm.methods.zo_ada_expmd(10))


def test_a_run_is_resumed_with_the_same_guess_only(tmp_path: Path) -> None:
    def run(directory: Path | None, budget: int, prior: object = C) -> zm.Result:
        return zm.minimize(f, np.zeros(D), l1=0.05, budget=budget, prior=prior, run_dir=directory, max_sent=2_000)

    whole = run(None, 1_500)
    run(tmp_path / "run", 700)
    with pytest.raises(RunError, match="prior"):
        run(tmp_path / "run", 1_500, -C)
    assert run(tmp_path / "run", 1_500).x.tobytes() == whole.x.tobytes()


def test_fixed_coordinates_and_float32() -> None:
    lower, upper = np.full(D, -3.0), np.full(D, 3.0)
    lower[::3] = upper[::3] = 0.0
    result = zm.minimize(
        f, np.zeros(D, np.float32), l1=0.05, bounds=(lower, upper), budget=3_000, prior=lambda x: (x - C).astype(float)
    )
    assert result.x.dtype == np.float32
    assert not result.x[::3].any()
    np.testing.assert_allclose(result.x[1::3], (np.sign(C) * np.maximum(np.abs(C) - 0.05, 0))[1::3], atol=0.1)


def test_the_checksum_of_a_vector_names_it() -> None:
    name = GradientGuess.of(C, np.zeros(D)).name
    assert GradientGuess.of(C.copy(), np.zeros(D)).name == name
    assert GradientGuess.of(-C, np.zeros(D)).name != name
