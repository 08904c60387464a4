"""Ask and tell: the same run as `minimize`, bit for bit, with the function in the caller's hands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.conftest import PRESETS, sphere_function

METHOD = zm.methods.zo_ada_expmd(10)


def optimizer(**options: Any) -> zm.Optimizer:
    settled: dict[str, Any] = {"l1": 0.1, "l2": 0.1, "bounds": (0, 1), "method": METHOD, "rng": 0}
    return zm.Optimizer(np.full(6, 0.25), **(settled | options))


@pytest.mark.parametrize("method", PRESETS, ids=lambda m: f"{m.mirror}{m.step}")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_loop_of_the_docstring_is_minimize(method: zm.methods.MirrorDescent, dtype: Any) -> None:
    x0 = np.full(6, 0.25, dtype)
    opt = zm.Optimizer(x0, l1=0.1, l2=0.1, bounds=(0, 1), method=method, rng=7)
    while opt.nfev + len(opt.query) + 1 <= 150:
        opt.tell(sphere_function(opt.ask()))
    result = zm.minimize(sphere_function, x0, l1=0.1, l2=0.1, bounds=(0, 1), method=method, rng=7, budget=150)
    assert opt.x.tobytes() == result.x.tobytes(), "the current iterate is the one that minimize measures last"
    for name in ("nfev", "fun", "f", "eta", "stationarity", "nnz"):
        ours, theirs = getattr(opt.result.history, name), getattr(result.history, name)
        assert ours.tobytes() == theirs[:-1].tobytes()
    assert opt.nit == result.nit
    assert opt.nfev == result.nfev - 1
    opt.tell_closing(sphere_function(opt.closing.points()))
    assert opt.result.x.tobytes() == result.x.tobytes()
    assert opt.result.fun == result.fun


def test_asking_twice_gives_the_same_points_in_arrays_of_ones_own() -> None:
    opt = optimizer()
    first = opt.ask()
    again = opt.ask()
    assert first.tobytes() == again.tobytes()
    first[:] = 0  # the caller's own
    assert opt.ask().tobytes() == again.tobytes()
    assert (again[0] == opt.x).all()
    assert again.shape == (11, 6)


def test_before_the_first_tell() -> None:
    opt = optimizer()
    result = opt.result
    assert result.status is zm.Status.RUNNING
    assert not result.success
    assert result.x.tolist() == [0.25] * 6
    assert np.isnan([result.fun, result.f, result.stationarity]).all()
    assert (result.nfev, result.nit, len(result.history)) == (0, 0, 0)
    assert opt.latest is None


def test_result_speaks_of_the_last_measured_iterate() -> None:
    opt = optimizer()
    opt.tell(sphere_function(opt.ask()))
    assert opt.result.x.tolist() == [0.25] * 6
    assert opt.result.f == pytest.approx(6 / 16)
    assert opt.result.fun == pytest.approx(6 / 16 + 0.1 * 1.5 + 0.05 * 6 / 16)
    assert opt.x.tolist() != [0.25] * 6
    assert opt.latest is not None
    assert opt.latest.fun == opt.result.fun


def test_x0_is_copied() -> None:
    x0 = np.full(6, 0.25)
    opt = zm.Optimizer(x0, method=METHOD)
    x0[:] = 9
    assert opt.x.tolist() == [0.25] * 6


@pytest.mark.parametrize("values", [np.ones(3), np.ones((11, 1)), ["a"] * 11, None, np.ones(11, complex)], ids=str)
def test_a_wrong_answer_is_refused_and_nothing_is_lost(values: Any) -> None:
    opt, untouched = optimizer(), optimizer()
    with pytest.raises(zm.errors.OracleError, match="expected"):
        opt.tell(values)
    assert opt.nfev == 0
    for o in (opt, untouched):
        o.tell(sphere_function(o.ask()))
    assert opt.x.tobytes() == untouched.x.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_values_are_counted_and_the_run_does_not_move(bad: float) -> None:
    opt, untouched = optimizer(), optimizer()
    values = sphere_function(opt.ask())
    values[4] = bad
    opt.tell(values)
    assert opt.result.status == zm.Status.NONFINITE
    assert opt.result.message == f"{zm.Status.NONFINITE.value}: {bad} in row 4 of the batch"
    assert (opt.nfev, opt.nit) == (11, 0)
    assert np.isfinite(opt.x).all()
    # Asked again, the same points; told good values, the run goes on as if nothing had happened.
    for o in (opt, untouched):
        o.tell(sphere_function(o.ask()))
    assert opt.result.message == zm.Status.RUNNING.value
    assert opt.x.tobytes() == untouched.x.tobytes()
    assert opt.nfev == untouched.nfev + 11


def test_samples_name_the_draws_of_a_stochastic_function() -> None:
    opt = optimizer(stochastic=True)
    assert opt.ask().shape == (20, 6)
    assert opt.samples.tolist() == [*range(10), *range(10)]
    opt.tell(sphere_function(opt.ask()))
    assert opt.samples.tolist() == [*range(10, 20), *range(10, 20)]
    with pytest.raises(zm.errors.ArgumentError, match="expected stochastic=True"):
        _ = optimizer().samples


def test_the_closing_query_of_a_stochastic_run_has_a_draw_of_its_own() -> None:
    opt = optimizer(stochastic=True)
    seen = set()
    for _ in range(4):
        seen |= set(opt.samples.tolist())
        opt.tell(sphere_function(opt.ask()))
    closing = opt.closing
    assert closing.stochastic
    assert closing.samples().shape == (1,)
    assert not seen & set(closing.samples().tolist())


@pytest.mark.parametrize(
    "method",
    [zm.methods.MirrorDescent, zm.methods.zo_ada_expmd, "zo_ada_expmd", 3, zm.methods.Entropy()],
    ids=lambda m: type(m).__name__,
)
def test_a_method_that_is_none_is_refused(method: Any) -> None:
    with pytest.raises(zm.errors.ArgumentTypeError, match="expected method to have init, ask and tell, got"):
        optimizer(method=method)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'batch_size'"):
        optimizer(batch_size=3)


def test_best_of_told_iterates() -> None:
    opt = optimizer(returns="best", method=zm.methods.zo_expmd(0.5, 3))
    measured = []
    for _ in range(20):
        opt.tell(sphere_function(opt.ask()))
        assert opt.latest is not None
        measured.append((opt.latest.fun, opt.latest.x))
    best = min(measured, key=lambda entry: entry[0])
    assert best[0] < measured[-1][0], "else this shows nothing"
    assert opt.result.fun == best[0]
    assert opt.result.x is best[1]
