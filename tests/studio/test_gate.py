"""Who may enter the studio: its own page with the token, and no page of another origin or name."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3

from tests.support.studio_server import studio
from zomirror.schema.explainer import Explainer
from zomirror.studio.gate import HEADERS, MOST_BYTES, Gate
from zomirror.studio.material import Material
from zomirror.studio.session import Session

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with studio(Session(Explainer(len, "words"), Material([("a", "a b c")]))) as url:
        yield url


def ask(url: str, method: str = "GET", body: bytes | None = None, **headers: Any) -> tuple[int, str]:
    answer = urllib3.request(method, url, body=body, headers=headers, retries=False, timeout=20)
    return answer.status, answer.data.decode()


def test_every_answer_forbids_what_is_not_its_own(address: str) -> None:
    for url in (address, address[:-5], address + "state"):
        answer = urllib3.request("GET", url, retries=False)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert "server" not in answer.headers


@pytest.mark.parametrize("path", ["", "x", "{token}x/", "{token}", "{short}/state", "%00/"])
def test_without_the_token_there_is_nothing(path: str, address: str) -> None:
    parts = urlsplit(address)
    token = parts.path.strip("/")
    assert len(token) >= 32
    given = path.format(token=token, short=token[:-1])
    status, text = ask(f"http://{parts.netloc}/{given}")
    assert status == 404
    assert "open the address that zomirror studio printed" in text
    assert token not in text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}"])
def test_another_name_is_refused(host: str, address: str) -> None:
    """DNS rebinding: a name of another page that points to this machine."""
    status, _ = ask(address + "state", Host=host.format(port=urlsplit(address).port))
    assert status == 421


def test_localhost_is_another_name_of_this_machine(address: str) -> None:
    assert ask(address.replace("127.0.0.1", "localhost") + "state")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
@pytest.mark.parametrize("path", ["state", "explain", "progress/1"])
def test_another_origin_is_refused_even_with_the_token(path: str, origin: str, address: str) -> None:
    method = "POST" if path == "explain" else "GET"
    given = {"Origin": origin.format(port=urlsplit(address).port)} | JSON
    assert ask(address + path, method, b"{}" if method == "POST" else None, **given)[0] == 403


def test_another_site_that_loads_a_part_is_refused(address: str) -> None:
    assert (
        ask(address + "studio.js", "GET", None, **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})[0]
        == 403
    )
    assert ask(address, "GET", None, **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200


def test_a_form_cannot_post(address: str) -> None:
    """CSRF: a form of another page sends these types without asking."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert ask(address + "stop", "POST", b"{}", **{"Content-Type": kind})[0] == 415


def test_large_requests_are_refused(address: str) -> None:
    assert ask(address + "explain", "POST", b"x" * (MOST_BYTES + 1), **JSON)[0] == 413
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as plain:  # without a length
        head = f"POST {parts.path}explain HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        plain.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
        block = b"x" * (1 << 20)
        answer = b""
        try:
            for _ in range(9):
                plain.sendall(b"%x\r\n%s\r\n" % (len(block), block))
            answer = plain.recv(100)
        except OSError:  # it has hung up
            answer = answer or plain.recv(100)
        assert b" 413 " in answer


def test_a_web_socket_is_refused(address: str) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    for origin in ({"Origin": "http://evil.example"}, {}):
        assert ask(address + "progress/1", "GET", None, **(upgrade | origin))[0] in (400, 403, 404)


def test_what_is_no_request_does_not_reach_the_page() -> None:
    import asyncio

    seen: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    async def send(message: Any) -> None:
        seen.append(message)

    gate = Gate(inner, "token", ("127.0.0.1:1",))
    asyncio.run(gate({"type": "websocket", "path": "/token/progress/1"}, None, send))  # type: ignore[arg-type]
    asyncio.run(gate({"type": "lifespan"}, None, send))  # type: ignore[arg-type]
    assert seen == [{"type": "websocket.close", "code": 1008}, "lifespan"]
