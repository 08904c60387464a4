"""AO-ExpMD and ExpStorm by hand; and the whole gallery: pure, resumable, inside the box, and at work."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import zomirror as zm
from zomirror.methods.descent import Method, State
from zomirror.numerics.random import key_of
from zomirror.problem import Problem

D = 30
KEY = key_of(5)
H = zm.methods.ElasticNet(0.05, 0.02)
BOX = zm.methods.Box(-1.0, 1.0)
START = np.full(D, 0.4)
METHODS: dict[str, Method] = {
    "AO-ExpMD": zm.methods.zo_ao_expmd(10),
    "ExpStorm": zm.methods.zo_exp_storm(),
    "ZO-FW": zm.methods.zo_fw(40),
    "ZSCG": zm.methods.zo_scg(60),
    "LASSO": zm.methods.zo_lasso(1.0, 20),
    "ZORO": zm.methods.zoro(4.0, 60, sparsity=10),
    "truncated": zm.methods.zo_truncated(4.0, 40, sparsity=8),
    "SZOHT": zm.methods.zo_ht(6.0, 40, sparsity=8),
    "sparse": zm.methods.zo_sparse(6.0, 40, share=0.3),
    "AdaMM": zm.methods.zo_adamm(10.0, 20),
    "signSGD": zm.methods.zo_signsgd(40.0, 20),
}


def f(points: Any) -> Any:
    return 0.5 * np.square(points[:, :5] - 0.8).sum(axis=1) + 0.5 * np.square(points[:, 5:]).sum(axis=1)


def begin(method: Method) -> State:
    return method.init(START, Problem(D, START.dtype, H, BOX), KEY)


def told(method: Method, state: State) -> State:
    query = method.ask(state)
    return method.tell(state, query, f(query.points()))


def estimate(rows: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """1/(m nu^2) sum_j (f(x + nu u_j) - f(x)) nu u_j for Rademacher u_j, from the rows alone."""
    moves = rows[1:] - rows[0]
    nu = np.abs(moves).max()
    found: NDArray[Any] = moves.T @ (values[1:] - values[0]) / (len(moves) * nu**2)
    return found


def test_ao_expmd_takes_the_published_steps() -> None:
    method = zm.methods.zo_ao_expmd(10, first=0.7)
    state, x, y, before, total = begin(method), START, START, np.zeros(D), 0.0
    for t in range(1, 6):
        rows = method.ask(state).points()
        g = estimate(rows, f(rows))
        state = told(method, state)
        total += (t * np.abs(g - before).max()) ** 2
        alpha = 0.7 * math.sqrt(total) / math.sqrt(math.log(D * 1.0 + 1))
        h = zm.methods.ElasticNet((t + 1) * H.l1, (t + 1) * H.l2)
        x = zm.methods.Entropy().step(x, t * g - t * before + (t + 1) * g, alpha, h, BOX)
        beta = t * (t + 1) / 2
        y, before = (t / beta) * x + (1 - t / beta) * y, g
        np.testing.assert_allclose(state.x, y, rtol=1e-6, atol=1e-9)
        assert state.last is not None
        assert state.last.eta == pytest.approx(alpha, rel=1e-9)


def test_exp_storm_takes_the_published_steps() -> None:
    method = zm.methods.zo_exp_storm()
    state, x, eta2, d = begin(method), START, 0.0, np.zeros(D)
    for t in range(1, 7):
        rows = method.ask(state).points()
        count = math.ceil(math.sqrt(t))
        assert len(rows) == (count + 1 if t == 1 else 2 * count + 2)
        np.testing.assert_allclose(np.abs(rows[1] - rows[0]), 1 / (t * D), rtol=1e-9)
        values = f(rows)
        g = estimate(rows[: count + 1], values[: count + 1])
        m = g if t == 1 else estimate(rows[count + 1 :], values[count + 1 :])
        d = g + (1 - t**-0.5) * (d - m)
        eta = max(1.0, math.sqrt(eta2))
        v = zm.methods.Entropy().step(x, d, eta, H, BOX)
        eta2 += (eta * np.abs(v - x).sum()) ** 2
        x = x + eta / max(1.0, math.sqrt(eta2)) * (v - x)
        state = told(method, state)
        np.testing.assert_allclose(state.x, x, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_asking_is_pure_and_iterates_stay_in_the_box(method: Method) -> None:
    state = begin(method)
    for _ in range(20):
        np.testing.assert_array_equal(method.ask(state).points(), method.ask(state).points())
        state = told(method, state)
        assert np.abs(state.x).max() <= 1.0
        assert not state.x.flags.writeable


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_they_descend(method: Method, dtype: Any) -> None:
    result = zm.minimize(f, START.astype(dtype), l1=0.05, bounds=(-1, 1), budget=3000, method=method, rng=0)
    best = np.r_[np.full(5, 0.75), np.zeros(D - 5)]
    least = float(f(best[None])[0]) + 0.05 * float(np.abs(best).sum())
    assert result.x.dtype == dtype
    assert result.nfev <= 3000
    assert result.fun < least + 0.2 * (result.history.fun[0] - least)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_snapshot_goes_on_bit_for_bit(method: Method) -> None:
    whole = zm.Optimizer(START, l1=0.05, bounds=(-1, 1), method=method, rng=2)
    for _ in range(4):
        whole.tell(f(whole.ask()))
    half = zm.Optimizer(START, l1=0.05, bounds=(-1, 1), method=method, rng=2)
    half.restore(whole.snapshot())
    for _ in range(4):
        whole.tell(f(whole.ask()))
        half.tell(f(half.ask()))
    np.testing.assert_array_equal(whole.x, half.x)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_they_are_durable(method: Method, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"l1": 0.05, "bounds": (-1, 1), "method": method, "rng": 1}
    plain = zm.minimize(f, START, budget=700, **settings)
    zm.minimize(f, START, budget=700, maxiter=5, run_dir=tmp_path / "run", **settings)
    resumed = zm.minimize(f, START, budget=700, run_dir=tmp_path / "run", **settings)
    assert resumed.nit == plain.nit > 5
    np.testing.assert_array_equal(resumed.history.fun[:5], plain.history.fun[:5])
    np.testing.assert_array_equal(resumed.x, plain.x)


def test_what_they_cannot_do_is_refused() -> None:
    with pytest.raises(zm.errors.ArgumentError, match="first > 0"):
        zm.methods.zo_ao_expmd(first=0)
    with pytest.raises(zm.errors.ArgumentError, match="stochastic=False with Storm"):
        zm.minimize(lambda x, s: f(x), START, method=zm.methods.zo_exp_storm(), stochastic=True)
