"""The formats of requests and answers, for two kinds of server.

`OpenInference` is the Open Inference Protocol, version 2 (KServe, Triton, MLServer, OpenVINO, TorchServe ...),
with tensors as binary or as JSON. `PlainJson` is any server that takes {"instances": [...]} and answers
{"predictions": [...]}, with configurable keys.

Decoding is strict, and its error messages never quote the server, whose words may hold secrets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import numpy as np

from zomirror.checks import shown, text
from zomirror.classifiers.protocol import MalformedError
from zomirror.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DATATYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    **{f"INT{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"UINT{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
_LENGTH = "inference-header-content-length"


class Payload(Protocol):
    """Writes batches and reads scores."""

    @property
    def path(self) -> str:
        """The path below the server's URL that answers batches."""
        ...

    def encode(self, batch: NDArray[Any], *, binary: bool) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of a request for the scores of `batch`."""
        ...

    def decode(self, headers: Mapping[str, str], body: bytes) -> NDArray[Any]:
        """Return the scores in an answer, or raise MalformedError."""
        ...


@dataclass(frozen=True, slots=True)
class OpenInference:
    """Version 2 of the Open Inference Protocol; with `output` None the model must have one output.

    The names of the tensors are not in the repr: the server gives them, and may put a secret into them.
    """

    model: str
    version: str | None = None
    input: str = field(default="input-0", repr=False)
    datatype: str = "FP32"
    output: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for what, name in (("model", self.model), ("version", self.version)):
            if name is not None and (not isinstance(name, str) or name in ("", ".", "..") or not name.isprintable()):
                raise ArgumentError(f"expected {what} to be a name, got {shown(name)}: give the name on the server")
        text("input", self.input)
        if self.output is not None:
            text("output", self.output)
        if not isinstance(self.datatype, str) or self.datatype not in ("FP16", "FP32", "FP64"):
            raise ArgumentError(
                f"expected a model with input of FP16, FP32 or FP64, got {shown(self.datatype)}: "
                "serve it with float input"
            )

    @property
    def metadata_path(self) -> str:
        """The path below the server's URL that describes the model."""
        version = "" if self.version is None else f"/versions/{quote(self.version, safe='')}"
        return f"/v2/models/{quote(self.model, safe='')}{version}"

    @property
    def path(self) -> str:
        """The path below the server's URL that answers batches."""
        return f"{self.metadata_path}/infer"

    def encode(self, batch: NDArray[Any], *, binary: bool) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of a request for the scores of `batch`."""
        data = np.ascontiguousarray(batch, dtype=DATATYPES[self.datatype])
        tensor: dict[str, Any] = {"name": self.input, "shape": list(data.shape), "datatype": self.datatype}
        request: dict[str, Any] = {"inputs": [tensor]}
        if self.output is not None:
            request["outputs"] = [{"name": self.output, "parameters": {"binary_data": binary}}]
        elif binary:
            request["parameters"] = {"binary_data_output": True}
        if not binary:
            if self.datatype == "FP16":
                raise ArgumentError("expected binary tensors for a model of FP16, got JSON: use encoding='binary'")
            tensor["data"] = data.ravel().tolist()
            return {"Content-Type": "application/json"}, dump(request)
        raw = data.tobytes()
        tensor["parameters"] = {"binary_data_size": len(raw)}
        head = dump(request)
        headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))}
        return headers, head + raw

    def decode(self, headers: Mapping[str, str], body: bytes) -> NDArray[Any]:
        """Return the scores in an answer, or raise MalformedError."""
        length = headers.get(_LENGTH)
        if length is not None and not (length.isdecimal() and len(length) < 12 and int(length) <= len(body)):
            raise MalformedError("expected a length of the JSON part within the answer")
        split = len(body) if length is None else int(length)
        answer = load(body[:split])
        outputs = answer.get("outputs") if isinstance(answer, dict) else None
        if not isinstance(outputs, list) or not all(isinstance(one, dict) for one in outputs):
            raise MalformedError("expected a list of outputs")
        chosen = [one for one in outputs if self.output is None or one.get("name") == self.output]
        if len(chosen) != 1:
            which = "one output" if self.output is None else "the output that was asked for once"
            raise MalformedError(f"expected {which}, got {len(chosen)} of {len(outputs)}: give output=")
        at = split
        for output in outputs:
            size = _binary_size(output)
            if output is chosen[0]:
                return _tensor(output, None if size is None else memoryview(body)[at : at + size])
            at += size or 0
        raise AssertionError("unreachable")


def _binary_size(output: dict[str, Any]) -> int | None:
    parameters = output.get("parameters")
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise MalformedError("expected binary_data_size a number of bytes")
    return size


def _tensor(output: dict[str, Any], raw: memoryview | None) -> NDArray[Any]:
    """Return the tensor of an output, from the bytes after the JSON or from its `data`."""
    shape, dtype = output.get("shape"), DATATYPES.get(str(output.get("datatype")))
    if dtype is None:
        raise MalformedError("expected an output with a numeric datatype")
    if not isinstance(shape, list) or not all(type(side) is int and 0 <= side < 2**31 for side in shape):
        raise MalformedError("expected an output with a shape")
    if raw is not None:
        if len(raw) != math.prod(shape) * dtype.itemsize:
            raise MalformedError(f"expected {math.prod(shape) * dtype.itemsize} bytes of an output, got {len(raw)}")
        return np.frombuffer(raw, dtype=dtype).reshape(shape)
    values = numbers(output.get("data"))
    if values.size != math.prod(shape):
        raise MalformedError(f"expected {math.prod(shape)} numbers in an output, got {values.size}")
    return values.reshape(shape).astype(dtype)


@dataclass(frozen=True, slots=True)
class PlainJson:
    """A request {rows: [...]} and an answer {scores: [...]}.

    `rows` and `scores` are keys, or paths of keys separated by dots; empty means the bare list. In `scores` a * stands
    for every item of a list: "predictions.*.probabilities" reads the probabilities of one object per row.
    """

    rows: str = "instances"
    scores: str = "predictions"
    path: str = ""

    def __post_init__(self) -> None:
        text("rows", self.rows)
        text("scores", self.scores)

    def encode(self, batch: NDArray[Any], *, binary: bool) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of a request for the scores of `batch`."""
        request: Any = batch.tolist()
        for key in reversed(self.rows.split(".") if self.rows else []):
            request = {key: request}
        return {"Content-Type": "application/json"}, dump(request)

    def decode(self, headers: Mapping[str, str], body: bytes) -> NDArray[Any]:
        """Return the scores in an answer, or raise MalformedError."""
        return numbers(_follow(load(body), self.scores.split(".") if self.scores else []))


def _follow(value: Any, keys: list[str]) -> Any:
    """Return the value at the path `keys`."""
    for i, key in enumerate(keys):
        if key == "*":
            if not isinstance(value, list):
                raise MalformedError(f"expected a list where the path {'.'.join(keys)!r} has its *")
            return [_follow(one, keys[i + 1 :]) for one in value]
        if not isinstance(value, dict) or key not in value:
            raise MalformedError(f"expected scores under {'.'.join(keys)!r}, found no {key!r}: give scores=")
        value = value[key]
    return value


def dump(value: Any) -> bytes:
    """Return JSON; ArgumentError for NaN and infinity, which it cannot hold."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        raise ArgumentError("expected finite inputs, got NaN or infinity: JSON cannot carry them") from None


def load(body: bytes) -> Any:
    """Return the parsed JSON, or raise MalformedError. NaN is accepted, since many servers write it."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedError("expected JSON") from None


def numbers(data: Any) -> NDArray[Any]:
    """Return nested lists of numbers as an array, or raise MalformedError."""
    try:
        values = np.asarray(data)
    except (ValueError, OverflowError):
        raise MalformedError("expected rows of equal length") from None
    if values.dtype.kind not in "biuf" or values.ndim == 0:
        raise MalformedError("expected lists of numbers")
    return values
