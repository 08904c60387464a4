"""npz files from strangers: numpy reads them, after every size was checked against the size of the file.

Members are stored uncompressed, so an array never takes more memory than its file. Only numbers and booleans are
written or read: no object array, so nothing is unpickled. Left to numpy and zipfile are the formats; ours are the
limits, which `numpy.load` does not have.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import struct
import zipfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from zomirror.errors import ArgumentError, ArgumentTypeError, RunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from zomirror.runs.folder import Folder

LARGEST = (1 << 31) - (1 << 20)  # bytes of a file; zip needs its 64-bit variant beyond
MOST = 1000  # members
_HEADER = 2000  # bytes of a member's header; 64 dimensions of 18 digits take 1,300
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DTYPES = frozenset(("|b1", "|i1", "|u1", "<i2", "<u2", "<f2", "<i4", "<u4", "<f4", "<i8", "<u8", "<f8", "<c8", "<c16"))
_END = struct.Struct("<4s4H2IH")  # the end record of a zip file without a comment


def digest(value: object, name: str = "an array") -> dict[str, Any]:
    """dtype, shape and SHA-256 of an array: equal exactly when the arrays are equal bit for bit."""
    array = _plain(value, name)
    text = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    text.update(array.reshape(-1).view(np.uint8).data)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": text.hexdigest()}


def write(file: IO[bytes], arrays: Mapping[str, object]) -> None:
    """Write arrays and scalars (as 0-d arrays) by name; the same arrays give the same bytes."""
    plain = {name: _plain(value, name) for name, value in arrays.items()}
    for name in plain:
        if not _NAME.fullmatch(name):
            raise ArgumentError(f"expected an array name of letters, digits, '_', '.' and '-', got {name[:80]!r}")
    total = sum(array.nbytes + 1024 for array in plain.values())
    if total > LARGEST or len(plain) > MOST:
        raise ArgumentError(f"expected at most {MOST} arrays of {LARGEST:,} bytes in all, got {len(plain)}, {total:,}")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name, array in plain.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                npy.write_array(member, array, version=(1, 0), allow_pickle=False)


@contextmanager
def opened(folder: Folder, name: str) -> Iterator[Reader]:
    """A reader of the npz file `name` of a run directory."""
    with os.fdopen(folder.open_file(name), "rb") as file:
        yield Reader(file, folder.where(name))


class Reader:
    """The members of an open npz file; opening it checks the table of contents, `load` checks one member."""

    def __init__(self, file: IO[bytes], what: str) -> None:
        self.what = what
        self._members: dict[str, zipfile.ZipInfo] = {}
        size = os.fstat(file.fileno()).st_size
        entries = _check_end(file, size, what)
        try:
            self._archive = zipfile.ZipFile(file)
        except Exception as error:  # zipfile does not promise which errors a damaged file raises
            raise RunError(f"{what} is not a readable npz file: {error}") from error
        for info in self._archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name == info.filename or not _NAME.fullmatch(name):
                raise RunError(f"{what} has a member {info.filename[:80]!r}, which is no array name")
            if name in self._members:
                raise RunError(f"{what} has two members of the name {name!r}")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
                raise RunError(f"{what} has the compressed or encrypted member {name!r}; arrays are stored plainly")
            self._members[name] = info
        if len(self._members) != entries or sum(info.file_size for info in self._members.values()) > size:
            raise RunError(f"{what} has a table of contents that does not fit its {size:,} bytes")

    @property
    def names(self) -> list[str]:
        """The names of the arrays, in the order of the file."""
        return list(self._members)

    def load(self, name: str) -> NDArray[Any]:
        """One array; no memory is taken before its shape and dtype were found to fill its member exactly."""
        info = self._members.get(name)
        if info is None:
            raise RunError(f"{self.what} has no array {name!r}")
        try:
            with self._archive.open(info) as member:
                _check_header(member, info.file_size)
            with self._archive.open(info) as member:  # anew: after a seek zipfile would not compare the CRC32
                return npy.read_array(member, allow_pickle=False)
        except Exception as error:  # nor does numpy promise which errors a damaged header raises
            raise RunError(f"{self.what}, array {name!r} cannot be read: {error}") from error

    def load_all(self, digests: Mapping[str, object], described: str) -> dict[str, NDArray[Any]]:
        """The arrays of these names; RunError if the digest of one differs. `described` names the file of digests."""
        found = {name: self.load(name) for name in digests}
        for name, array in found.items():
            if digest(array) != digests[name]:
                raise RunError(f"{self.what}, array {name!r} is not the one that {described} describes")
        return found


def _plain(value: object, name: str) -> NDArray[Any]:
    """`value` as a little-endian C-ordered array of numbers."""
    array = np.asarray(value)
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in _DTYPES:
        raise ArgumentTypeError(f"expected {name} to be an array of plain numbers, got dtype {array.dtype}")
    return np.asarray(array, dtype=dtype, order="C")


def _check_end(file: IO[bytes], size: int, what: str) -> int:
    """The number of members; a cut file is refused, and a large table of contents, which zipfile reads at once."""
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


def _check_header(member: IO[bytes], stored: int) -> None:
    """ValueError unless the member is a plain array of numbers that takes `stored` bytes with its header."""
    version = npy.read_magic(member)
    if version != (1, 0):
        raise ValueError(f"it has version {version} of the format, and only (1, 0) is read")
    shape, fortran, dtype = npy.read_array_header_1_0(member, max_header_size=_HEADER)
    if fortran or dtype.str not in _DTYPES or min(shape, default=0) < 0:
        raise ValueError(f"only C-ordered arrays of plain numbers are read, not {dtype.str} of shape {shape}")
    size = math.prod(shape) * dtype.itemsize
    if member.tell() + size != stored:
        raise ValueError(
            f"{dtype.str} of shape {shape} takes {size:,} bytes, but {stored - member.tell():,} are stored"
        )
