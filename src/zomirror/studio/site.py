"""The pages of the studio and the requests that they send, and the server that answers them."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from importlib import resources
from typing import Any

from zomirror.errors import ArgumentError, ZomirrorError
from zomirror.features.optional import need
from zomirror.schema.parameter import of_space
from zomirror.studio.gate import Application, Gate, TooManyBytesError
from zomirror.studio.session import Session

HOST = "127.0.0.1"
POLL = 0.05
"""Seconds between two looks at the progress of a search."""
FILES = {"studio.js": "text/javascript", "studio.css": "text/css"}


def run(session: Session, *, port: int = 0, tell: Callable[[str], None]) -> None:
    """Serve the studio on this machine until Ctrl-C; `tell` is given the address once it answers."""
    uvicorn = need("uvicorn", "uvicorn", "studio")
    need("starlette", "starlette", "studio")
    with socket.create_server((HOST, port)) as listening:
        application, address = site(session, listening.getsockname()[1])
        server = uvicorn.Server(configuration(application))
        tell(address)
        with suppress(KeyboardInterrupt):
            server.run([listening])
        session.stop()
        session.wait(5.0)


def configuration(application: Application) -> Any:
    """How uvicorn serves it: no web sockets, nothing printed, open streams are cut off at the end."""
    uvicorn = need("uvicorn", "uvicorn", "studio")
    return uvicorn.Config(
        application,
        ws="none",
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=1,
        lifespan="off",
        server_header=False,
    )


def site(session: Session, port: int) -> tuple[Application, str]:
    """The application behind its gate, and the address with a new token."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    token = secrets.token_urlsafe(24)
    hosts = tuple(f"{name}:{port}" for name in (HOST, "localhost"))
    asked = partial(_answered, session)
    routes = [
        Route("/", _page),
        *(Route(f"/{name}", partial(_file, name)) for name in FILES),
        Route("/state", asked(_state)),
        Route("/samples/{number:int}", asked(_sample)),
        Route("/explain", asked(_explain), methods=["POST"]),
        Route("/stop", asked(_stop), methods=["POST"]),
        Route("/forget", asked(_forget), methods=["POST"]),
        Route("/progress/{number:int}", asked(_progress)),
        Route("/report", asked(_report)),
    ]
    return Gate(Starlette(routes=routes), token, hosts), f"http://{hosts[0]}/{token}/"


def _answered(session: Session, answer: Callable[..., Any]) -> Callable[..., Any]:
    """A handler whose errors become a status and a sentence."""
    from starlette.responses import JSONResponse

    async def handle(request: Any) -> Any:
        try:
            return await answer(session, request)
        except TooManyBytesError:
            return JSONResponse({"error": "expected fewer bytes"}, 413)
        except ZomirrorError as error:
            return JSONResponse({"error": str(error)}, 400)

    return handle


async def _page(_request: Any) -> Any:
    from starlette.responses import Response

    return Response(_text("page.html"), media_type="text/html")


async def _file(name: str, _request: Any) -> Any:
    from starlette.responses import Response

    base = resources.files("zomirror.report").joinpath("base.css").read_text("utf-8") if name.endswith("css") else ""
    return Response(base + _text(name), media_type=FILES[name])


def _text(name: str) -> str:
    return resources.files("zomirror.studio").joinpath(name).read_text(encoding="utf-8")


async def _state(session: Session, _request: Any) -> Any:
    from starlette.responses import JSONResponse

    explainer = session.explainer
    state = {
        "title": session.title,
        "space": explainer.space,
        "classes": explainer.class_names or getattr(explainer.model, "class_names", None),
        "most": explainer.most,
        "defaults": dict(explainer.defaults),
        "answers": session.documents(),
        "search": session.progress["search"] if session.running else None,
        "parameters": [one.document() for one in of_space(explainer.space)],
    }
    return JSONResponse(state | session.material.document())


async def _sample(session: Session, request: Any) -> Any:
    from starlette.responses import JSONResponse

    try:
        return JSONResponse(session.material.sample(request.path_params["number"]))
    except IndexError:
        return JSONResponse({"error": "no such sample"}, 404)


async def _document(request: Any) -> Any:
    """The JSON of a request; ArgumentError if it is none."""
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"expected JSON, got something else: {str(error)[:80]}") from None


async def _explain(session: Session, request: Any) -> Any:
    from starlette.responses import JSONResponse

    return JSONResponse({"search": session.start(await _document(request))})


async def _stop(session: Session, _request: Any) -> Any:
    from starlette.responses import JSONResponse

    session.stop()
    return JSONResponse({})


async def _forget(session: Session, request: Any) -> Any:
    from starlette.responses import JSONResponse

    document = await _document(request)
    number = document.get("number") if isinstance(document, dict) else None
    if not isinstance(number, int):
        raise ArgumentError("expected the number of an answer, got none")
    session.forget(number)
    return JSONResponse({})


async def _progress(session: Session, request: Any) -> Any:
    """The progress of a search as Server-Sent Events, until it ends."""
    from starlette.responses import JSONResponse, StreamingResponse

    number = request.path_params["number"]
    if session.progress.get("search") != number:
        return JSONResponse({"error": "no such search"}, 404)
    return StreamingResponse(_events(session, number), media_type="text/event-stream")


async def _events(session: Session, number: int) -> AsyncIterator[str]:
    from anyio import sleep

    told, seen = -1, None
    while session.progress.get("search") == number:
        known = session.progress
        if known["step"] != told:
            told = known["step"]
            said = known if known.get("seen") is not seen else {k: v for k, v in known.items() if k != "seen"}
            seen = known.get("seen")
            yield f"data: {json.dumps(said)}\n\n"
        if known["state"] != "running":
            return
        await sleep(POLL)


async def _report(session: Session, _request: Any) -> Any:
    from starlette.responses import Response

    headers = {"Content-Disposition": 'attachment; filename="zomirror-report.html"'}
    return Response(session.report(), media_type="text/html", headers=headers)
