"""Every exception of the library; each message says what was expected, what came, and what to do."""

from __future__ import annotations

from typing import Any


class ZomirrorError(Exception):
    """The root of every exception that this library raises on purpose."""


class ArgumentError(ZomirrorError, ValueError):
    """An argument has a value that cannot be used; found before the first query."""


class ArgumentTypeError(ZomirrorError, TypeError):
    """An argument has a type that cannot be used; found before the first query."""


class BudgetError(ZomirrorError):
    """The next batch would spend more queries than allowed; it was not sent."""


class OracleError(ZomirrorError):
    """The black box raised, or answered something that is not one number per row.

    `rows` are the rows of the failing batch (0-based positions in the run's stream of queries) and
    `result` is what had been reached when the error leaves a run: a Result, or an Explanation.
    """

    def __init__(self, message: str, *, rows: range | None = None, result: Any = None) -> None:
        super().__init__(message)
        self.rows = rows
        self.result = result


class RunError(ZomirrorError):
    """A run directory cannot be used: locked, damaged, of another configuration or another version."""


class BusyError(RunError):
    """A run directory is in use by another process."""


class WorkerError(ZomirrorError):
    """A worker died, was stopped, overran its deadline, or could not be given its task."""


class DataError(ZomirrorError):
    """A data set or a stored file is missing, damaged or not what it claims to be."""
