"""A model on a server that takes rows of a table or texts as JSON: {"instances": [...]} -> {"predictions": [...]}."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.classifiers.http.payload import PlainJson, dump
from zomirror.classifiers.http.server_model import Http
from zomirror.classifiers.http.transport import Endpoint
from zomirror.features.tabular.frames import rows_of

BATCH_ROWS = 256
"""Rows of one request."""


@dataclass(frozen=True, slots=True)
class ItemsJson:
    """Like PlainJson, for items that are no arrays: an object for each row of a table, or a text."""

    path: str = ""

    def encode(self, batch: NDArray[Any], *, binary: bool) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of a request for the scores of the items."""
        return {"Content-Type": "application/json"}, dump({"instances": batch[:, 0].tolist()})

    def decode(self, headers: Mapping[str, str], body: bytes) -> NDArray[Any]:
        """Return the scores in an answer, or raise MalformedError."""
        return PlainJson().decode(headers, body)


@dataclass(frozen=True, slots=True, eq=False)
class RemoteRows:
    """A function of a frame or of a list of texts that asks a server."""

    server: Http
    class_names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, url: str, *, token_env: str | None = None, timeout: float = 60.0, connections: int = 1) -> RemoteRows:
        """The server at `url`, which answers with one list of scores for each item."""
        endpoint = Endpoint(url, token_env=token_env, timeout=timeout, connections=connections)
        return cls(Http(endpoint, ItemsJson(), encoding="json", batch_rows=BATCH_ROWS))

    def __call__(self, rows: Any) -> NDArray[np.floating[Any]]:
        """Return the scores of the rows or the texts."""
        items = rows if isinstance(rows, list) else list(rows_of(rows))
        batch = np.empty((len(items), 1), object)
        batch[:, 0] = items
        return self.server(batch)
