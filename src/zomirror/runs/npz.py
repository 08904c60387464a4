"""npz files that are safe to read: uncompressed members only, every size checked before memory is taken.

Nothing is ever unpickled: the header of a member is matched against the one form that is written, and a dtype outside
numbers and booleans has no such form. As members are stored uncompressed, what is read is never larger than the file.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from zomirror.errors import ArgumentError, ArgumentTypeError, RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

LARGEST = (1 << 31) - (1 << 20)  # bytes of a file; beyond it the format would need its 64-bit variant
MOST = 1000  # members
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DTYPES = frozenset(("|b1", "|i1", "|u1", "<i2", "<u2", "<f2", "<i4", "<u4", "<f4", "<i8", "<u8", "<f8", "<c8", "<c16"))
_SHAPE = rb"\d{1,18},|\d{1,18}(?:, \d{1,18}){1,31}|"
_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z]\d{1,2})', 'fortran_order': False, 'shape': \((" + _SHAPE + rb")\), \} *\n"
)
_END = struct.Struct("<4s4H2IH")  # the end record of a zip file without a comment
_BLOCK = 1 << 20


def normal(value: object, name: str) -> NDArray[Any]:
    """`value` as a little-endian C-ordered array of numbers; the only arrays that a run directory holds."""
    array = np.asarray(value)
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in _DTYPES:
        raise ArgumentTypeError(f"expected {name} to be an array of plain numbers, got dtype {array.dtype}")
    return np.asarray(array, dtype=dtype, order="C")


def digest(value: object) -> dict[str, Any]:
    """dtype, shape and SHA-256 of an array: equal exactly when the arrays are equal bit for bit."""
    array = normal(value, "an array")
    text = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    text.update(array.reshape(-1).view(np.uint8).data)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": text.hexdigest()}


def write(file: BinaryIO, arrays: Mapping[str, object]) -> None:
    """Write arrays and scalars (as 0-d arrays) by name; the same arrays give the same bytes."""
    normals = {name: normal(value, name) for name, value in arrays.items()}
    for name in normals:
        if not _NAME.fullmatch(name):
            raise ArgumentError(f"expected an array name of letters, digits, '_', '.' and '-', got {name[:80]!r}")
    total = sum(array.nbytes + 1024 for array in normals.values())
    if total > LARGEST or len(normals) > MOST:
        raise ArgumentError(
            f"expected at most {MOST} arrays of {LARGEST:,} bytes in all, got {len(normals)}, {total:,}"
        )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name, array in normals.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


class Reader:
    """The members of an open npz file; opening checks the directory of the file, `load` one member."""

    def __init__(self, file: BinaryIO, what: str) -> None:
        self.what = what
        self._sizes: dict[str, zipfile.ZipInfo] = {}
        size = os.fstat(file.fileno()).st_size
        entries = _check_end(file, size, what)
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError, OSError) as error:
            raise RunError(f"{what} is not a readable npz file: {error}") from error
        for info in self._archive.infolist():
            stem = info.filename.removesuffix(".npy")
            if stem == info.filename or not _NAME.fullmatch(stem):
                raise RunError(f"{what} has a member {info.filename[:80]!r}, which is no array name")
            if stem in self._sizes:
                raise RunError(f"{what} has two members of the name {stem!r}")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
                raise RunError(f"{what} has the compressed or encrypted member {stem!r}; arrays are stored plainly")
            self._sizes[stem] = info
        if len(self._sizes) != entries or sum(info.file_size for info in self._sizes.values()) > size:
            raise RunError(f"{what} has a table of contents that does not fit its {size:,} bytes")

    @property
    def names(self) -> list[str]:
        """The names of the arrays, in the order of the file."""
        return list(self._sizes)

    def load(self, name: str) -> NDArray[Any]:
        """One array; memory is taken only after its declared shape was found to fill its member exactly."""
        if name not in self._sizes:
            raise RunError(f"{self.what} has no array {name!r}")
        info = self._sizes[name]
        try:
            with self._archive.open(info) as member:
                dtype, shape, start = _read_header(member.read(10), member.read, f"{self.what}, array {name!r}")
                size = math.prod(shape) * dtype.itemsize
                if start + size != info.file_size:
                    raise RunError(
                        f"{self.what}, array {name!r}: {dtype.str} of shape {shape} takes {size:,} bytes, but "
                        f"{info.file_size - start:,} are stored"
                    )
                array = np.empty(shape, dtype)
                if size:
                    view = array.reshape(-1).view(np.uint8).data
                    done = 0
                    while done < size:
                        block = member.read(min(_BLOCK, size - done))
                        if not block:
                            raise EOFError("the file ends inside the array")
                        view[done : done + len(block)] = block
                        done += len(block)
                # reading to the very end makes zipfile compare the CRC32 of the member
                if member.read(1):
                    raise EOFError("bytes follow the array")
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, struct.error) as error:
            raise RunError(f"{self.what}, array {name!r} is not readable: {error}") from error
        except (OSError, zlib.error) as error:
            raise RunError(f"{self.what}, array {name!r} cannot be read: {error}") from error
        return array


def _check_end(file: BinaryIO, size: int, what: str) -> int:
    """The number of members; refused if the table of contents is large, for the parser reads it as a whole."""
    if not _END.size <= size <= LARGEST:
        raise RunError(f"{what} has {size:,} bytes, which no npz file of a run has")
    start = max(0, size - _END.size - 20)
    file.seek(start)
    tail = file.read(size - start)
    magic, _, _, here, entries, length, offset, comment = _END.unpack(tail[-_END.size :])
    if magic != b"PK\5\6" or comment or here != entries or offset + length + _END.size != size:
        raise RunError(f"{what} is not an npz file, or has been cut")
    if entries > MOST or length > MOST * 256 or tail.startswith(b"PK\6\7"):
        raise RunError(f"{what} declares {entries:,} members in {length:,} bytes, more than are ever written")
    return int(entries)


def _read_header(prefix: bytes, read: Any, what: str) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    if len(prefix) < 10 or prefix[:8] != b"\x93NUMPY\x01\x00":
        raise RunError(f"{what} does not begin like an array")
    length = int.from_bytes(prefix[8:10], "little")
    match = _HEADER.fullmatch(read(length))
    if match is None:
        raise RunError(f"{what} has a header that is never written: only plain arrays of numbers are read")
    descr = match[1].decode()
    if descr not in _DTYPES:
        raise RunError(f"{what} has dtype {descr!r}: only plain numbers are read")
    shape = tuple(int(part) for part in match[2].decode().replace(",", " ").split())
    return np.dtype(descr), shape, 10 + length
