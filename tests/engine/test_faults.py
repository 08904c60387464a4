"""What must never go wrong: functions that fail, arguments that cannot be, memory that must not grow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.conftest import Counted, sphere_function

METHOD = zm.methods.zo_ada_expmd(10)  # eleven queries an iteration; a budget of 56 is five of them and the last query


def run(fun: Any, x0: Any = None, **options: Any) -> zm.Result:
    settled: dict[str, Any] = {"l1": 0.1, "bounds": (0, 1), "method": METHOD, "rng": 0, "budget": 56}
    return zm.minimize(fun, np.full(6, 0.25) if x0 is None else x0, **(settled | options))


class Failing:
    """Does something wrong at one call, counting from 1; right at all others."""

    def __init__(self, call: int, wrong: Any) -> None:
        self.call, self.wrong = call, wrong
        self.calls = 0

    def __call__(self, points: Any) -> Any:
        self.calls += 1
        values = sphere_function(points)
        return self.wrong(values) if self.calls == self.call else values


def raises(values: Any) -> Any:
    raise ConnectionError("the server is gone")


# --- F1: the function raises -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "first"), [(1, 0), (3, 22), (6, 55)], ids=["first", "middle", "last"])
def test_a_raising_function_leaves_what_was_reached(call: int, first: int) -> None:
    with pytest.raises(
        zm.errors.OracleError, match="the function raised ConnectionError: the server is gone"
    ) as caught:
        run(Failing(call, raises))
    error = caught.value
    assert isinstance(error, zm.errors.ZomirrorError)
    assert isinstance(error.__cause__, ConnectionError)
    assert error.rows is not None
    assert error.rows.start == first
    result = error.result
    assert result is not None
    assert result.status is zm.Status.ERROR
    assert not result.success
    assert "the server is gone" in result.message
    assert (result.nit, result.nfev) == (call - 1, 11 * (call - 1))
    assert result.sent == result.nfev + len(error.rows)
    assert result.lost == len(error.rows)
    whole = run(sphere_function)
    assert result.history.fun.tolist() == whole.history.fun[: call - 1].tolist(), "a prefix of the whole run"
    if call > 1:
        assert result.fun == result.history.fun[-1]


def test_retry_gives_the_run_that_never_failed() -> None:
    fun = Failing(3, raises)
    result = run(fun, on_error=zm.Retry(1), max_sent=100)
    assert result.x.tobytes() == run(sphere_function).x.tobytes()
    assert (result.used, result.sent, result.lost) == (56, 67, 11)
    assert result.success


def test_max_sent_bounds_what_is_sent_with_retries() -> None:
    for max_sent in range(1, 90, 7):
        fun = Counted(Failing(3, raises))
        result = run(fun, on_error=zm.Retry(3), max_sent=max_sent)
        assert fun.rows == result.sent <= max_sent
        if max_sent >= 67:
            assert result.status is zm.Status.BUDGET
        else:
            assert result.status is zm.Status.MAX_SENT
            assert "raise max_sent to continue" in result.message
            assert not result.success
            assert result.history.fun.tolist() == run(sphere_function).history.fun[: len(result.history)].tolist()


def test_max_sent_is_the_budget_unless_given() -> None:
    result = run(Failing(3, raises), on_error=zm.Retry(3))
    assert result.status is zm.Status.MAX_SENT
    assert result.sent <= 56


def test_a_retry_that_fails_too_ends_in_the_error() -> None:
    with pytest.raises(zm.errors.OracleError, match="attempt 3 of 3"):
        run(lambda points: raises(points), on_error=zm.Retry(2), max_sent=1000)


# --- F2: values that are not finite ------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["x", "one", "all"])
@pytest.mark.parametrize("call", [1, 3, 6])
def test_nonfinite_values_end_the_run_at_the_last_good_iterate(bad: float, where: str, call: int) -> None:
    def wrong(values: Any) -> Any:
        values = values.copy()
        values[{"x": 0, "one": -1, "all": slice(None)}[where]] = bad
        return values

    result = run(Failing(call, wrong), returns="best")
    whole = run(sphere_function, returns="best")
    assert result.status is zm.Status.NONFINITE
    assert not result.success
    assert f"{bad} in row" in result.message
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.history.fun).all(), "it never enters what is remembered"
    assert result.history.fun.tolist() == whole.history.fun[: call - 1].tolist()
    assert result.nfev == (56 if call == 6 else 11 * call)
    if call == 1:
        assert np.isnan(result.fun)
        assert result.x.tolist() == [0.25] * 6
    else:
        assert result.fun == result.history.fun.min()


def test_refused_points_say_nothing_of_their_direction() -> None:
    """With `nonfinite="refuse"` a row without a value is a difference of zero."""

    def refuses(values: Any) -> Any:
        values = values.copy()
        values[4:7] = np.nan
        return values

    def equals_x(values: Any) -> Any:
        values = values.copy()
        values[4:7] = values[0]
        return values

    result = run(Failing(2, refuses), nonfinite="refuse")
    assert result.status is zm.Status.BUDGET
    assert result.x.tobytes() == run(Failing(2, equals_x)).x.tobytes()


def test_refused_points_of_a_stochastic_function_are_compared_with_their_own_draw() -> None:
    def noisy(points: Any, draws: Any) -> Any:
        return sphere_function(points) + 1000.0 * draws

    def refuses(points: Any, draws: Any) -> Any:
        values = noisy(points, draws)
        values[13:16] = np.inf
        return values

    def equals_x(points: Any, draws: Any) -> Any:
        values = noisy(points, draws)
        values[13:16] = values[3:6]
        return values

    a, b = (run(f, stochastic=True, maxiter=1, nonfinite=word) for f, word in ((refuses, "refuse"), (equals_x, "stop")))
    assert a.nit == b.nit == 1
    assert a.x.tobytes() == b.x.tobytes()


def test_a_refused_iterate_ends_the_run_all_the_same() -> None:
    def wrong(values: Any) -> Any:
        return np.where(np.arange(values.size) == 0, np.nan, values)

    assert run(Failing(2, wrong), nonfinite="refuse").status is zm.Status.NONFINITE


def test_a_run_that_leaves_floating_point_says_so() -> None:
    result = zm.minimize(
        lambda points: 1e306 * points[:, 0], np.ones(4), method=zm.methods.zo_expmd(1e-3, 5), l2=0.1, rng=0
    )
    assert result.status is zm.Status.DIVERGED
    assert "larger eta" in result.message
    assert result.x.tolist() == [1] * 4


# --- F3, F4: wrong shapes and types ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            lambda v: v[:, None] * np.ones(10),
            r"expected values of shape \(11,\), got \(11, 10\): return one number per",
        ),
        (lambda v: v[:-1], r"expected values of shape \(11,\), got \(10,\)"),
        (lambda v: float(v.sum()), r"expected values of shape \(11,\), got \(\)"),
        (lambda v: v.astype(complex), "expected values that are real numbers, got dtype complex128"),
        (lambda v: v.astype(object), "expected values that are real numbers, got dtype object"),
        (lambda v: v.astype(str), "expected values that are real numbers, got dtype <U"),
        (lambda v: None, "expected values that are real numbers, got dtype object"),
    ],
)
@pytest.mark.parametrize("call", [1, 3])
def test_a_wrong_answer_is_one_clear_sentence(wrong: Any, sentence: str, call: int) -> None:
    with pytest.raises(zm.errors.OracleError, match=sentence) as caught:
        run(Failing(call, wrong))
    assert caught.value.result is not None
    assert caught.value.result.nit == call - 1
    assert caught.value.result.nfev == 11 * (call - 1)


@pytest.mark.parametrize("dtype", [bool, int, np.int8, np.uint64, np.float16, np.float32, np.longdouble])
def test_real_types_are_accepted(dtype: Any) -> None:
    assert run(lambda points: (10 * sphere_function(points)).astype(dtype)).success


# --- F5: the function writes into its input ----------------------------------------------------------------------


@pytest.mark.parametrize("vectorized", [True, False])
def test_writing_into_the_input_is_an_error_and_harms_nothing(vectorized: bool) -> None:
    def fun(points: Any) -> Any:
        points += 1
        return sphere_function(points)

    with pytest.raises(zm.errors.OracleError, match=r"ValueError: (output array|assignment destination) is read-only"):
        run(fun, vectorized=vectorized)


def test_a_function_that_keeps_its_inputs_sees_them_unchanged_later() -> None:
    kept = []

    def fun(points: Any) -> Any:
        kept.append((points, points.copy()))
        return sphere_function(points)

    assert run(fun).x.tobytes() == run(sphere_function).x.tobytes()
    assert len(kept) == 6
    assert all((points == then).all() for points, then in kept)


# --- arguments: found before the first query ---------------------------------------------------------------------

VALUE, TYPE = zm.errors.ArgumentError, zm.errors.ArgumentTypeError
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"x0": []}, VALUE, r"expected x0 of shape \(d,\) with d >= 1, got shape \(0,\)"),
    ({"x0": np.zeros((2, 3))}, VALUE, r"got shape \(2, 3\): ravel it"),
    ({"x0": 0.5}, VALUE, r"got shape \(\)"),
    ({"x0": [0.5, np.nan]}, VALUE, "expected x0 to be finite, got nan at coordinate 1"),
    ({"x0": [np.inf]}, VALUE, "expected x0 to be finite, got inf at coordinate 0"),
    ({"x0": [0.5j]}, TYPE, "expected x0 to hold real numbers, got dtype complex128"),
    ({"x0": ["a"]}, TYPE, "expected x0 to hold real numbers, got dtype <U1"),
    ({"x0": [None]}, TYPE, "expected x0 to hold real numbers, got dtype object"),
    ({"x0": None}, TYPE, "expected x0 to hold real numbers, got dtype object"),
    (
        {"x0": [0.5, 2.0, -1.0]},
        VALUE,
        r"expected x0 inside the bounds, got coordinates 1, 2 outside \(x0\[1\] = 2, bounds \[0, 1\]\): move x0 inside",
    ),
    ({"x0": np.arange(20.0)}, VALUE, "got coordinates 2, 3, 4, 5, 6 and 13 more outside"),
    ({"bounds": (1, 0)}, VALUE, "expected lower <= upper, got lower > upper at coordinate 0"),
    ({"bounds": (0, np.nan)}, VALUE, "expected upper without NaN"),
    ({"bounds": [(0, 1)] * 5}, VALUE, "expected bounds as two numbers, 6 pairs"),
    ({"bounds": "01"}, TYPE, "expected lower bounds to hold real numbers"),
    ({"bounds": 1.0}, TYPE, "expected bounds to be two numbers"),
    ({"l1": -0.1}, VALUE, "expected l1 >= 0, got -0.1"),
    ({"l1": np.nan}, VALUE, "expected l1 to be finite, got nan"),
    ({"l1": "a"}, TYPE, "expected l1 to be a number, got 'a'"),
    ({"l2": -1}, VALUE, "expected l2 >= 0, got -1"),
    ({"budget": 0}, VALUE, "expected budget >= 1, got 0"),
    ({"budget": -5}, VALUE, "expected budget >= 1, got -5"),
    ({"budget": 100.0}, TYPE, "expected budget to be an integer, got 100.0"),
    ({"budget": True}, TYPE, "expected budget to be an integer, got True"),
    ({"budget": None}, TYPE, "expected budget to be an integer, got None"),
    (
        {"budget": 11},
        VALUE,
        r"expected budget >= 12 \(one iteration of this method and one query for the end\), got 11",
    ),
    ({"maxiter": 0}, VALUE, "expected maxiter >= 1, got 0"),
    ({"maxiter": 1.5}, TYPE, "expected maxiter to be an integer, got 1.5"),
    ({"max_time": 0}, VALUE, "expected max_time > 0, got 0"),
    ({"max_time": "1s"}, TYPE, "expected max_time to be a number, got '1s'"),
    ({"target": np.nan}, VALUE, "expected target to be finite, got nan"),
    ({"target": "low"}, TYPE, "expected target to be a number, got 'low'"),
    ({"max_sent": 0}, VALUE, "expected max_sent >= 1, got 0"),
    ({"max_sent": 9.5}, TYPE, "expected max_sent to be an integer, got 9.5"),
    ({"rng": -1}, VALUE, "expected rng >= 0, got -1"),
    ({"rng": [1, 2]}, TYPE, r"expected rng to be an integer, a numpy Generator or None, got \[1, 2\]"),
    ({"rng": {}}, TYPE, "expected rng to be an integer"),
    ({"rng": 0.5}, TYPE, "expected rng to be an integer"),
    ({"rng": True}, TYPE, "expected rng to be an integer"),
    ({"returns": "worst"}, VALUE, "expected returns to be one of 'last', 'best', 'random', got 'worst'"),
    ({"on_error": "ignore"}, VALUE, "expected on_error to be one of 'raise', got 'ignore'"),
    ({"nonfinite": "skip"}, VALUE, "expected nonfinite to be one of 'stop', 'refuse', got 'skip'"),
    ({"callback": 3}, TYPE, "expected callback to be a function of one argument, got 3"),
    ({"method": "adam"}, TYPE, "expected method to have init, ask and tell, got 'adam'"),
    ({"method": zm.methods.zo_ada_expmd}, TYPE, "expected method to have init, ask and tell"),
    (
        {"method": zm.methods.MirrorDescent(zm.methods.PNorm(), zm.methods.TwoPoint(5), zm.methods.Adaptive())},
        VALUE,
        "expected l2 = 0 and no bounds with PNorm",
    ),
]


@pytest.mark.parametrize(
    ("options", "error", "sentence"), WRONG, ids=[str(wrong[0]).split(" at 0x")[0][:60] for wrong in WRONG]
)
def test_a_wrong_argument_costs_no_query(options: dict[str, Any], error: type[Exception], sentence: str) -> None:
    fun = Counted(sphere_function)
    given = dict(options)
    x0 = given.pop("x0") if "x0" in given else np.full(6, 0.25)
    settled: dict[str, Any] = {"l1": 0.1, "bounds": (0, 1), "method": METHOD, "rng": 0, "budget": 56}
    with pytest.raises(error, match=sentence) as caught:
        zm.minimize(fun, x0, **(settled | given))
    ancestors = type(caught.value).__mro__
    assert zm.errors.ZomirrorError in ancestors
    assert (ValueError if error is VALUE else TypeError) in ancestors
    assert fun.rows == 0


@pytest.mark.parametrize("fun", [None, 3, "f"])
def test_a_function_that_is_none_is_refused(fun: Any) -> None:
    with pytest.raises(zm.errors.ArgumentTypeError, match=r"expected fun to be a function of an \(n, d\) array, got"):
        run(fun)


def test_an_unknown_option_is_refused() -> None:
    fun = Counted(sphere_function)
    unknown: dict[str, Any] = {"buget": 100}
    with pytest.raises(TypeError, match="unexpected keyword argument 'buget'"):
        run(fun, **unknown)
    assert fun.rows == 0


# --- F21: the smallest budgets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 10])
def test_budgets_around_one_iteration(m: int) -> None:
    for budget in (0, 1, m - 1, m, m + 1, m + 2, m + 3):
        fun = Counted(sphere_function)
        if budget < m + 2:
            with pytest.raises(zm.errors.ArgumentError, match="expected budget"):
                run(fun, budget=budget, method=zm.methods.zo_ada_expmd(m))
            assert fun.rows == 0
        else:
            result = run(fun, budget=budget, method=zm.methods.zo_ada_expmd(m))
            assert fun.rows == result.nfev <= budget


# --- F25: nothing depends on threads ------------------------------------------------------------------------------

BITS = """
import hashlib
import numpy as np
import zomirror as zm

d = 30_001
centre = np.linspace(-1, 1, d)
def f(X):
    return np.abs(X[:, ::100] - centre[::100]).max(axis=1)

mds = zm.methods
for mirror, directions, dtype in (
    (mds.Entropy(), mds.rademacher, np.float32), (mds.Euclidean(), mds.sphere, np.float64)
):
    method = zm.methods.MirrorDescent(mirror, zm.methods.TwoPoint(20, directions), zm.methods.Adaptive())
    result = zm.minimize(f, np.zeros(d, dtype), l1=1e-3, bounds=(-2, 2), method=method, budget=64, rng=0)
    print(hashlib.sha256(result.x.tobytes() + result.history.stationarity.tobytes()).hexdigest())
"""


def test_bits_do_not_depend_on_the_threads_of_the_linear_algebra() -> None:
    """A worker process may have fewer threads than its parent; the sums must not be cut by them."""
    outputs = set()
    for threads in ("1", "2", "3"):
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        command = [sys.executable, "-c", BITS]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | limits)
        outputs.add(done.stdout)
    assert len(outputs) == 1


MEMORY = """
import hashlib
import numpy as np
import zomirror as zm

d = 300
centre = np.where(np.arange(d) % 30 == 0, 0.7, 0.0)
def f(X):
    return np.square(X - centre).sum(axis=1) + 0.1 * np.abs(X[:, ::7]).max(axis=1)

def noisy(X):
    return f(X) + 1e-3 * np.sin(1e7 * X.sum(axis=1))

for fun, dtype, noise in ((f, np.float32, None), (f, np.float64, None), (noisy, np.float64, 1e-3)):
    result = zm.minimize(fun, np.full(d, 0.1, dtype), l1=1e-2, bounds=(-2, 2), budget=4_000, noise=noise, rng=0)
    print(hashlib.sha256(result.x.tobytes() + result.history.fun.tobytes()).hexdigest())
"""


EXPLAINED = """
import hashlib
import numpy as np
import zomirror as zm

rng = np.random.default_rng(0)
for shape in ((1, 12, 12), (30,)):
    d = int(np.prod(shape))
    first, second = 2 * rng.normal(size=(8, d)), 2 * rng.normal(size=(4, 8))
    x0 = rng.random(shape)

    def model(batch):
        z = (batch.reshape(len(batch), 1, -1) * first).sum(axis=2)
        return ((z / (1 + np.abs(z)))[:, None] * second).sum(axis=2)

    for kind in ("PN", "PP") if len(shape) == 3 else ("PN",):
        for target in ("explain", "prior"):
            given = {} if target == "explain" else {"prior": np.repeat(second.sum(axis=1, keepdims=True), d, axis=1)}
            given = {k: v.reshape(4, *shape) for k, v in given.items()}
            e = zm.explain(model, x0, kind=kind, budget=250, rng=0, **given)
            print(hashlib.sha256(e.x.tobytes() + e.history.fun.tobytes()).hexdigest())
"""


@pytest.mark.parametrize("work", [MEMORY, EXPLAINED], ids=["minimize", "explain"])
def test_bits_do_not_depend_on_which_linear_algebra_suits_the_processor(work: str) -> None:
    """A run may go on on another machine, for which the library beneath numpy has kernels that add up otherwise."""
    outputs = set()
    kinds: list[dict[str, str]] = [{}, {"OPENBLAS_CORETYPE": "Prescott"}, {"OPENBLAS_CORETYPE": "Nehalem"}]
    for kind in [*kinds, *([{"ZOMIRROR_KERNELS": "0"}] if work is EXPLAINED else [])]:
        command = [sys.executable, "-c", work]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | kind)
        outputs.add(done.stdout)
    assert len(outputs) == 1


# --- F28: many dimensions, and one -------------------------------------------------------------------------------

PEAK = """
import resource, sys
import numpy as np
import zomirror as zm

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

d, m, dtype = int(sys.argv[1]), int(sys.argv[2]), np.dtype(sys.argv[3])
zm.minimize(lambda X: X[:, 0], np.zeros(100), method=zm.methods.zo_ada_expmd(5), budget=20)  # all imports are done
before = peak()
result = zm.minimize(lambda X: X[:, 0] - X[:, 1], np.zeros(d, dtype), l1=1e-3, l2=1e-3, bounds=(-1, 1),
                     budget=m + 2, method=zm.methods.zo_ada_expmd(m), rng=0)
assert result.nit == 1 and result.x.dtype == dtype and np.isfinite(result.x).all()
print(peak() - before)
"""


def peak_bytes(d: int, m: int, dtype: str) -> int:
    command = [sys.executable, "-c", PEAK, str(d), str(m), dtype]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_ten_million_dimensions_take_ten_vectors() -> None:
    """m = 1: the memory of a run is a few vectors, each 40 MB here."""
    assert peak_bytes(10**7, 1, "float32") <= 10 * 10**7 * 4


def test_a_large_batch_takes_two_blocks_not_a_matrix() -> None:
    """400 x 150,000 numbers would be 480 MB; two blocks of 64 MB and a few vectors do."""
    assert peak_bytes(150_000, 400, "float64") <= 2 * 2**26 + 16 * 150_000 * 8


@pytest.mark.parametrize(
    "method",
    [
        None,
        zm.methods.zo_ada_expmd(1, radius=1e-3),
        zm.methods.zo_expmd(5.0, 1, radius=1e-3),
        zm.methods.zo_psgd(5.0, 1, radius=1e-3),
    ],
    ids=["recommended", "zo_ada_expmd", "zo_expmd", "zo_psgd"],
)
def test_one_dimension_is_a_problem_like_any_other(method: zm.methods.Method | None, tmp_path: Path) -> None:
    """d = 1 and, where it can be chosen, m = 1; the minimum of (x - 1/2)^2 + |x|/10 is at 0.45."""

    def fun(points: Any) -> Any:
        return np.square(points[:, 0] - 0.5)

    given: dict[str, Any] = {"l1": 0.1, "bounds": (0, 1), "budget": 600, "method": method, "rng": 0}
    result = zm.minimize(fun, np.ones(1), run_dir=tmp_path / "run", **given)
    assert result.x.shape == (1,)
    assert result.fun <= 0.0475 + 0.02
    again = zm.minimize(fun, np.ones(1), **given)
    assert again.x.tobytes() == result.x.tobytes()
