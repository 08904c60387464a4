"""Reading members of downloaded archives: by exact name, up to a stated size, in memory only."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from zomirror.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def gunzip(path: Path, limit: int) -> bytes:
    """The content of a gzip file of at most `limit` bytes."""
    with _damage_named(path), gzip.open(path) as file:
        return _read(file, path.name, path, limit)


def zip_members(path: Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    """The named members of a zip file, each of at most its limit in bytes."""
    found = {}
    with _damage_named(path), zipfile.ZipFile(path) as archive:
        for name in limits.keys() & set(archive.namelist()):
            with archive.open(name) as file:
                found[name] = _read(file, name, path, limits[name])
    return _complete(found, path, limits)


def tar_members(path: Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    """The named regular files of a .tar.gz, each of at most its limit in bytes, in one pass."""
    found: dict[str, bytes] = {}
    with _damage_named(path), tarfile.open(path, "r:gz") as archive:
        for member in archive:
            # A link has no content of its own, and is not followed.
            if member.name in limits and member.isreg() and (file := archive.extractfile(member)) is not None:
                found.setdefault(member.name, _read(file, member.name, path, limits[member.name]))
            if len(found) == len(limits):
                break
    return _complete(found, path, limits)


def _read(file: IO[bytes] | gzip.GzipFile, name: str, path: Path, limit: int) -> bytes:
    content = file.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"{path.name}: expected at most {limit} bytes in {name}, got more: delete {path}")
    return content


def _complete(found: dict[str, bytes], path: Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    missing = [name for name in limits if name not in found]
    if missing:
        raise DataError(f"{path.name}: expected the members {missing}, which it does not hold: delete {path}")
    return found


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise DataError(f"{path.name}: expected a readable archive, got {error!r}: delete {path}") from error
