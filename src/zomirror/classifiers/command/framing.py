"""Two encodings of the batches written to a program and of its answers.

`npy`: the batch is one array in NumPy's .npy format (version 1.0, C order), and so is the answer. Arrays follow one
another without separators. In Python a persistent program is

    import io, sys
    from types import SimpleNamespace
    import numpy as np

    stdin = SimpleNamespace(read=sys.stdin.buffer.read)  # numpy would seek in a file, which a pipe cannot
    while sys.stdin.buffer.peek(1):
        batch = np.lib.format.read_array(stdin)
        answer = io.BytesIO()
        np.save(answer, predict(batch))
        sys.stdout.buffer.write(answer.getvalue())
        sys.stdout.buffer.flush()

`lines`: every row is one line of numbers separated by spaces (an image is flattened), and is answered by one line of
numbers separated by spaces or commas. A program must answer every line before it reads the next, and flush it:

    import sys

    for line in sys.stdin:
        print(*predict([float(word) for word in line.split()]), flush=True)

Nothing else may be written to stdout. Anything may be written to stderr; its end is shown in error messages.
"""

from __future__ import annotations

import io
import math
import re
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from zomirror.classifiers.protocol import MalformedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 10_000
_HEADER = re.compile(  # numpy evaluates the header as a Python literal; a pattern is safer
    rb"\{'descr': *'(?P<descr>\|[biu]1|[<>][iuf][248])', *'fortran_order': *(?P<order>True|False), *"
    rb"'shape': *\((?P<shape>|\d{1,12},|\d{1,12}(, *\d{1,12}){1,7},?)\),? *\} *\n?"
)


class Answer(Protocol):
    """An answer that is read in pieces."""

    @property
    def complete(self) -> bool:
        """Whether nothing more is expected."""
        ...

    def feed(self, data: bytes) -> None:
        """Take the next piece; MalformedError as soon as it cannot become an answer."""
        ...

    def values(self) -> NDArray[Any]:
        """Return the array of a complete answer."""
        ...


def encode_npy(batch: NDArray[Any]) -> bytes:
    """Return the batch as a .npy file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(batch), version=(1, 0), allow_pickle=False)
    return file.getvalue()


class NpyAnswer:
    """One array in .npy format, of numbers only and of at most `max_bytes`."""

    def __init__(self, rows: int, max_bytes: int) -> None:
        self._data = bytearray()
        self._max_bytes = max_bytes
        self._array: tuple[int, int, tuple[int, ...], bool, np.dtype[Any]] | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing more is expected."""
        return self._array is not None and len(self._data) == self._array[1]

    def feed(self, data: bytes) -> None:
        """Take the next piece; MalformedError as soon as it cannot become an answer."""
        self._data += data
        if self._data[: len(_MAGIC)] != _MAGIC[: len(self._data)]:
            raise MalformedError("expected an array in .npy format and nothing else on stdout")
        if self._array is None:
            self._array = self._header()
        if self._array is not None and len(self._data) > self._array[1]:
            raise MalformedError(f"expected one array, got {len(self._data) - self._array[1]} bytes after it")

    def _header(self) -> tuple[int, int, tuple[int, ...], bool, np.dtype[Any]] | None:
        """Return start and end of the numbers, their shape, order and type; None while the header is incomplete."""
        if len(self._data) < 12:
            return None
        wide = {1: 2, 2: 4}.get(self._data[6])
        if wide is None:
            raise MalformedError("expected version 1.0 or 2.0 of the .npy format")
        start = 8 + wide + int.from_bytes(self._data[8 : 8 + wide], "little")
        if start > _MAX_HEADER:
            raise MalformedError(f"expected a .npy header of at most {_MAX_HEADER} bytes, got {start}")
        if len(self._data) < start:
            return None
        header = _HEADER.fullmatch(self._data[8 + wide : start])
        if header is None:
            raise MalformedError("expected a .npy header of an array of real numbers")
        shape = tuple(int(side) for side in header["shape"].replace(b",", b" ").split())
        dtype = np.dtype(header["descr"].decode())
        size = math.prod(shape) * dtype.itemsize
        if size > self._max_bytes:
            raise MalformedError(f"expected at most {self._max_bytes} bytes, got an array of {size}: raise max_bytes")
        return start, start + size, shape, header["order"] == b"True", dtype

    def values(self) -> NDArray[Any]:
        """Return the array of a complete answer."""
        assert self._array is not None  # noqa: S101
        start, end, shape, fortran, dtype = self._array
        flat = np.frombuffer(bytes(self._data[start:end]), dtype=dtype)
        return flat.reshape(shape, order="F" if fortran else "C")


def encode_lines(batch: NDArray[Any]) -> bytes:
    """Return the batch as one line of numbers per row."""
    rows = batch.reshape(len(batch), -1).tolist()
    return "".join(" ".join(map(repr, row)) + "\n" for row in rows).encode()


class LinesAnswer:
    """One line of numbers per row, at most `max_bytes` in total."""

    def __init__(self, rows: int, max_bytes: int) -> None:
        self._rows = rows
        self._max_bytes = max_bytes
        self._data = bytearray()
        self._lines = 0

    @property
    def complete(self) -> bool:
        """Whether nothing more is expected."""
        return self._lines == self._rows

    def feed(self, data: bytes) -> None:
        """Take the next piece; MalformedError as soon as it cannot become an answer."""
        self._data += data
        self._lines += data.count(b"\n")
        if self._lines > self._rows or (self.complete and not self._data.endswith(b"\n")):
            raise MalformedError(f"expected {self._rows} lines, got more: write one line for every line read")
        if len(self._data) > self._max_bytes:
            raise MalformedError(f"expected at most {self._max_bytes} bytes, got more: raise max_bytes")

    def values(self) -> NDArray[Any]:
        """Return the array of a complete answer."""
        rows = []
        for number, line in enumerate(self._data.splitlines(), 1):
            try:
                rows.append([float(word) for word in line.replace(b",", b" ").split()])
            except ValueError:
                raise MalformedError(f"expected only numbers on stdout, got something else in line {number}") from None
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            raise MalformedError("expected the same number of values in every line")
        return np.array(rows)


FRAMINGS: dict[str, tuple[Callable[[NDArray[Any]], bytes], Callable[[int, int], Answer]]] = {
    "npy": (encode_npy, NpyAnswer),
    "lines": (encode_lines, LinesAnswer),
}
