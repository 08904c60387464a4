"""A server on this machine that behaves as badly as it is told to, on raw sockets, and an honest one on top."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zomirror.classifiers.http.payload import DATATYPES

CERTIFICATE = Path(__file__).with_name("loopback.pem")  # for 127.0.0.1, signed by itself, with its key


@dataclass
class Request:
    """One request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes


Answer = bytes | Callable[[socket.socket], None]
"""Bytes to send, or what to do with the socket; the connection is closed after the latter."""


@dataclass
class Server:
    """Answers the n-th request with answer(request, n); a context manager."""

    answer: Callable[[Request, int], Answer]
    secure: bool = False
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> Server:
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for peer in self._open:
                with contextlib.suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http{'s' if self.secure else ''}://127.0.0.1:{self.port}"

    def _serve(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        while not self._stopped.is_set():
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(peer)
                self.connections += 1
            threading.Thread(target=self._talk, args=(peer, context), daemon=True).start()

    def _talk(self, peer: socket.socket, context: ssl.SSLContext) -> None:
        with contextlib.suppress(OSError, ValueError):
            stream = context.wrap_socket(peer, server_side=True) if self.secure else peer
            with stream:
                while (request := read_request(stream)) is not None:
                    with self._lock:
                        self.requests.append(request)
                        number = len(self.requests)
                    answer = self.answer(request, number)
                    if callable(answer):
                        answer(stream)
                        return
                    stream.sendall(answer)
        peer.close()


def read_request(peer: socket.socket) -> Request | None:
    """Return the next request on a connection, None when it is closed."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = peer.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
    while len(body) < int(headers.get("content-length", 0)):
        more = peer.recv(65536)
        if not more:
            return None
        body += more
    return Request(line, headers, body)


def reply(body: bytes | str = b"", status: str = "200 OK", **headers: str) -> bytes:
    """Return a whole answer; underscores in the names of headers are dashes."""
    body = body.encode() if isinstance(body, str) else body
    headers = {"Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def model_server(weights: Any, *, binary: bool = True) -> Callable[[Request, int], Answer]:
    """Return the answers of an honest server of the Open Inference Protocol for x -> x W."""
    features, classes = weights.shape
    tensors = {
        "name": "linear",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, features]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, classes]}],
    }

    def answer(request: Request, _: int) -> Answer:
        if request.line.startswith("GET"):
            return reply(json.dumps(tensors))
        length = request.headers.get("inference-header-content-length")
        if length is not None and not binary:
            return reply('{"error": "cannot parse the body"}', "400 Bad Request")
        batch = read_batch(request)
        scores = np.asarray(batch, np.float32) @ weights.astype(np.float32)
        output: dict[str, Any] = {"name": "y", "datatype": "FP32", "shape": list(scores.shape)}
        if length is None:
            return reply(json.dumps({"outputs": [{**output, "data": scores.ravel().tolist()}]}))
        raw = scores.tobytes()
        head = json.dumps({"outputs": [{**output, "parameters": {"binary_data_size": len(raw)}}]})
        return reply(head.encode() + raw, Inference_Header_Content_Length=str(len(head)))

    return answer


def read_batch(request: Request) -> Any:
    """Return the batch in a request of the Open Inference Protocol."""
    length = int(request.headers.get("inference-header-content-length", len(request.body)))
    tensor = json.loads(request.body[:length])["inputs"][0]
    dtype = DATATYPES[tensor["datatype"]]
    data = np.frombuffer(request.body[length:], dtype) if "data" not in tensor else np.array(tensor["data"], dtype)
    return data.reshape(tensor["shape"])
