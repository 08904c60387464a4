"""Count rows that a model sends again by itself.

A model behind HTTP retries by itself, and may be called from deep inside the black box. The current batch is therefore
a context variable, not an argument; threads that copy the context see it too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

_account: ContextVar[Callable[[int], None] | None] = ContextVar("account", default=None)


class accounted:  # noqa: N801 - a context like contextlib's, without the cost of a generator
    """Within this context `send_again(rows)` calls `account(rows)`, which may raise to prevent the sending."""

    __slots__ = ("_account", "_token")

    def __init__(self, account: Callable[[int], None]) -> None:
        self._account = account

    def __enter__(self) -> None:
        self._token = _account.set(self._account)

    def __exit__(self, *error: object) -> None:
        _account.reset(self._token)


def send_again(rows: int) -> None:
    """Announce that `rows` rows of the current batch are about to be sent again."""
    account = _account.get()
    if account is not None:
        account(rows)
