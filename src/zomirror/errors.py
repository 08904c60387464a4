"""All exceptions of the library; each message says what was expected, what was given, and what to do."""

from __future__ import annotations

from typing import Any


class ZomirrorError(Exception):
    """The base class of all exceptions of this library."""


class ArgumentError(ZomirrorError, ValueError):
    """An argument has an invalid value; raised before the first query."""


class ArgumentTypeError(ZomirrorError, TypeError):
    """An argument has an invalid type; raised before the first query."""


class BudgetError(ZomirrorError):
    """The next batch would exceed max_sent; it was not sent."""


class OracleError(ZomirrorError):
    """The black box raised an exception, or its answer was not one number per row.

    `rows` are the rows of the failing batch, counted from 0 over all queries of the run. `result` is the Result or
    Explanation reached before the error.
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
    """A worker died, was stopped, exceeded its deadline, or could not be sent its task."""


class DataError(ZomirrorError):
    """A data set or a stored file is missing, damaged or not what it claims to be."""
