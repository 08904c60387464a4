"""Models behind HTTP: honest servers give the model's scores, and hostile ones a typed error in bounded time."""

from __future__ import annotations

import base64
import codecs
import dataclasses
import gzip
import inspect
import json
import logging
import pickle
import socket
import struct
import threading
import time
import traceback
from contextlib import suppress
from email.utils import formatdate
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from tests.support.loopback import CERTIFICATE, Request, Server, model_server, read_batch, reply
from tests.support.onnx_models import WEIGHTS
from zomirror.classifiers import http_classifier
from zomirror.classifiers.http.payload import OpenInference
from zomirror.errors import ArgumentError, ArgumentTypeError, BudgetError, OracleError

X = np.random.default_rng(5).normal(size=(11, 4)).astype(np.float32)
VARIABLE = "ZOM_TOKEN"
CANARY = "canary-7f3a9c51-token-e8d2"
quick = partial(http_classifier, model="linear", input="x", timeout=5.0, retries=2, rng=0)


def scores_json(rows: int, classes: int = 3, **fields: Any) -> str:
    output = {"name": "y", "datatype": "FP32", "shape": [rows, classes], "data": [0.5] * (rows * classes), **fields}
    return json.dumps({"outputs": [output]})


GOOD = scores_json(11)


# Honest servers


@pytest.mark.parametrize("encoding", ["auto", "binary", "json"])
@pytest.mark.parametrize("batch_rows", [None, 1, 4, 11, 50])
def test_scores_are_the_models_and_every_row_is_announced(encoding, batch_rows):
    sent: list[int] = []
    with Server(model_server(WEIGHTS)) as server:
        classifier = http_classifier(
            server.url, model="linear", encoding=encoding, batch_rows=batch_rows, on_send=sent.append
        )
        scores = classifier(X)
        asked = [len(read_batch(request)) for request in server.requests[1:]]
    np.testing.assert_allclose(scores, X @ WEIGHTS, rtol=1e-5, atol=1e-6)
    assert scores.dtype == np.float32
    assert asked == sent
    assert sum(sent) == 11
    assert server.connections == 1
    assert ("inference-header-content-length" in server.requests[1].headers) == (encoding != "json")


def test_a_server_without_binary_tensors_is_asked_in_json_from_then_on():
    sent: list[int] = []
    with Server(model_server(WEIGHTS, binary=False)) as server:
        classifier = http_classifier(server.url, model="linear", on_send=sent.append, concurrency=2, batch_rows=4)
        for _ in range(2):
            np.testing.assert_allclose(classifier(X), X @ WEIGHTS, rtol=1e-5)
        kinds = ["inference-header-content-length" in one.headers for one in server.requests[1:]]
    assert kinds == [True] + [False] * 6
    assert sorted(sent) == [3, 3, 4, 4, 4, 4, 4]


def test_when_json_fails_too_the_first_complaint_is_shown():
    answers = [reply('{"error": "first"}', "400 Bad Request"), reply('{"error": "second"}', "500 Error")]
    with Server(lambda _, n: answers[n - 1]) as server, pytest.raises(OracleError, match=r"got 400.*first"):
        quick(server.url)(X)
    assert len(server.requests) == 2


@pytest.mark.parametrize("concurrency", [1, 2, 3])
def test_concurrent_requests_keep_the_order_of_the_rows(concurrency):
    honest, busy, most = model_server(WEIGHTS), [0], [0]
    lock = threading.Lock()

    def answer(request: Request, number: int) -> Any:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.05 if number % 2 else 0.01)
        with lock:
            busy[0] -= 1
        return honest(request, number)

    with Server(answer) as server:
        classifier = http_classifier(
            server.url, model="linear", batch_rows=2, concurrency=concurrency, encoding="binary"
        )
        np.testing.assert_array_equal(
            classifier(X), np.vstack([X[i : i + 2] @ WEIGHTS.astype("f4") for i in range(0, 11, 2)])
        )
    assert most[0] == concurrency
    assert server.connections <= concurrency + 1


@pytest.mark.parametrize(
    ("options", "request_key", "answer"),
    [
        ({}, "instances", lambda s: {"predictions": s}),
        ({"rows": "inputs", "scores": "outputs"}, "inputs", lambda s: {"outputs": s}),
        ({"rows": "data.x", "scores": "result.scores"}, "data", lambda s: {"result": {"scores": s}}),
        ({"rows": "", "scores": ""}, None, lambda s: s),
        ({"scores": "predictions.*.p"}, "instances", lambda s: {"predictions": [{"p": row} for row in s]}),
    ],
)
def test_plain_json_endpoints_are_read_by_a_small_mapping(options, request_key, answer):
    def serve(request: Request, _: int) -> bytes:
        body = json.loads(request.body)
        if request_key is not None:
            body = body[request_key]
        if request_key == "data":
            body = body["x"]
        return reply(json.dumps(answer((np.array(body) @ WEIGHTS).tolist())))

    with Server(serve) as server:
        classifier = http_classifier(f"{server.url}/predict", **options)
        np.testing.assert_allclose(classifier(X), X.astype(float) @ WEIGHTS, rtol=1e-12)
        assert server.requests[0].line == "POST /predict HTTP/1.1"


def test_names_types_and_shapes_come_from_the_server():
    metadata = {
        "inputs": [{"name": "image", "datatype": "FP64", "shape": [-1, 2, 2]}],
        "outputs": [
            {"name": "label", "datatype": "INT64", "shape": [-1]},
            {"name": "p", "datatype": "FP64", "shape": [-1, 3]},
        ],
    }
    seen = []

    def answer(request: Request, _: int) -> bytes:
        if request.line.startswith("GET"):
            assert request.line == "GET /base/v2/models/a%2Fb/versions/7 HTTP/1.1"
            return reply(json.dumps(metadata))
        seen.append(json.loads(request.body))
        label = {"name": "label", "datatype": "INT64", "shape": [1], "parameters": {"binary_data_size": 8}}
        p = {"name": "p", "datatype": "FP64", "shape": [1, 3], "parameters": {"binary_data_size": 24}}
        head = json.dumps({"outputs": [label, p]})
        raw = np.array([2]).tobytes() + np.arange(3.0).tobytes()
        return reply(head.encode() + raw, Inference_Header_Content_Length=str(len(head)))

    with Server(answer) as server:
        make = partial(http_classifier, f"{server.url}/base/", model="a/b", version="7", encoding="json")
        with pytest.raises(ArgumentError, match=r"got \['label', 'p'\]: choose the scores with output="):
            make()
        with pytest.raises(ArgumentError, match=r"expected output one of \['label', 'p'\], got 'q'"):
            make(output="q")
        classifier = make(output="p")
        np.testing.assert_array_equal(classifier(X[:1].reshape(1, 2, 2)), [[0.0, 1.0, 2.0]])
        with pytest.raises(ArgumentError, match=r"expected a batch of shape \(n, 2, 2\), got \(11, 4\)"):
            classifier(X)
    assert seen[0]["inputs"][0]["name"] == "image"
    assert seen[0]["inputs"][0]["datatype"] == "FP64"
    assert seen[0]["outputs"] == [{"name": "p", "parameters": {"binary_data": False}}]


def test_a_server_that_describes_nothing_is_asked_all_the_same():
    answers = [reply('{"name": "linear", "inputs": [], "outputs": null}'), reply(GOOD)]
    with Server(lambda _, n: answers[n - 1]) as server:
        assert http_classifier(server.url, model="linear")(X).shape == (11, 3)


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        (
            {"inputs": [{"name": n, "datatype": "FP32", "shape": [-1]} for n in "ab"]},
            ArgumentError,
            r"one input, got \['a', 'b'\]",
        ),
        (
            {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [-1]}]},
            ArgumentError,
            "FP16, FP32 or FP64, got 'BYTES'",
        ),
        ({"inputs": [{"name": 3}]}, OracleError, "expected inputs with names and datatypes"),
        ({"inputs": {"x": 3}}, OracleError, "expected inputs with names"),
        ([], OracleError, "expected inputs with names"),
        ("nonsense", OracleError, "cannot be used"),
    ],
)
def test_descriptions_that_cannot_be_used_are_refused_before_the_first_query(metadata, error, message):
    with Server(lambda *_: reply(json.dumps(metadata))) as server, pytest.raises(error, match=message):
        http_classifier(server.url, model="linear")
    assert len(server.requests) == 1


def test_a_model_that_is_not_there_is_named():
    message = r"got 404: check url, model and version; the server says: .*no model"
    answer = reply('{"error":"no model linear"}', "404 Not Found")
    with Server(lambda *_: answer) as server, pytest.raises(OracleError, match=message):
        http_classifier(server.url, model="linear")


def test_a_pickle_asks_anew_and_a_repr_says_whom():
    with Server(model_server(WEIGHTS)) as server:
        classifier = http_classifier(server.url, model="linear", batch_rows=4)
        again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
        np.testing.assert_array_equal(again(X), classifier(X))
        assert again == classifier
        assert server.url in repr(classifier)
        assert "model='linear'" in repr(classifier)
        assert sum(one.line.startswith("GET") for one in server.requests) == 1


def test_a_forked_process_opens_its_own_connection():
    with Server(model_server(WEIGHTS)) as server:
        classifier = http_classifier(server.url, model="linear")
        classifier(X)
        object.__setattr__(classifier.endpoint, "_owner", -1)  # as the child of a fork would see it
        classifier(X)
        assert server.connections == 2


def test_a_gzip_answer_is_understood():
    with Server(lambda *_: reply(gzip.compress(GOOD.encode()), Content_Encoding="gzip")) as server:
        assert quick(server.url)(X).shape == (11, 3)
        assert server.requests[0].headers["accept-encoding"] == "identity"


# What is tried again, and what is not


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_passing_fault_is_tried_again_and_counted(status):
    sent: list[int] = []
    answers = [reply("busy", f"{status} Busy")] * 2 + [reply(GOOD)]
    with Server(lambda _, n: answers[n - 1]) as server:
        assert quick(server.url, on_send=sent.append)(X).shape == (11, 3)
    assert sent == [11, 11, 11]
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [429, 503])
def test_retries_end(status):
    with (
        Server(lambda *_: reply("busy", f"{status} Busy")) as server,
        pytest.raises(OracleError, match=rf"in 3 attempts \(5 s allowed\): status {status}; the server says: busy"),
    ):
        quick(server.url)(X)
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [204, 400, 401, 403, 404, 405, 409, 413, 422, 500, 501, 505])
def test_every_other_status_is_final(status):
    message = rf"expected status 200 from http://127.0.0.1:\d+, got {status}: "
    answer = reply("no", f"{status} No")
    with Server(lambda *_: answer) as server, pytest.raises(OracleError, match=message):
        quick(server.url, encoding="json")(X)
    assert len(server.requests) == 1


def test_retry_after_is_waited_for():
    moments: list[float] = []

    def answer(request: Request, number: int) -> bytes:
        moments.append(time.monotonic())
        soon = formatdate(time.time() + 2, usegmt=True)  # whole seconds: at least one from now
        return [reply("", "429 Slow", Retry_After="1"), reply("", "503 Slow", Retry_After=soon), reply(GOOD)][
            number - 1
        ]

    with Server(answer) as server:
        quick(server.url, timeout=20.0)(X)
    assert np.all(np.diff(moments) >= 0.99)


@pytest.mark.parametrize("wait", ["9999", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_a_wait_beyond_the_deadline_is_not_begun(wait):
    start = time.monotonic()
    with (
        Server(lambda *_: reply("", "429 Slow", Retry_After=wait)) as server,
        pytest.raises(OracleError, match=r"in 1 attempt \(5 s allowed, and .* s of waiting do not fit\): status 429"),
    ):
        quick(server.url)(X)
    assert time.monotonic() - start < 2
    assert len(server.requests) == 1


@pytest.mark.parametrize("wait", ["soon", "-1", "1e9", "9" * 5000, "Fri, 99 Foo 2100", ""])
def test_a_retry_after_that_says_nothing_is_no_wait(wait):
    answers = [reply("", "429 Slow", Retry_After=wait), reply(GOOD)]
    with Server(lambda _, n: answers[n - 1]) as server:
        assert quick(server.url)(X).shape == (11, 3)


def reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def half(peer: socket.socket) -> None:
    peer.sendall(reply(GOOD)[:-20])
    peer.shutdown(socket.SHUT_WR)


def half_chunk(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{")


def half_headers(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")


def nothing(peer: socket.socket) -> None:
    peer.close()


def not_http(peer: socket.socket) -> None:
    peer.sendall(b"220 mail.example.org ESMTP\r\n")


BROKEN = [reset, half, half_chunk, nothing, not_http]


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_connection_is_tried_again_and_counted(fault):
    sent: list[int] = []
    with Server(lambda _, n: fault if n == 1 else reply(GOOD)) as server:
        assert quick(server.url, on_send=sent.append)(X).shape == (11, 3)
    assert sent == [11, 11]


@pytest.mark.parametrize("fault", [*BROKEN, half_headers])
def test_a_connection_that_always_breaks_is_an_error(fault):
    with Server(lambda *_: fault) as server, pytest.raises(OracleError):
        quick(server.url)(X)
    assert 1 <= len(server.requests) <= 3


def test_a_refused_connection_is_an_error_after_the_retries():
    sent: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(OracleError, match=r"in 3 attempts .*the connection failed .*refused"):
        quick(f"http://127.0.0.1:{port}", on_send=sent.append)(X)
    assert sent == [11, 11, 11]


def test_a_connection_that_went_stale_is_replaced():
    """The server closes after every answer without saying so; the next batch must not be lost."""

    def once(peer: socket.socket) -> None:
        peer.sendall(reply(GOOD))

    with Server(lambda *_: once) as server:
        classifier = quick(server.url)
        for _ in range(5):
            assert classifier(X).shape == (11, 3)
            time.sleep(0.02)
    assert 5 <= len(server.requests) <= 6


@pytest.mark.parametrize("allowed", [0, 10, 11, 21, 22])
def test_what_the_ledger_refuses_is_not_sent(allowed):
    spent = 0

    def ledger(rows: int) -> None:
        nonlocal spent
        if spent + rows > allowed:
            raise BudgetError("enough")
        spent += rows

    with Server(lambda *_: reply("busy", "503 Busy")) as server:
        with pytest.raises(BudgetError, match="enough"):
            quick(server.url, on_send=ledger, retries=9, timeout=60.0)(X)
        assert sum(len(read_batch(one)) for one in server.requests) == spent <= allowed


def test_a_ledger_can_be_attached_later():
    sent: list[int] = []
    with Server(model_server(WEIGHTS)) as server:
        classifier = http_classifier(server.url, model="linear", batch_rows=4)
        counted = dataclasses.replace(classifier, on_send=sent.append)
        np.testing.assert_array_equal(counted(X), classifier(X))
        assert server.connections == 1
    assert sent == [4, 4, 3]


def test_a_refusal_in_one_thread_ends_the_others():
    with Server(model_server(WEIGHTS)) as server:
        spent: list[int] = []

        def ledger(rows: int) -> None:
            if len(spent) == 5:
                raise BudgetError("enough")
            spent.append(rows)

        classifier = http_classifier(server.url, model="linear", batch_rows=1, concurrency=3, on_send=ledger)
        with pytest.raises(BudgetError):
            classifier(np.repeat(X, 9, axis=0))
        assert sum(len(read_batch(one)) for one in server.requests[1:]) == 5


# Deadlines and sizes


def drip(head: bytes, period: float = 0.05):
    def send(peer: socket.socket) -> None:
        peer.sendall(head)
        for byte in b"x" * 10_000:
            time.sleep(period)
            peer.sendall(bytes([byte]))

    return send


def hang(peer: socket.socket) -> None:
    time.sleep(20)


SLOW = {
    "never answers": hang,
    "drips the status": drip(b"HTTP/1.1 2"),
    "drips a header": drip(b"HTTP/1.1 200 OK\r\nX-A: "),
    "drips the body": drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"),
    "drips an endless body": drip(b"HTTP/1.1 200 OK\r\n\r\n"),
    "drips a chunk": drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n"),
    "drips the length of a chunk": drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0"),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_server_is_cut_off_at_the_deadline(name):
    start = time.monotonic()
    with Server(lambda *_: SLOW[name]) as server, pytest.raises(OracleError, match="not complete in time"):
        quick(server.url, timeout=0.5)(X)
    assert 0.4 < time.monotonic() - start < 2.5
    assert len(server.requests) == 1


def test_a_server_that_does_not_read_is_cut_off_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        start = time.monotonic()
        with pytest.raises(OracleError, match="not complete in time"):
            quick(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.5)(np.zeros((4000, 4000), np.float32))
        assert time.monotonic() - start < 3


def test_the_pool_recovers_from_every_failure():
    """A connection lost to a fault gives its place back: with one place, the next batch would wait for ever."""
    faults = [hang, *BROKEN, flood(b"HTTP/1.1 200 OK\r\n\r\n"), drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")]
    with Server(lambda _, n: faults[(n - 1) // 2] if n % 2 and n // 2 < len(faults) else reply(GOOD)) as server:
        classifier = quick(server.url, timeout=0.4, retries=0, max_bytes=10_000)
        for _ in faults:
            with pytest.raises(OracleError):
                classifier(X)
            assert classifier(X).shape == (11, 3)


def flood(head: bytes):
    def send(peer: socket.socket) -> None:
        peer.sendall(head)
        for _ in range(4000):
            peer.sendall(b"0" * 2**16)

    return send


@cache
def bomb() -> bytes:
    """Thirty megabytes of zeros, small as they travel."""
    return gzip.compress(b"0" * 2**25)


HUGE = {
    "a long body": flood(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n"),
    "an endless body": flood(b"HTTP/1.1 200 OK\r\n\r\n"),
    "an endless chunk": flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n"),
    "a bomb": lambda peer: peer.sendall(reply(bomb(), Content_Encoding="gzip")),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_answer_is_not_read_to_its_end(name):
    with Server(lambda *_: HUGE[name]) as server, pytest.raises(OracleError, match="more than 1000000 bytes"):
        quick(server.url, max_bytes=1_000_000, timeout=30.0)(X)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 ",
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_endless_headers_are_an_error(head):
    with Server(lambda *_: flood(head)) as server, pytest.raises(OracleError):
        quick(server.url, retries=1)(X)


def test_a_bomb_is_not_unpacked_in_memory():
    import tracemalloc

    packed = reply(bomb(), Content_Encoding="gzip")
    with Server(lambda *_: packed) as server:
        classifier = quick(server.url, max_bytes=2**20)
        tracemalloc.start()
        with pytest.raises(OracleError):
            classifier(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(bomb()) < 2**18
    assert peak < 2**23


# Answers that are not answers


def binary(head: str, raw: bytes, length: str | None = None) -> bytes:
    return reply(head.encode() + raw, Inference_Header_Content_Length=length or str(len(head)))


def described(**fields: Any) -> str:
    output = {"name": "y", "datatype": "FP32", "shape": [11, 3], "parameters": {"binary_data_size": 132}, **fields}
    return json.dumps({"outputs": [output]})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (reply("<html>hello</html>"), r"expected JSON; the server says: <html>hello</html>"),
        (reply(GOOD[:-9]), "expected JSON"),
        (reply(b"\xff\xfe\x00"), "expected JSON"),
        (reply("[" * 200_000), "expected JSON"),
        (reply("9" * 100_000), "expected JSON"),
        (reply("[]"), "expected a list of outputs"),
        (reply('{"outputs": [3]}'), "expected a list of outputs"),
        (reply('{"outputs": []}'), "expected one output, got 0 of 0"),
        (reply(json.dumps({"outputs": json.loads(GOOD)["outputs"] * 2})), "expected one output, got 2 of 2"),
        (reply(scores_json(11, datatype="BYTES")), "numeric datatype"),
        (reply(scores_json(11, shape="wide")), "an output with a shape"),
        (reply(scores_json(11, shape=[-1, -33])), "an output with a shape"),
        (reply(scores_json(11, shape=[2**40, 0])), "an output with a shape"),
        (reply(scores_json(11, shape=[2**30, 2**30])), f"expected {2**60} numbers in an output, got 33"),
        (reply(scores_json(11, data=[0.5] * 32)), "expected 33 numbers in an output, got 32"),
        (reply(scores_json(11, data=[[0.5] * 3] * 10 + [[0.5]])), "rows of equal length"),
        (reply(scores_json(11, data=[None] * 33)), "expected lists of numbers"),
        (reply(scores_json(11, data=["1.5"] * 33)), "expected lists of numbers"),
        (reply(scores_json(11, data=None)), "expected lists of numbers"),
        (reply(scores_json(10)), r"expected scores of shape \(11, classes >= 2\), got \(10, 3\)"),
        (reply(scores_json(11, classes=1)), r"got \(11, 1\)"),
        (reply(scores_json(11, shape=[33])), r"got \(33,\)"),
        (binary(described(), b"\0" * 131), "expected 132 bytes of an output, got 131"),
        (binary(described(parameters={"binary_data_size": 4}), b"\0" * 132), "expected 132 bytes of an output, got 4"),
        (binary(described(parameters={"binary_data_size": -4}), b""), "binary_data_size a number of bytes"),
        (binary(described(parameters={"binary_data_size": "9"}), b""), "binary_data_size a number of bytes"),
        (binary(described(), b"\0" * 132, "999999"), "length of the JSON part"),
        (binary(described(), b"\0" * 132, "-1"), "length of the JSON part"),
        (binary(described(), b"\0" * 132, "9" * 5000), "length of the JSON part"),
        (reply(b"not gzip", Content_Encoding="gzip"), "marked as gzip but is not"),
        (reply(GOOD, Content_Encoding="br"), "compressed, though identity was asked for"),
    ],
)
def test_an_answer_that_is_not_one_is_refused_in_a_sentence(answer, message):
    with Server(lambda *_: answer) as server, pytest.raises(OracleError, match=message):
        quick(server.url)(X)
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [GOOD.replace("0.5", "NaN", 1), GOOD.replace("0.5", "-Infinity", 1)])
def test_scores_that_are_not_numbers_are_left_to_the_caller(answer):
    with Server(lambda *_: reply(answer)) as server:
        assert np.isfinite(quick(server.url)(X)).sum() == 32


@pytest.mark.parametrize(
    ("scores", "answer", "message"),
    [
        ("predictions", '{"scores": []}', "expected scores under 'predictions', found no 'predictions'"),
        ("a.b", '{"a": [1]}', "expected scores under 'a.b', found no 'b'"),
        ("a.*.b", '{"a": 3}', r"expected a list where the path 'a.\*.b' has its \*"),
        ("", "3", "expected lists of numbers"),
        ("", "[[1, 2], [3]]", "rows of equal length"),
    ],
)
def test_plain_answers_without_scores_are_refused(scores, answer, message):
    with Server(lambda *_: reply(answer)) as server, pytest.raises(OracleError, match=message):
        http_classifier(server.url, scores=scores)(X)


def test_inputs_that_json_cannot_carry_are_refused_and_not_sent():
    with Server(model_server(WEIGHTS)) as server:
        with pytest.raises(ArgumentError, match="JSON cannot carry them"):
            quick(server.url, encoding="json")(np.full((2, 4), np.nan))
        assert server.requests == []
        assert np.isnan(quick(server.url)(np.full((2, 4), np.nan, np.float32))).all()


def test_half_precision_travels_as_binary_only():
    payload = OpenInference("m", datatype="FP16")
    with pytest.raises(ArgumentError, match="use encoding='binary'"):
        payload.encode(X, binary=False)
    headers, body = payload.encode(X, binary=True)
    assert body[int(headers["Inference-Header-Content-Length"]) :] == X.astype("<f2").tobytes()


# Secrets


def told(error: BaseException) -> str:
    """Everything that a traceback can show, the values of variables included, below the frame of the test."""
    assert error.__traceback__ is not None
    below = error.__traceback__.tb_next
    return "".join(traceback.TracebackException(type(error), error, below, capture_locals=True).format())


def echo(request: Request, _: int) -> bytes:
    return reply(f"you sent {request.headers.get('authorization', request.headers.get('x-api-key'))}", "500 Error")


def echo_piece(request: Request, _: int) -> bytes:
    return reply(request.headers.get("authorization", request.headers.get("x-api-key", ""))[-12:], "500 Error")


def echo_json(request: Request, _: int) -> bytes:
    key = request.headers.get("authorization", request.headers.get("x-api-key", ""))
    return reply(json.dumps({"outputs": [{"name": key, "datatype": key, "shape": key, "data": key}]}))


def echo_busy(request: Request, _: int) -> bytes:
    return echo(request, _).replace(b"500 Error", b"503 Busy")


def echo_redirect(request: Request, _: int) -> bytes:
    return reply(echo(request, _), "302 Found", Location=f"http://127.0.0.1:1/{request.headers.get('authorization')}")


def echo_garbage(request: Request, _: int) -> Any:
    return lambda peer: peer.sendall(f"HTTP/1.1 {request.headers.get('authorization')}\r\n\r\n".encode())


ECHOES = [echo, echo_piece, echo_json, echo_busy, echo_redirect, echo_garbage, lambda *_: hang, lambda *_: reset]


@pytest.mark.parametrize("answer", ECHOES)
@pytest.mark.parametrize("secret", [{"token_env": VARIABLE}, {"header_env": {"X-Api-Key": VARIABLE}}])
def test_a_secret_is_sent_and_found_nowhere_else(answer, secret, monkeypatch, caplog, capfd):
    """The canary is searched in the repr, the pickle, the error, the traceback with its variables, and all logs."""
    monkeypatch.setenv(VARIABLE, CANARY)
    caplog.set_level(logging.DEBUG)
    with Server(answer) as server:
        classifier = quick(server.url, timeout=0.5, retries=1, **secret)
        with pytest.raises(OracleError) as caught:
            classifier(X)
        header = "authorization" if "token_env" in secret else "x-api-key"
        assert server.requests[0].headers[header] == (f"Bearer {CANARY}" if "token_env" in secret else CANARY)
    shown = [repr(classifier), str(classifier), pickle.dumps(classifier).decode("latin-1"), told(caught.value)]
    shown += [caplog.text, *capfd.readouterr()]
    assert caught.value.__context__ is None
    for text in shown:
        assert not any(CANARY[i : i + 8] in text for i in range(len(CANARY) - 7))


GIVEN_BY_MISTAKE = [
    "sk-proj-4f9aT0kenQx81Zb",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "AKIAIOSFODNN7EXAMPLE",
    "hf_qWeRtYuIoPaSdFgHjKlZxCvBnM",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "correct horse battery staple",
    "0123456789abcdef0123456789abcdef",
    "A=B\0C",
]


@pytest.mark.parametrize("secret", GIVEN_BY_MISTAKE, ids=range(len(GIVEN_BY_MISTAKE)))
def test_a_secret_given_as_the_name_of_its_variable_is_not_shown(secret, monkeypatch, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(VARIABLE, "another")
    mistakes = [
        {"token_env": secret},
        {"header_env": {"X-Api-Key": secret}},
        {"header_env": {secret: VARIABLE + "_UNSET"}},
        {"header_env": {secret: secret}},
        {"header_env": {secret: 3}},
        {"header_env": [secret]},
        {"header_env": secret},
        {"token_env": [secret]},
        {"token_env": secret.encode()},
    ]
    said = []
    for options in mistakes:
        with pytest.raises((ArgumentError, ArgumentTypeError)) as caught:
            http_classifier("https://host", **options)
        said += [str(caught.value), repr(caught.value), str(caught.value.__cause__), str(caught.value.__context__)]
    if secret.isascii() and secret.replace("-", "").isalnum():  # taken as the name of a header, it is sent as one
        said.append(repr(http_classifier("https://host", header_env={secret: VARIABLE})))
    for text in [*said, caplog.text, *capfd.readouterr()]:
        assert secret not in text
        assert not any(secret[i : i + 8] in text for i in range(len(secret) - 7))


def test_a_name_that_cannot_be_a_secret_is_shown_to_whom_mistyped_it():
    with pytest.raises(ArgumentError, match="the environment variable MY_API_TOKN, found none"):
        http_classifier("https://host", token_env="MY_API_TOKN")  # noqa: S106


DIGITS = "730915628044"
ENCODINGS: dict[str, Any] = {
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(f"Bearer {key}".encode()).decode().rstrip("="),
    "base32": lambda key: base64.b32encode(key.encode()).decode(),
    "base85": lambda key: base64.b85encode(key.encode()).decode(),
    "hexadecimal": lambda key: key.encode().hex(),
    "hexadecimal in pairs": lambda key: key.encode().hex(":"),
    "quoted for a URL": lambda key: "".join(f"%{byte:02X}" for byte in key.encode()),
    "escaped as JSON": lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
    "entities of HTML": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "upper case": str.upper,
    "swapped case": lambda key: key.title().swapcase(),
    "backwards": lambda key: key[::-1],
    "rotated": lambda key: codecs.encode(key, "rot13"),
    "codes": lambda key: " ".join(str(ord(c)) for c in key),
    "a list of codes": lambda key: json.dumps(list(key.encode())),
    "bits": lambda key: " ".join(f"{ord(c):08b}" for c in key),
    "one number": lambda key: str(int.from_bytes(key.encode(), "big")),
    "spelt": " ".join,
    "spelt with dashes": "-".join,
    "one letter per line": "\n".join,
    "in pieces of three": lambda key: " ".join(key[i : i + 3] for i in range(0, len(key), 3)),
    "in pieces in words": lambda key: " model ".join(key[i : i + 5] for i in range(0, len(key), 5)),
    "with zero-width spaces": "\u200b".join,
    "fullwidth": lambda key: "".join(chr(ord(c) + 0xFEE0) for c in key),
    "utf-16": lambda key: key.encode("utf-16").decode("latin-1"),
    "utf-16 without its mark": lambda key: key.encode("utf-16-be").decode("latin-1"),
}
PLACES: dict[str, Any] = {
    "an error": lambda told: reply(told, "500 Error"),
    "a busy server": lambda told: reply(told, "503 Busy"),
    "an answer": lambda told: reply(told),
    "a field": lambda told: reply(json.dumps({"error": {"expected model": told}}), "400 Bad"),
    "the status": lambda told: f"HTTP/1.1 500 {told[:200]}\r\nContent-Length: 3\r\n\r\nbad".encode("utf-8", "replace"),
    "the version": lambda told: lambda peer: peer.sendall(f"HTTP/{told[:200]}\r\n\r\n".encode("utf-8", "replace")),
    "a header": lambda told: lambda peer: peer.sendall(f"HTTP/1.1 500 No\r\n{told}\r\nX: y\r\n\r\n".encode()),
    "a length": lambda told: reply(b"", "500 No", Content_Length=told.replace("\n", " ")),
    "a wait": lambda told: reply(b"", "503 No", Retry_After=told.replace("\n", " ")[:9]),
    "an encoding": lambda told: reply(b"", Content_Encoding=told.replace("\n", " ")),
}


def pieces(text: str) -> set[str]:
    """All runs of 8 letters and digits of a text in lower case, whatever separates them; `model` is no piece."""
    plain = "".join(c for c in text.lower().replace("model", "") if c.isalnum())
    return {plain[i : i + 8] for i in range(len(plain) - 7)}


@pytest.mark.parametrize("secret", [CANARY, DIGITS])
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_that_a_server_repeats_in_another_encoding_is_not_shown(place, secret, monkeypatch, caplog, capfd):
    """No 8 letters or digits of what the server made of the secret are in the error, its traceback or a log."""
    monkeypatch.setenv(VARIABLE, secret)
    caplog.set_level(logging.DEBUG)
    told_by: dict[str, str] = {}

    def repeating(*_: Any) -> Any:
        return PLACES[place](told_by["now"])

    with Server(repeating) as server:
        ours = pieces(f"no answer from {server.url} in the answer of expected status")
        ours |= pieces(f"{server.url} token_env")  # a port may end like the first part of the secret
        for name, encode in ENCODINGS.items():
            told_by["now"] = str(encode(secret))
            classifier = quick(server.url, timeout=0.5, retries=0, token_env=VARIABLE, encoding="json")
            with pytest.raises(OracleError) as caught:
                classifier(X)
            shown = [str(caught.value), told(caught.value), caplog.text, *capfd.readouterr()]
            caplog.clear()
            secrets = (pieces(secret) | pieces(told_by["now"])) - ours
            for text in shown:
                assert not pieces(text) & secrets, name
                assert secret not in text


def test_a_description_that_holds_the_secret_in_another_encoding_is_not_shown(monkeypatch):
    monkeypatch.setenv(VARIABLE, CANARY)
    name = CANARY.encode().hex()
    numbers = [int.from_bytes(CANARY.encode()[i : i + 4], "big") for i in range(0, 24, 4)]
    one = {"name": name, "datatype": "FP32", "shape": [-1, *numbers]}
    cases = [
        ({"inputs": [one, one]}, {}),
        ({"inputs": [one], "outputs": [one, one]}, {}),
        ({"inputs": [one], "outputs": [one]}, {"output": "y"}),
        ({"inputs": [one | {"datatype": name[:20]}]}, {}),
        ({"inputs": [one], "outputs": [one]}, {}),
    ]
    for metadata, options in cases:
        with Server(lambda *_, metadata=metadata: reply(json.dumps(metadata))) as server:
            given: Any = options
            make = partial(http_classifier, server.url, model="linear", token_env=VARIABLE, **given)
            with pytest.raises((ArgumentError, OracleError)) as caught:
                make()(X)
            shown = [repr(make())] if metadata is cases[-1][0] else []
            for text in [*shown, told(caught.value)]:
                assert not pieces(text) & pieces(name)
                assert not pieces(text) & pieces(" ".join(map(str, numbers)))


def test_a_server_that_got_a_secret_is_quoted_in_known_words(monkeypatch):
    monkeypatch.setenv(VARIABLE, CANARY)
    words = '{"error": "Model xqz not found: expected shape (1, 784), got [4]"}'
    with (
        Server(lambda *_: reply(words, "404 Not Found")) as server,
        pytest.raises(
            OracleError, match=r"the server says: .*error.*: … model … not found: expected shape \(1, 784\), got"
        ),
    ):
        quick(server.url, token_env=VARIABLE)(X)


def test_a_description_that_repeats_the_secret_is_refused(monkeypatch):
    monkeypatch.setenv(VARIABLE, CANARY)

    def answer(request: Request, _: int) -> bytes:
        return reply(
            json.dumps({"inputs": [{"name": request.headers["authorization"], "datatype": "FP32", "shape": [-1, 4]}]})
        )

    with Server(answer) as server, pytest.raises(OracleError, match="it repeats a secret") as caught:
        http_classifier(server.url, model="linear", token_env=VARIABLE)
    assert CANARY not in told(caught.value)


def test_redirects_are_not_followed(monkeypatch):
    monkeypatch.setenv(VARIABLE, CANARY)
    with Server(lambda *_: reply(GOOD)) as other:
        for status in (301, 302, 303, 307, 308):
            answer = reply("", f"{status} Moved", Location=f"{other.url}/elsewhere")
            with Server(lambda *_, answer=answer: answer) as server:
                with pytest.raises(OracleError, match=rf"got {status}: redirects are not followed"):
                    quick(server.url, token_env=VARIABLE)(X)
                assert len(server.requests) == 1
        assert other.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1",
        "http://example.org:8080/v1",
        "http://127.0.0.1.example.org",
        "http://0.0.0.0",
        "http://[2001:db8::1]",
    ],
)
def test_secrets_leave_this_machine_by_https_only(url, monkeypatch):
    monkeypatch.setenv(VARIABLE, CANARY)
    for secret in ({"token_env": VARIABLE}, {"header_env": {"X-Api-Key": VARIABLE}}):
        with pytest.raises(ArgumentError, match="expected https for a request with a secret, got plain http"):
            http_classifier(url, **secret)
    http_classifier(url)
    for safe in (url.replace("http:", "https:"), "http://localhost:1", "http://127.8.9.1", "http://[::1]:80"):
        http_classifier(safe, token_env=VARIABLE)
    with pytest.raises(ArgumentError, match="without a proxy"):
        http_classifier("http://127.0.0.1:1", token_env=VARIABLE, proxy="http://127.0.0.1:2")


@pytest.mark.parametrize(
    "url",
    [
        f"https://user:{CANARY}@host",
        f"https://{CANARY}@host",
        f"https://host/predict?key={CANARY}",
        f"https://host/predict#{CANARY}",
        f"https://host:{CANARY}",
        f"https://host/a b{CANARY}",
        f"https://host/\r\nX: {CANARY}",
        f"ftp://{CANARY}",
        f"{CANARY}",
        f"https:///{CANARY}",
    ],
)
def test_a_url_with_something_secret_in_it_is_refused_and_not_shown(url):
    for options in ({"url": url}, {"url": "https://host", "proxy": url}):
        with pytest.raises(ArgumentError) as caught:
            http_classifier(**options)
        assert CANARY not in str(caught.value)


@pytest.mark.parametrize("value", [None, "", "two\nlines", "caf\u00e9", "a\x00b"])
def test_a_variable_that_holds_no_usable_secret_is_refused_and_not_shown(value, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    if value == "a\x00b":
        value = "a\x7fb"  # the environment cannot hold a zero byte
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(ArgumentError, match="ZOM_TOKEN") as caught:
        http_classifier("https://host", token_env=VARIABLE)
    assert not value or value not in str(caught.value)
    with pytest.raises(ArgumentError, match="expected the name of a header"):
        http_classifier("https://host", header_env={"X: y": "PATH"})


def test_a_secret_that_is_taken_away_is_missed(monkeypatch):
    monkeypatch.setenv(VARIABLE, CANARY)
    with Server(lambda *_: reply(GOOD)) as server:
        classifier = quick(server.url, token_env=VARIABLE)
        monkeypatch.delenv(VARIABLE)
        with pytest.raises(OracleError, match="ZOM_TOKEN is not set any more"):
            classifier(X)
        assert server.requests == []


def test_netrc_and_proxy_variables_are_ignored(monkeypatch, tmp_path):
    netrc = tmp_path / ".netrc"
    netrc.write_text(f"machine 127.0.0.1 login me password {CANARY}\n")
    netrc.chmod(0o600)
    with Server(lambda *_: reply(GOOD)) as server, Server(lambda *_: reply(GOOD)) as other:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, other.url)
        monkeypatch.setenv("NETRC", str(netrc))
        monkeypatch.setenv("HOME", str(tmp_path))
        quick(server.url)(X)
        assert len(server.requests) == 1
        assert "authorization" not in server.requests[0].headers
        assert other.requests == []


def test_a_proxy_is_used_when_asked_for():
    with Server(lambda *_: reply(GOOD)) as proxy:
        quick("http://model.invalid:81/base", proxy=proxy.url)(X)
        assert proxy.requests[0].line == "POST http://model.invalid:81/base/v2/models/linear/infer HTTP/1.1"


def relay(request: Request, _: int) -> Any:
    """A proxy that opens tunnels: it sees where they lead and nothing of what passes."""

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # either end may be gone
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def talk(peer: socket.socket) -> None:
        host, _, port = request.line.split()[1].partition(":")
        with socket.create_connection((host, int(port))) as target:
            peer.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=pump, args=(target, peer), daemon=True)
            back.start()
            pump(peer, target)
            with suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)
            back.join(5)

    return talk


def test_https_passes_a_proxy_in_a_tunnel(monkeypatch):
    monkeypatch.setenv(VARIABLE, CANARY)
    with Server(model_server(WEIGHTS), secure=True) as server, Server(relay) as proxy:
        classifier = quick(f"{server.url}/base", proxy=proxy.url, ca_file=str(CERTIFICATE), token_env=VARIABLE)
        np.testing.assert_allclose(classifier(X), X @ WEIGHTS, rtol=1e-5)
        assert [one.line.split()[:2] for one in proxy.requests] == [["CONNECT", f"127.0.0.1:{server.port}"]]
        assert CANARY not in repr(proxy.requests)
        assert server.requests[0].line == "POST /base/v2/models/linear/infer HTTP/1.1"
        with pytest.raises(OracleError, match="not secure"):
            quick(server.url, proxy=proxy.url)(X)


def test_a_proxy_that_drips_is_cut_off_at_the_deadline():
    start = time.monotonic()
    with Server(lambda *_: drip(b"HTTP/1.1 200 OK\r\nX-A: ")) as proxy, pytest.raises(OracleError, match="in time"):
        quick("https://model.invalid", proxy=proxy.url, timeout=0.5)(X)
    assert time.monotonic() - start < 2.5


# TLS


def test_a_certificate_of_nobody_known_is_refused():
    with Server(model_server(WEIGHTS), secure=True) as server:
        with pytest.raises(OracleError, match=r"in 1 attempt .*not secure .*certificate verify failed"):
            quick(server.url)(X)
        assert server.requests == []


def test_a_certificate_that_is_trusted_is_accepted_for_its_host_only(monkeypatch):
    monkeypatch.setenv(VARIABLE, CANARY)
    with Server(model_server(WEIGHTS), secure=True) as server:
        trusted = partial(quick, ca_file=str(CERTIFICATE), token_env=VARIABLE)
        np.testing.assert_allclose(trusted(server.url)(X), X @ WEIGHTS, rtol=1e-5)
        seen = len(server.requests)
        with pytest.raises(OracleError, match="not secure"):
            trusted(f"https://localhost:{server.port}")(X)
        assert len(server.requests) == seen


def test_tls_has_deadlines_too():
    with Server(lambda *_: drip(b"HTTP/1.1 200 OK\r\nX-A: "), secure=True) as server:
        start = time.monotonic()
        with pytest.raises(OracleError, match="not complete in time"):
            quick(server.url, ca_file=str(CERTIFICATE), timeout=0.5)(X)
        assert time.monotonic() - start < 2.5


def test_there_is_no_way_to_switch_verification_off():
    names = set(inspect.signature(http_classifier).parameters)
    assert not {name for name in names if "verify" in name or "insecure" in name or "ssl" in name}


# Arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "expected timeout > 0"),
        ({"retries": -1}, "expected retries"),
        ({"max_bytes": 0}, "expected max_bytes"),
        ({"concurrency": 0}, "expected concurrency"),
        ({"concurrency": 2}, "expected batch_rows for a concurrency of 2"),
        ({"encoding": "xml"}, "expected encoding to be one of"),
        ({"model": ".."}, "expected model to be a name"),
        ({"model": ""}, "expected model to be a name"),
        ({"version": "a\nb"}, "expected version to be a name"),
        ({"datatype": "INT8"}, "expected a model with input of FP16"),
        ({"datatype": ["FP32"]}, "expected a model with input of FP16"),
        ({"url": None}, "expected url to be a string, got an object of type NoneType"),
        ({"url": 5}, "expected url to be a string"),
        ({"url": b"http://host"}, "expected url to be a string"),
        ({"proxy": 5}, "expected proxy to be a string"),
        ({"header_env": ["X-Api-Key"]}, "expected header_env to be a mapping of headers to environment variables"),
        ({"header_env": "X-Api-Key"}, "expected header_env to be a mapping"),
        ({"header_env": {3: "HOME"}}, "expected token_env and header_env to hold strings"),
        ({"header_env": {"X-Api-Key": None}}, "expected token_env and header_env to hold strings"),
        ({"token_env": 3}, "expected token_env and header_env to hold strings"),
        ({"timeout": "60"}, "expected timeout to be a number"),
        ({"retries": None}, "expected retries to be an integer"),
        ({"retries": np.zeros(2)}, "expected retries to be an integer"),
        ({"rng": "seed"}, "expected rng to be an integer"),
        ({"rng": -1}, "expected rng >= 0"),
        ({"ca_file": 3}, "expected ca_file to be a string"),
        ({"ca_file": "no such file"}, "expected ca_file to be a file of certificates"),
        ({"on_send": 3}, "expected on_send to be a function"),
        ({"input": 3}, "expected input to be a string"),
        ({"output": b"y"}, "expected output to be a string"),
        ({"model": None, "rows": None}, "expected rows to be a string"),
        ({"model": None, "scores": 3}, "expected scores to be a string"),
    ],
)
def test_bad_arguments_are_refused_when_made(options, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        quick(**({"url": "http://127.0.0.1:1"} | options))


def test_a_timeout_of_many_years_is_a_long_one():
    with Server(model_server(WEIGHTS)) as server:
        assert quick(server.url, timeout=1e300)(X).shape == (11, 3)
