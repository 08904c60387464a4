"""Truncated steps against brute force over all supports."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.problem import Box, ElasticNet


@pytest.mark.parametrize("h", [ElasticNet(), ElasticNet(0.2), ElasticNet(0.1, 0.4)], ids=str)
@pytest.mark.parametrize("box", [Box(), Box(-0.4, 0.9)], ids=["free", "box"])
def test_the_step_is_the_best_sparse_point(h: ElasticNet, box: Box) -> None:
    rng, d, s = np.random.default_rng(0), 6, 2
    for eta in (0.5, 3.0):
        for _ in range(20):
            x, g = box.project(rng.normal(size=d)), rng.normal(size=d)
            whole = zm.methods.Euclidean().step(x, g, eta, h, box)

            def objective(y: object, x: object = x, g: object = g, eta: float = eta) -> float:
                y, x, g = np.asarray(y), np.asarray(x), np.asarray(g)
                return float(g @ y) + h(y) + eta / 2 * float(np.square(y - x).sum())

            best = min(objective(np.where(np.isin(np.arange(d), on), whole, 0.0)) for on in combinations(range(d), s))
            y = zm.methods.Truncated(s).step(x, g, eta, h, box)
            assert np.count_nonzero(y) <= s
            assert objective(y) == pytest.approx(best, abs=1e-12)


def test_a_box_without_zero_is_refused() -> None:
    for make in (zm.methods.zo_ht, zm.methods.zo_truncated):
        with pytest.raises(ArgumentError, match="expected bounds around 0"):
            zm.Optimizer(np.ones(3), bounds=(0.5, 2), method=make(1.0, 5))


@pytest.mark.parametrize("make", [zm.methods.zo_ht, zm.methods.zo_truncated])
def test_iterates_are_sparse_and_reach_a_sparse_minimum(make: object) -> None:
    target = np.zeros(60)
    target[[5, 30, 55]] = 1.0, -1.0, 0.8
    method = make(4.0, 60, sparsity=3)  # type: ignore[operator]
    seen: list[int] = []
    result = zm.minimize(
        lambda X: np.square(X - target).sum(axis=1) / 2,
        np.zeros(60), method=method, budget=12_000, callback=lambda now: seen.append(now.nnz),
    )  # fmt: skip
    assert max(seen) <= 3
    assert result.fun < 0.01
