"""Reading members of downloaded archives: by exact name, up to a stated size, never onto the disk."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from typing import IO, TYPE_CHECKING

from zomirror.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError)


def gunzip(path: Path, limit: int) -> bytes:
    """The content of a gzip file of at most `limit` bytes."""
    try:
        with gzip.open(path) as file:
            return _read(file, path.name, path, limit)
    except _DAMAGED as error:
        raise _damaged(path, error) from error


def zip_members(path: Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    """The named members of a zip file, each of at most its limit in bytes."""
    try:
        with zipfile.ZipFile(path) as archive:
            present = set(archive.namelist())
            _require(path, limits, present)
            found = {}
            for name, limit in limits.items():
                with archive.open(name) as file:
                    found[name] = _read(file, name, path, limit)
            return found
    except _DAMAGED as error:
        raise _damaged(path, error) from error


def tar_members(path: Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    """The named regular files of a .tar.gz, each of at most its limit in bytes, in one pass."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.name not in limits or member.name in found or not member.isreg():
                    continue
                file = archive.extractfile(member)
                if file is not None:
                    found[member.name] = _read(file, member.name, path, limits[member.name])
                if len(found) == len(limits):
                    break
    except _DAMAGED as error:
        raise _damaged(path, error) from error
    _require(path, limits, set(found))
    return found


def _read(file: IO[bytes] | gzip.GzipFile, name: str, path: Path, limit: int) -> bytes:
    content = file.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"{path.name}: expected at most {limit} bytes in {name}, got more: delete {path}")
    return content


def _require(path: Path, limits: Mapping[str, int], present: set[str]) -> None:
    missing = [name for name in limits if name not in present]
    if missing:
        raise DataError(f"{path.name}: expected the members {missing}, which it does not hold: delete {path}")


def _damaged(path: Path, error: BaseException) -> DataError:
    return DataError(f"{path.name}: expected a readable archive, got {error!r}: delete {path}")
