"""Rows that are sent once more: who does that says so, and the ledger of the batch under way hears of it.

A model behind HTTP tries again by itself, and may lie deep inside the function that is asked. So the batch under way
is known to its thread (and to the threads that are given a copy of its context), not passed from hand to hand.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

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
    """Say that so many rows are about to be sent once more."""
    account = _account.get()
    if account is not None:
        account(rows)
