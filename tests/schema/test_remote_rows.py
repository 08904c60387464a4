"""Rows and texts as JSON to a server, and its scores."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import zomirror as zm
from tests.support import loan_table, review_texts
from zomirror.errors import OracleError
from zomirror.schema.remote_rows import BATCH_ROWS, RemoteRows

SEEN: list[Any] = []


class _Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        items = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
        SEEN.append(items)
        if self.path == "/broken":
            status, answer = 400, {"error": "no"}
        elif isinstance(items[0], str):
            status, answer = 200, {"predictions": review_texts.scores(items).tolist()}
        else:
            status, answer = 200, {"predictions": loan_table.scores(pd.DataFrame(items)).tolist()}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_table_behind_an_address_is_explained_as_here(url: str) -> None:
    frame = loan_table.loans()
    SEEN.clear()
    row = frame.iloc[[1]].to_dict("records")[0]
    found = zm.explain(RemoteRows.of(url), row, features=zm.Table(frame), budget=150)
    expected = zm.explain(loan_table.scores, row, features=zm.Table(frame), budget=150)
    assert (found.changes, found.nfev) == (expected.changes, expected.nfev)
    assert sum(map(len, SEEN)) == found.sent
    assert list(SEEN[0][0]) == list(frame.columns)


def test_a_text_behind_an_address_is_explained_as_here(url: str) -> None:
    found = zm.explain(RemoteRows.of(url), review_texts.REVIEW)
    assert found.changes == zm.explain(review_texts.scores, review_texts.REVIEW).changes


def test_large_batches_are_split(url: str) -> None:
    SEEN.clear()
    texts = [review_texts.REVIEW[: 20 + i % 60] for i in range(BATCH_ROWS + 3)]
    np.testing.assert_array_equal(RemoteRows.of(url)(texts), review_texts.scores(texts))
    assert [len(items) for items in SEEN] == [BATCH_ROWS, 3]


def test_a_refusal_of_the_server_is_an_oracle_error(url: str) -> None:
    with pytest.raises(OracleError, match="got 400"):
        RemoteRows.of(f"{url}/broken")(["a text"])
