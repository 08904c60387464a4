"""Results and the sentences of their status."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import zomirror as zm
import zomirror.result
from tests.conftest import sphere_function
from zomirror.result import MOST_ENTRIES, HistoryLog


def test_a_status_is_a_sentence() -> None:
    for status in zm.Status:
        assert re.fullmatch(r"[a-z].{15,}[^.]", status.value)
    assert len({status.value for status in zm.Status}) == len(zm.Status)


def test_success_is_to_end_as_told() -> None:
    good = {zm.Status.BUDGET, zm.Status.MAXITER, zm.Status.MAX_TIME, zm.Status.TARGET, zm.Status.CALLBACK}
    assert good <= {status for status in zm.Status if status.success}
    for status in (zm.Status.RUNNING, zm.Status.ERROR, zm.Status.NONFINITE, zm.Status.DIVERGED, zm.Status.MAX_SENT):
        assert not status.success


def test_a_result_reads_well() -> None:
    result = zm.minimize(sphere_function, np.zeros(3), budget=100, method=zm.methods.zo_ada_expmd(5), rng=0)
    assert "history" not in repr(result)
    assert result.success
    assert result.message == "the budget of queries is used up"
    assert (result.used, result.lost) == (result.nfev, 0)
    with pytest.raises(AttributeError):
        result.x = np.zeros(3)  # type: ignore[misc]


def test_history_is_arrays_of_one_length() -> None:
    result = zm.minimize(sphere_function, np.zeros(3), l1=0.1, budget=100, method=zm.methods.zo_ada_expmd(5), rng=0)
    columns = [getattr(result.history, name) for name in ("nfev", "fun", "f", "eta", "stationarity", "nnz")]
    assert {column.shape for column in columns} == {(len(result.history),)}
    assert [column.dtype.kind for column in columns] == ["i", "f", "f", "f", "f", "i"]


def logged(values: list[float], start: HistoryLog | None = None, first: int = 0) -> HistoryLog:
    log = HistoryLog() if start is None else start
    for i, value in enumerate(values, first):
        log.add((10 * i, value, value - 1, 0.5, float(i), i % 7))
    return log


def test_a_short_history_is_kept_whole() -> None:
    values = np.random.default_rng(0).normal(size=MOST_ENTRIES)
    log = logged(list(values))
    assert log.history().fun.tobytes() == values.tobytes()
    assert log.count == len(log.history()) == MOST_ENTRIES


@given(
    values=some.lists(some.sampled_from([0.0, 1.0, 2.0, 3.0, float("nan"), float("inf")]), max_size=90),
    at=some.integers(0, 90),
)
def test_a_long_history_is_thinned_and_its_best_stays_exact(values: list[float], at: int) -> None:
    """Against the whole list; and a log stored and restored anywhere goes on as if it had not been."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zomirror.result, "MOST_ENTRIES", 8)
        log = logged(values)
        history = log.history()
        numbers = log.table()[:, 0].astype(int)
        assert len(history) <= 8 + 2
        assert len(history) >= min(len(values), 5)
        if values:
            assert (numbers[0], numbers[-1]) == (0, len(values) - 1)
            whole = np.fmin.accumulate(values)
            np.testing.assert_array_equal(np.fmin.accumulate(history.fun), whole[numbers])
            np.testing.assert_array_equal(history.fun, np.array(values)[numbers])
            np.testing.assert_array_equal(history.nfev, 10 * numbers)
        middle = HistoryLog.restored(logged(values[:at]).table())
        again = logged(values[at:], middle, min(at, len(values)))
        assert again.table().tobytes() == log.table().tobytes()
        assert again.count == log.count


@pytest.mark.parametrize("numbers", [[1], [0, 2], [0, 0.5], [0, 9999], [0, 1, 1]])
def test_a_table_that_no_history_makes_is_refused(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="entries"):
        HistoryLog.restored(np.repeat(np.array(numbers, dtype=np.float64)[:, None], 7, axis=1))
    with pytest.raises(ValueError, match="7 columns"):
        HistoryLog.restored(np.zeros((len(numbers), 6)))
