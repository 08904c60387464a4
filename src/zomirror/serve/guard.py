"""What may reach the model server: few paths, JSON objects of bounded size and depth, and a token in its own header."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Server = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 24
"""The default size of a request: 16 MiB."""
DEPTH = 16
"""JSON that is nested more deeply is refused: an array of a batch of pictures has 4 levels."""
PATIENCE = 20.0
"""Seconds in which a request must have arrived."""
_PASSED = (b"accept", b"content-type", b"host", b"traceparent", b"x-request-id")
"""Headers that the server behind sees: none that would change how a request is read."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """Lets explanations, health and metrics of one model through, and refuses everything else in a sentence."""

    server: Server
    name: str
    token: str | None = None
    """The bearer token that a request for an explanation must carry."""
    hosts: tuple[str, ...] | None = None
    """What the header Host may say; None: anything."""
    most_bytes: int = MOST_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.server(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        status, sentence = self._refusal(scope, headers)
        body = b""
        if not status and scope["method"] == "POST":
            status, sentence, body = await self._body(receive)
        if status:
            await _refuse(send, status, sentence)
            return
        kept = [(name, value) for name, value in scope["headers"] if name.lower() in _PASSED]
        inner = dict(scope) | {"headers": [*kept, (b"content-length", str(len(body)).encode())]}
        await self.server(inner, _again(body, receive), send)

    @property
    def _open(self) -> tuple[str, ...]:
        """Paths that are read without a token: health and metrics."""
        own = f"/v1/models/{self.name}", f"/v2/models/{self.name}/ready"
        return ("/", "/metrics", "/v1/models", "/v2/health/live", "/v2/health/ready", *own)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str]:
        """A status and a sentence; 0 for what may go on."""
        explain, path = f"/v1/models/{self.name}:explain", scope["path"]
        if self.hosts is not None and headers.get("host", "") not in self.hosts:
            return 421, f"expected a request to {self.hosts[0]}, got another name in Host"
        if "origin" in headers:
            return 403, "expected a program, got a page in a browser (Origin)"
        if scope.get("query_string"):
            return 400, "expected no query in the address: a token belongs into the header Authorization"
        if path in self._open and scope["method"] in ("GET", "HEAD"):
            return 0, ""
        if path != explain:
            return 404, f"expected {explain}, /metrics or a path of the health, got another"
        if scope["method"] != "POST":
            return 405, f"expected POST for {explain}, got another method"
        if self.token is not None:
            given = headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
                return 401, "expected the token as 'Authorization: Bearer ...', got none or another one"
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "expected Content-Type application/json"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18 or int(length) > self.most_bytes:
            return 413, self._too_large
        return 0, ""

    @property
    def _too_large(self) -> str:
        return f"expected at most {self.most_bytes:,} bytes, got more: send fewer instances or smaller ones"

    async def _body(self, receive: Receive) -> tuple[int, str, bytes]:
        """The whole body, or a status and a sentence."""
        try:
            body = await asyncio.wait_for(self._read(receive), PATIENCE)
        except TimeoutError:
            return 408, f"expected the request within {PATIENCE:g} seconds", b""
        if body is None:
            return 413, self._too_large, b""
        if depth_of(body) > DEPTH:
            return 400, f"expected JSON of at most {DEPTH} levels, got deeper ones", b""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return 400, "expected JSON, got something else", b""
        if not isinstance(document, dict):
            return 400, 'expected an object {"instances": [...], "parameters": {...}}, got something else', b""
        return 0, "", body

    async def _read(self, receive: Receive) -> bytes | None:
        """The body; None if it is too large."""
        parts, size = [], 0
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.most_bytes:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)


def depth_of(body: bytes) -> int:
    """How deeply lists and objects are nested in JSON, without reading it."""
    depth = deepest = 0
    for mark in re.findall(rb"[\[\]{}]", _STRING.sub(b"", body)):
        depth += 1 if mark in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read, and afterwards what else arrives."""
    given = False

    async def received() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
