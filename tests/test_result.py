"""Results and the sentences of their status."""

from __future__ import annotations

import re

import numpy as np
import pytest

import zomirror as zm
from tests.conftest import sphere_function


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
