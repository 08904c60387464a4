"""What comes of one HTTP request: the server's reply, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered, whatever its status; the names of the headers are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)  # what a server says may repeat the secret that it was sent,
    body: bytes = field(repr=False)  # and a repr ends up in tracebacks


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there was no answer, and whether asking again may help."""

    reason: str
    again: bool
