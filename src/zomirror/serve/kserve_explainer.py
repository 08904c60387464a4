"""An explainer for KServe: `:explain` of its protocol v1, with the health and the metrics of its model server."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from typing import Any

from zomirror.contrast import Explanation
from zomirror.serve.guard import MOST_BYTES, Guard
from zomirror.serve.service import RefusalError, Service

_given, sys.argv = sys.argv, sys.argv[:1]  # kserve reads the words of the command line when it is imported
import kserve.model_server as kserve_server  # noqa: E402
from kserve import Model, ModelServer  # noqa: E402
from kserve.constants.constants import FASTAPI_APP_IMPORT_STRING  # noqa: E402
from kserve.protocol.rest.server import RESTServer  # noqa: E402

sys.argv = _given

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class KserveExplainer(Model):  # type: ignore[misc]
    """The model of KServe's server: hands the payload of `:explain` to a service."""

    def __init__(self, name: str, service: Service) -> None:
        super().__init__(name)
        self.service = service
        self.ready = True

    async def explain(self, payload: Any, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """The explanations of the instances."""
        return await self.service.answer(payload)

    async def predict(self, payload: Any, headers: dict[str, str] | None = None, **_: Any) -> Any:
        """Nothing: the predictor predicts."""
        raise RefusalError(404, "expected :explain, got :predict: ask the predictor")


def run(
    service: Service,
    name: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    token: str | None = None,
    most_bytes: int = MOST_BYTES,
    tell: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM; `tell` is given the address once the port is taken."""
    import uvicorn

    service.told = _counted()
    server = ModelServer(http_port=port, enable_grpc=False, enable_docs_url=False, enable_latency_logging=False)
    for logger in ("kserve", "kserve.trace"):
        logging.getLogger(logger).setLevel(logging.ERROR)  # after the server has set it
    server.register_model(KserveExplainer(name, service))
    rest = RESTServer(FASTAPI_APP_IMPORT_STRING, server.dataplane, server.model_repository_extension, port)
    rest.create_application()
    kserve_server.app.add_exception_handler(RefusalError, _refused)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        port = listening.getsockname()[1]
        hosts = tuple(f"{one}:{port}" for one in ("127.0.0.1", "localhost", "[::1]")) if host in LOOPBACK else None
        guard = Guard(kserve_server.app, name, token, hosts, most_bytes)
        shown = f"[{host}]" if ":" in host else host
        tell(f"http://{shown}:{port}/v1/models/{name}:explain")
        config = uvicorn.Config(
            guard, ws="none", log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=5
        )
        uvicorn.Server(config).run([listening])
    service.close()


async def _refused(_request: Any, error: Exception) -> Any:
    from starlette.responses import JSONResponse

    assert isinstance(error, RefusalError)  # noqa: S101 - the handler of this class
    later = {"Retry-After": "1"} if error.status in (429, 503) else None
    return JSONResponse(error.document, error.status, headers=later)


def _counted() -> Callable[[Explanation], None]:
    """A function that counts explanations and queries, as KServe's metrics are counted."""
    from prometheus_client import Counter

    explanations = Counter("zomirror_explanations", "Explanations by status.", ["status", "valid"])
    queries = Counter("zomirror_queries", "Rows that the model was asked, including repeated ones.")

    def count(one: Explanation) -> None:
        explanations.labels(one.status.name, str(one.valid).lower()).inc()
        queries.inc(one.sent)

    return count
