"""Who may talk to the studio: a page of its own origin that knows the token.

Other pages in the same browser can send requests to this machine, and a name that they own may point to it (DNS
rebinding). So every request must name this address as its Host, begin with the secret token, and come from this origin
if it says where it comes from.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 23
"""Larger requests are refused: a picture of 512 x 512 pixels takes less than a tenth."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer: nothing but this origin is loaded or asked, and no other page may frame or read it."""


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """Refuses what does not come from the studio's own page; the application sees paths without the token."""

    application: Application
    token: str
    hosts: tuple[str, ...]
    """What the header Host may say: address and port."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        status, sentence = self._refusal(scope, headers)
        if status:
            await _refuse(send, status, sentence)
            return
        inner = dict(scope) | {"path": scope["path"][len(self.token) + 1 :], "root_path": ""}
        inner["raw_path"] = inner["path"].encode()
        await self.application(inner, _bounded(receive), _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str]:
        """A status and a sentence; 0 for what may enter."""
        if headers.get("host", "") not in self.hosts:
            return 421, f"expected the address {self.hosts[0]}, got another name in Host: open the printed address"
        given = scope["path"].encode("utf-8", "replace").split(b"/")
        if len(given) < 3 or not hmac.compare_digest(given[1], self.token.encode()):
            return 404, "no such page: open the address that zomirror studio printed, with its token"
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin is not None and origin not in [f"http://{host}" for host in self.hosts]:
            return 403, "expected a request of the studio's own page, got one from another origin"
        if site not in ("same-origin", "none") and headers.get("sec-fetch-mode") != "navigate":
            return 403, "expected a request of the studio's own page, got one from another site"
        if scope["method"] not in ("GET", "HEAD"):
            if not headers.get("content-type", "").startswith("application/json"):
                return 415, "expected Content-Type application/json"
            length = headers.get("content-length", "0")
            if not length.isdecimal() or int(length[:20]) > MOST_BYTES:
                return 413, f"expected at most {MOST_BYTES:,} bytes, got more"
        return 0, ""


class TooManyBytesError(Exception):
    """A request is larger than it said, or than is allowed."""


def _bounded(receive: Receive) -> Receive:
    """`receive` that gives up after MOST_BYTES, for requests without a length."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BYTES:
            raise TooManyBytesError
        return message

    return counted


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = dict(message) | {"headers": [*message.get("headers", ()), *own]}
        await send(message)

    return sent


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    send = _with_headers(send)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
