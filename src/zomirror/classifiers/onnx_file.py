"""Reads an untrusted ONNX file: checks that it is one, its size, and that it refers to no other file.

Loading a model from bytes is not enough: onnxruntime resolves a relative `external_data` location against the working
directory (following `..`), and has a location that means an address in memory. So every tensor of the model is
visited, and a tensor with external data is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from zomirror.checks import shown
from zomirror.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Message type -> field number -> message type, from onnx.proto: the fields that lead to tensors.
_CHILDREN = {
    "Model": {7: "Graph", 20: "Training", 25: "Function"},
    "Training": {1: "Graph", 2: "Graph"},
    "Graph": {1: "Node", 5: "Tensor", 15: "Sparse"},
    "Function": {7: "Node", 11: "Attribute"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph", 22: "Sparse", 23: "Sparse"},
    "Sparse": {1: "Tensor", 2: "Tensor"},
    "Tensor": {},
}
_GRAPH = 7
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def read_onnx(path: Path, *, max_bytes: int) -> bytes:
    """Return the bytes of the file at `path` if it is a self-contained ONNX model of at most `max_bytes`."""
    try:
        if not path.is_file():
            raise DataError(f"expected an ONNX file, found no file at {str(path)!r}: check the path")
        with path.open("rb") as file:
            model = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"expected an ONNX file that can be read, got {shown(str(path))}: {error}") from error
    if len(model) > max_bytes:
        raise DataError(f"expected at most {max_bytes} bytes in {path.name!r}, got more: raise max_bytes")
    check_onnx(model, path.name)
    return model


def check_onnx(model: bytes, name: str) -> None:
    """Refuse bytes that are not an ONNX model, and models with external data."""
    pending = [("Model", 0, len(model))]
    graphs = 0
    try:
        while pending:
            kind, start, stop = pending.pop()
            children = _CHILDREN[kind]
            for field, wire, value, end in _fields(model, start, stop):
                if kind == "Model" and field == _GRAPH and wire == _BYTES:
                    graphs += 1
                if kind == "Tensor" and (field == _EXTERNAL_DATA or (field == _DATA_LOCATION and value)):
                    raise DataError(
                        f"expected a self-contained ONNX model, got {name!r} with external data: save it "
                        "in one file (onnx.save(model, path, save_as_external_data=False))"
                    )
                if wire == _BYTES and field in children:
                    pending.append((children[field], value, end))
    except (IndexError, ValueError):
        graphs = 0
    if graphs == 0:
        raise DataError(f"expected an ONNX model, got {name!r} which is not one: export the model to ONNX")


def _fields(data: bytes, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (field number, wire type, value or start of the bytes, end) of a protobuf message."""
    at = start
    while at < stop:
        tag, at = _varint(data, at, stop)
        field, wire = tag >> 3, tag & 7
        value = at
        if wire == _VARINT:
            value, at = _varint(data, at, stop)
        elif wire == _BYTES:
            length, value = _varint(data, at, stop)
            at = value + length
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:  # groups are not used by ONNX
            raise ValueError
        if at > stop:
            raise ValueError
        yield field, wire, value, at


def _varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    while at < stop and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError
