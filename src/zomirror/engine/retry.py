"""Failed batches that are sent again: by the policy `on_error`, or by an adapter that retries by itself.

Every row sent again is in the ledger. A model behind HTTP retries by itself and may lie deep inside the function that
is asked, so the current batch is a context variable, not an argument: `send_again` finds its ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from zomirror.checks import choice, positive_integer
from zomirror.engine.black_box import BlackBox
from zomirror.engine.interrupt import in_flight
from zomirror.engine.ledger import Answer, Ledger
from zomirror.engine.request import Job
from zomirror.errors import OracleError, ZomirrorError

_account: ContextVar[Callable[[int], None] | None] = ContextVar("account", default=None)


class accounted:  # noqa: N801 - a context like contextlib's, without the cost of a generator
    """Have `account(rows)` called before rows of the batch under way are sent again; what it raises stops them."""

    __slots__ = ("_account", "_token")

    def __init__(self, account: Callable[[int], None]) -> None:
        self._account = account

    def __enter__(self) -> None:
        self._token = _account.set(self._account)

    def __exit__(self, *error: object) -> None:
        _account.reset(self._token)


def send_again(rows: int) -> None:
    """Say that this number of rows of the current batch is about to be sent once more."""
    account = _account.get()
    if account is not None:
        account(rows)


@dataclass(frozen=True, slots=True)
class Retry:
    """`on_error` policy: send a failed block again; every attempt counts as sent.

    Parameters
    ----------
    times : int
        How often a block is sent again at most.
    """

    times: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", positive_integer("times", self.times))


def attempts_of(on_error: object) -> int:
    """How often a block is sent under the policy `on_error` before its failure is final."""
    if isinstance(on_error, Retry):
        return 1 + on_error.times
    choice("on_error", on_error, ("raise",))
    return 1


def ask_block(job: Job[Any], box: BlackBox, start: int, stop: int) -> Answer:
    """Ask rows start .. stop-1, again after a failure as often as allowed; every attempt is in the ledger."""
    request, ledger, rows = job.waiting, job.ledger, stop - start
    # Made before they count as sent: a kill may come at any moment.
    inputs = job.inputs(job.buffer.view(request.query, start, stop))
    samples = (request.query.samples(start, stop),) if request.query.stochastic else ()
    where = range(ledger.used, ledger.used + rows)
    for attempt in range(1, box.attempts + 1):
        with in_flight:
            ledger.begin(rows, aside=request.aside)
            again = Again([(ledger, rows)])
            try:
                with accounted(again):
                    answer = box.ask(inputs, *samples)
            except Exception as error:
                passed = error is again.refused or isinstance(error, box.passes)
                if attempt < box.attempts and not passed:
                    continue
                ledger.lose(type(error).__name__)
                if passed:
                    raise
                if isinstance(error, OracleError):
                    error.rows = error.rows or where
                    raise
                raise OracleError(
                    f"{box.name} raised {type(error).__name__}: {_said(error)} (queries {where.start} to "
                    f"{where.stop - 1} of the run, attempt {attempt} of {box.attempts})",
                    rows=where,
                ) from error
            try:
                values = request.keep(answer, rows)
            except OracleError as error:
                error.rows = where
                ledger.lose("an answer that is not one number, or one row of scores, for each row")
                raise
            except Exception as error:
                ledger.lose(type(error).__name__)
                raise OracleError(
                    f"the answer of {box.name} cannot be used: {type(error).__name__}: {_said(error)} (queries "
                    f"{where.start} to {where.stop - 1} of the run)",
                    rows=where,
                ) from error
            ledger.record(values, job.points)
            return values
    raise AssertionError("unreachable")


def _said(error: Exception) -> str:
    """What an exception says, whatever its __str__ does."""
    try:
        return str(error)
    except Exception as trouble:  # noqa: BLE001  a foreign class may do anything
        return f"(its message cannot be read: {type(trouble).__name__})"


class Again:
    """Charges rows that are sent once more to the ledgers whose batch they are of, each with its number of rows.

    Which rows of a joint batch they were is not known: they are dealt out from the first ledger on.
    """

    def __init__(self, owners: Sequence[tuple[Ledger, int]]) -> None:
        self._owners = owners
        self.refused: ZomirrorError | None = None
        """Why they were not allowed to leave."""

    def __call__(self, rows: int) -> None:
        """Write them down before they leave."""
        try:
            for ledger, most in cycle(self._owners):
                if rows <= 0:
                    return
                ledger.begin(min(rows, most))
                rows -= most
        except ZomirrorError as error:
            self.refused = error
            raise
