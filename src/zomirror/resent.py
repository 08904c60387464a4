"""Rows that are sent once more: who does that says so, and the ledger of the batch under way hears of it.

A model behind HTTP tries again by itself, and may lie deep inside the function that is asked. So the batch under way
is known to its thread (and to the threads that are given a copy of its context), not passed from hand to hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_account: ContextVar[Callable[[int], None] | None] = ContextVar("account", default=None)


@contextmanager
def accounted(account: Callable[[int], None]) -> Iterator[None]:
    """Have `account(rows)` called before rows of the batch under way are sent again; what it raises stops them."""
    token = _account.set(account)
    try:
        yield
    finally:
        _account.reset(token)


def send_again(rows: int) -> None:
    """Say that so many rows are about to be sent once more."""
    account = _account.get()
    if account is not None:
        account(rows)
