"""What passes the guard of the model server, asked without a network."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from zomirror.serve import guard as guards
from zomirror.serve.guard import DEPTH, Guard, depth_of

PATH = "/v1/models/m:explain"
JSON = {"content-type": "application/json"}


def ask(
    guard: Guard,
    method: str = "POST",
    path: str = PATH,
    body: tuple[bytes, ...] = (b"{}",),
    headers: dict[str, str] | None = None,
    query: bytes = b"",
    kind: str = "http",
) -> tuple[int, Any]:
    """The status and the document of one request, whose body comes in parts."""
    sent: list[Any] = []
    parts = list(body)

    async def receive() -> Any:
        if not parts:
            await asyncio.sleep(60)
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts) or part == b"unfinished"}

    async def send(message: Any) -> None:
        sent.append(message)

    given = [(name.encode(), value.encode()) for name, value in (JSON if headers is None else headers).items()]
    scope = {"type": kind, "method": method, "path": path, "query_string": query, "headers": given}
    asyncio.run(guard(scope, receive, send))
    if kind != "http":
        return sent[0].get("code", 0), None
    return sent[0]["status"], json.loads(sent[1]["body"])


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """A server that answers with what it was given."""
    if scope["type"] != "http":
        await send({"type": "done", "code": 1})
        return
    message = await receive() if scope["method"] == "POST" else {"body": b""}
    found = {"body": message["body"].decode(), "headers": sorted(name.decode() for name, _ in scope["headers"])}
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(found).encode()})


def test_an_object_passes_whole_with_few_headers() -> None:
    parts = (b'{"instances"', b": [[1]]}")
    status, found = ask(Guard(echo, "m"), body=parts, headers=JSON | {"ce-id": "x", "authorization": "Bearer t"})
    assert (status, found["body"]) == (200, '{"instances": [[1]]}')
    assert found["headers"] == ["content-length", "content-type"]


def test_health_is_open_and_the_rest_needs_the_token() -> None:
    guard = Guard(echo, "m", token="secret")  # noqa: S106 - of this test
    for path in ("/", "/metrics", "/v1/models/m", "/v2/health/live", "/v2/models/m/ready"):
        assert ask(guard, "GET", path)[0] == 200
    assert ask(guard)[0] == 401
    assert ask(guard, headers=JSON | {"authorization": "secret"})[0] == 401
    assert ask(guard, headers=JSON | {"authorization": "Bearer secret"})[0] == 200


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"path": "/v1/models/other:explain"}, 404),
        ({"path": "/docs", "method": "GET"}, 404),
        ({"method": "GET"}, 405),
        ({"query": b"token=x"}, 400),
        ({"headers": JSON | {"origin": "http://evil.example"}}, 403),
        ({"headers": {"content-type": "text/plain"}}, 415),
        ({"headers": JSON | {"content-length": "101"}}, 413),
        ({"headers": JSON | {"content-length": "-1"}}, 413),
        ({"headers": JSON | {"content-length": "9" * 5000}}, 413),
        ({"body": (b" " * 60, b" " * 60)}, 413),
        ({"body": (b"[" * (DEPTH + 1),)}, 400),
        ({"body": (b"nonsense",)}, 400),
        ({"body": (b"[1]",)}, 400),
    ],
)
def test_everything_else_is_refused_in_a_sentence(given: Any, status: int) -> None:
    found = ask(Guard(echo, "m", most_bytes=100), **given)
    assert found[0] == status
    assert found[1]["error"].startswith("expected")


def test_on_this_machine_the_host_must_be_its_own() -> None:
    guard = Guard(echo, "m", hosts=("127.0.0.1:80",))
    assert ask(guard, headers=JSON | {"host": "rebound.example"})[0] == 421
    assert ask(guard, headers=JSON | {"host": "127.0.0.1:80"})[0] == 200


def test_a_request_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "PATIENCE", 0.05)
    assert ask(Guard(echo, "m"), body=(b"unfinished",))[0] == 408


def test_web_sockets_are_closed_and_the_lifespan_passes() -> None:
    assert ask(Guard(echo, "m"), kind="websocket")[0] == 1008
    assert ask(Guard(echo, "m"), kind="lifespan")[0] == 1


@pytest.mark.parametrize(
    ("body", "depth"),
    [(b"{}", 1), (b'{"a": [[1], [2]]}', 3), (b'["[[[["]', 1), (rb'["\"[["]', 1), (b"]][[", 0), (b"1", 0)],
)
def test_the_depth_is_counted_outside_strings(body: bytes, depth: int) -> None:
    assert depth_of(body) == depth
