"""One root for every exception, and the built-in type that a caller would expect beside it."""

from __future__ import annotations

import inspect
import pickle

import pytest

import zomirror as zm
from zomirror import errors


def test_every_exception_has_one_root() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
    assert len(kinds) >= 7
    assert all(issubclass(kind, zm.errors.ZomirrorError) for kind in kinds)


def test_wrong_arguments_are_also_what_python_calls_them() -> None:
    assert issubclass(zm.errors.ArgumentError, ValueError)
    assert issubclass(zm.errors.ArgumentTypeError, TypeError)
    for kind in (zm.errors.BudgetError, zm.errors.OracleError, zm.errors.RunError, zm.errors.DataError):
        assert not issubclass(kind, ValueError | TypeError)


def test_an_oracle_error_carries_rows_and_result() -> None:
    error = zm.errors.OracleError("it failed", rows=range(3, 7))
    assert (str(error), error.rows, error.result) == ("it failed", range(3, 7), None)


@pytest.mark.parametrize(
    "error", [zm.errors.ArgumentError("a"), zm.errors.BudgetError("b"), zm.errors.OracleError("c", rows=range(2))]
)
def test_errors_travel_between_processes(error: Exception) -> None:
    back = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)
