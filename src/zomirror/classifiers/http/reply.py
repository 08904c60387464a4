"""The outcome of one HTTP request: the server's reply, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of any status; header names are in lower case."""

    status: int
    # Not in the repr, which appears in tracebacks: a server may repeat the secret that it was sent.
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there was no answer, and whether to retry; `detail` may hold text of the server."""

    reason: str
    again: bool
    detail: str = field(default="", repr=False)
