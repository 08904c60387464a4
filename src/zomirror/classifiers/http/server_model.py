"""A model on an HTTP server as a classifier."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zomirror.checks import choice, positive_integer, shown
from zomirror.classifiers.http.payload import DATATYPES, OpenInference, Payload, PlainJson, load
from zomirror.classifiers.http.transport import Endpoint
from zomirror.classifiers.protocol import MalformedError, ask, check_batch, check_batch_rows, check_scores, join
from zomirror.engine.retry import send_again
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zomirror.classifiers.http.reply import Reply

Encoding = Literal["auto", "binary", "json"]
_NOT_BINARY = (400, 415, 422)  # statuses of servers that do not support binary tensors


def http_classifier(
    url: str,
    *,
    model: str | None = None,
    version: str | None = None,
    input: str | None = None,  # noqa: A002
    output: str | None = None,
    datatype: str | None = None,
    encoding: Encoding = "auto",
    rows: str = "instances",
    scores: str = "predictions",
    batch_rows: int | None = None,
    concurrency: int = 1,
    token_env: str | None = None,
    header_env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    retries: int = 4,
    max_bytes: int = 2**24,
    ca_file: str | None = None,
    proxy: str | None = None,
    rng: int | None = None,
    on_send: Callable[[int], None] | None = None,
) -> Http:
    """Return a classifier that asks a model on a server.

    With `model`, the server speaks the Open Inference Protocol, version 2 (KServe, Triton, MLServer ...). Without it,
    `url` takes {"instances": [...]} and answers {"predictions": [...]}, or other keys.

    Parameters
    ----------
    url : str
        scheme://host:port/prefix.
    model, version : str, optional
        The name and version of the model on the server.
    input, output : str, optional
        The names of its tensors. By default the server is asked for names, types and shapes, which costs no query.
    datatype : {"FP16", "FP32", "FP64"}, optional
        The type of the input; by default the one that the server says, else FP32.
    encoding : {"auto", "binary", "json"}
        How tensors are sent. "auto" sends them as binary, and as JSON if the server refuses the first one.
    rows, scores : str
        Without `model`: the keys of the inputs in a request and of the scores in an answer, or paths of keys such as
        "predictions.*.probabilities".
    batch_rows : int, optional
        The largest number of rows of one request.
    concurrency : int
        The number of requests sent at the same time; more than 1 needs `batch_rows`.
    token_env : str, optional
        The environment variable that holds a bearer token.
    header_env : mapping, optional
        Secret headers and the environment variables that hold their values: {"X-Api-Key": "MY_KEY"} sends $MY_KEY.
    timeout : float
        Seconds for a request, including its retries and waits.
    retries : int
        How often a request is repeated after a status 429, 502, 503 or 504 or a broken connection.
    max_bytes : int
        The largest size of an answer.
    ca_file : str, optional
        A file of certificates to trust in place of the system's.
    proxy : str, optional
        The URL of a proxy; environment variables such as HTTP_PROXY are ignored.
    rng : int, optional
        The seed of the random part of the waits.
    on_send : callable, optional
        Called with the number of rows before every attempt to send them, by one thread at a time. If it raises, the
        batch fails with that exception.
    """
    positive_integer("concurrency", concurrency)
    if header_env is not None and not isinstance(header_env, Mapping):
        raise ArgumentTypeError(
            "expected header_env to be a mapping of headers to environment variables, got an object of type "
            f"{type(header_env).__name__} (not shown): give {{'X-Api-Key': 'MY_KEY'}}"
        )
    if on_send is not None and not callable(on_send):
        raise ArgumentTypeError(f"expected on_send to be a function of a number of rows, got {shown(on_send)}")
    endpoint = Endpoint(
        url,
        token_env=token_env,
        header_env=() if header_env is None else tuple(header_env.items()),
        timeout=timeout,
        retries=retries,
        max_bytes=max_bytes,
        connections=concurrency,
        ca_file=ca_file,
        proxy=proxy,
        rng=rng,
    )
    make = partial(Http, endpoint, batch_rows=batch_rows, on_send=on_send)
    if model is None:
        return make(PlainJson(rows=rows, scores=scores), encoding="json")
    payload = OpenInference(
        model, version, "input-0" if input is None else input, "FP32" if datatype is None else datatype, output
    )
    if input is not None:
        return make(payload, encoding=encoding)
    described, shape = _described(endpoint, payload, datatype)
    return make(described, encoding=encoding, shape=shape)


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor as the server describes it; not in tracebacks, as a server may put a secret into any of it."""

    name: str = field(repr=False)
    datatype: str = field(repr=False)
    shape: tuple[int | None, ...] | None = field(repr=False)


class _Memory:
    """Whether the server takes binary tensors (None: not known yet), and the lock of `on_send`."""

    __slots__ = ("binary", "lock")

    def __init__(self, encoding: Encoding) -> None:
        self.lock = threading.Lock()
        self.binary = {"auto": None, "binary": True, "json": False}[encoding]


@dataclass(frozen=True, slots=True)
class Http:
    """Asks the server at `endpoint` with requests in the format of `payload`; made by http_classifier."""

    endpoint: Endpoint
    payload: Payload
    encoding: Encoding = "auto"
    shape: tuple[int | None, ...] | None = field(default=None, repr=False)
    batch_rows: int | None = None
    on_send: Callable[[int], None] | None = field(default=None, repr=False)
    _memory: _Memory = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_batch_rows(self.batch_rows)
        choice("encoding", self.encoding, ("auto", "binary", "json"))
        if self.batch_rows is None and self.endpoint.connections > 1:
            raise ArgumentError(
                f"expected batch_rows for a concurrency of {self.endpoint.connections}, got None: "
                "give the rows of one request"
            )
        object.__setattr__(self, "_memory", _Memory(self.encoding))

    def __reduce__(self) -> tuple[type[Http], tuple[object, ...]]:
        fields = (self.endpoint, self.payload, self.encoding, self.shape, self.batch_rows, self.on_send)
        return Http, fields

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of `batch`."""
        batch = check_batch(batch)
        if self.shape is not None and not _fits(batch.shape[1:], self.shape):
            raise ArgumentError(
                f"expected a batch of shape (n, {_sides(self.endpoint, self.shape[1:])}), got {batch.shape}: "
                "reshape the input to what the model was trained on"
            )
        rows, size = len(batch), self.batch_rows
        if self.endpoint.connections == 1 or size is None or rows <= size:
            return ask(self._answer, batch, size)
        blocks = [batch[i : i + size] for i in range(0, rows, size)]
        # While it is not known whether the server takes binary tensors, the first block is sent alone.
        known = [] if self._memory.binary is not None else [self._scores(blocks.pop(0))]
        pool = ThreadPoolExecutor(self.endpoint.connections)
        contexts = [copy_context() for _ in blocks]  # each thread sees the batch that the caller is on
        try:
            return join(
                known + list(pool.map(lambda context, block: context.run(self._scores, block), contexts, blocks))
            )
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _scores(self, block: NDArray[Any]) -> NDArray[np.floating[Any]]:
        return check_scores(self._answer(block), len(block))

    def _answer(self, block: NDArray[Any]) -> object:
        binary = self._memory.binary is not False
        reply = self._send(block, binary=binary)
        if self._memory.binary is None and reply.status in _NOT_BINARY:
            binary, refused = False, reply
            reply = self._send(block, binary=False, attempts=1)
            if reply.status != 200:
                reply = refused  # the encoding was not the reason: show the first error
        if reply.status != 200:
            raise OracleError(_complaint(self.endpoint, reply))
        self._memory.binary = binary
        try:
            return self.payload.decode(reply.headers, reply.body)
        except MalformedError as error:
            fault = str(error)
        fault = f"{self.endpoint.fault(fault)}{self.endpoint.quote(reply.body)}"
        raise OracleError(f"the answer of {self.endpoint.url} cannot be read: {fault}")

    def _send(self, block: NDArray[Any], *, binary: bool, attempts: int = 0) -> Reply:
        """The reply to the rows of `block`, which were sent `attempts` times before."""
        headers, body = self.payload.encode(block, binary=binary)
        before = count(attempts)

        def announce() -> None:
            with self._memory.lock:
                if next(before):
                    send_again(len(block))
                if self.on_send is not None:
                    self.on_send(len(block))

        return self.endpoint.send("POST", self.payload.path, headers=headers, body=body, before=announce)


def _complaint(endpoint: Endpoint, reply: Reply) -> str:
    """Return the error message of a final status, with a remedy."""
    remedies = {
        301: "redirects are not followed, give the URL it leads to",
        401: "check the token in the environment",
        403: "check the token in the environment",
        404: "check url, model and version",
        413: "ask with smaller batch_rows",
        500: "check that the input has the shape and type that the model expects; 500 is not tried again",
    }
    moved = 301 if 300 <= reply.status < 400 else reply.status
    remedy = remedies.get(moved, "see what the server says")
    return f"expected status 200 from {endpoint.url}, got {reply.status}: {remedy}{endpoint.quote(reply.body)}"


def _sides(endpoint: Endpoint, shape: tuple[int | None, ...]) -> str:
    """The sides of a shape as far as they may be shown."""
    return endpoint.shown(", ".join("any" if side is None else str(side) for side in shape)) or "…"


def _fits(shape: tuple[int, ...], described: tuple[int | None, ...]) -> bool:
    """Whether inputs of `shape` fit the described shape, with or without its axis of rows."""
    return any(
        len(shape) == len(sides) and all(side in (None, got) for got, side in zip(shape, sides, strict=True))
        for sides in (described[1:], described)
    )


def _described(
    endpoint: Endpoint, payload: OpenInference, datatype: str | None
) -> tuple[OpenInference, tuple[int | None, ...] | None]:
    """Return `payload` with the names and types of the server's metadata, and the shape of the input."""
    reply = endpoint.send("GET", payload.metadata_path, headers={}, body=None, before=lambda: None)
    if reply.status != 200:
        raise OracleError(_complaint(endpoint, reply))
    told = _tensors_of(endpoint, reply)
    if isinstance(told, str):
        raise OracleError(
            f"the description of {payload.model!r} at {endpoint.url} cannot be used ({told}): "
            f"give input= and output= instead{endpoint.quote(reply.body)}"
        )
    inputs, outputs = told
    if len(inputs) > 1:
        raise ArgumentError(f"expected a model with one input, got {_listed(endpoint, inputs)}: serve one that has")
    if payload.output is None and len(outputs) > 1:
        raise ArgumentError(
            f"expected a model with one output, got {_listed(endpoint, outputs)}: choose the scores with output="
        )
    if payload.output is not None and outputs and all(one.name != payload.output for one in outputs):
        raise ArgumentError(
            f"expected output one of {_listed(endpoint, outputs)}, got {payload.output!r}: give one of them"
        )
    shape = None
    if inputs and datatype is None:  # some servers describe nothing
        known = inputs[0].datatype in (*DATATYPES, "BYTES")
        payload = replace(payload, datatype=inputs[0].datatype if known else "another type")
    # The names last: a traceback of the replacement above must not hold them.
    if inputs:
        payload, shape = replace(payload, input=inputs[0].name), inputs[0].shape
    if outputs and payload.output is None:
        payload = replace(payload, output=outputs[0].name)
    return payload, shape


def _listed(endpoint: Endpoint, tensors: list[_Tensor]) -> str:
    """Their names as far as they may be shown, or their number."""
    return endpoint.shown(str([one.name for one in tensors])) or str(len(tensors))


def _tensors_of(endpoint: Endpoint, reply: Reply) -> tuple[list[_Tensor], list[_Tensor]] | str:
    """Return the inputs and outputs of the metadata, or what is wrong with it."""
    try:
        metadata = load(reply.body)
        inputs, outputs = _tensors(metadata, "inputs"), _tensors(metadata, "outputs")
    except MalformedError as error:
        return str(error)
    repeats = endpoint.reveals(" ".join(f"{one.name} {one.datatype}" for one in inputs + outputs))
    return "it repeats a secret" if repeats else (inputs, outputs)


def _tensors(metadata: Any, key: str) -> list[_Tensor]:
    """Return the tensors listed under `key`."""
    listed = (metadata.get(key) or []) if isinstance(metadata, dict) else None
    found = []
    for one in listed if isinstance(listed, list) else [None]:
        name, kind, shape = (one.get(k) for k in ("name", "datatype", "shape")) if isinstance(one, dict) else (0, 0, 0)
        if not isinstance(name, str) or not isinstance(kind, str) or not 0 < len(name) < 200 or len(kind) > 20:
            raise MalformedError(f"expected {key} with names and datatypes")
        sides = [side if type(side) is int else -1 for side in shape] if isinstance(shape, list) else []
        found.append(_Tensor(name, kind, tuple(side if side >= 0 else None for side in sides) or None))
    return found
