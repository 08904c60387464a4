"""The cache directory: every write is atomic, every read is checked against a SHA-256."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 20


def directory() -> Path:
    """$ZOMIRROR_CACHE, else $XDG_CACHE_HOME/zomirror, else ~/.cache/zomirror; not created by asking."""
    own = os.environ.get("ZOMIRROR_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser().absolute() if base else Path.home() / ".cache") / "zomirror"


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that becomes `path` when the block ends well, and leaves no trace when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            # Without this a crash soon after the rename may leave a full-length file of zeros.
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def copy_in(source: Path, path: Path) -> None:
    """Copy `source` to `path` atomically, also across file systems."""
    with source.open("rb") as old, replacing(path) as new:
        while chunk := old.read(_CHUNK):
            new.write(chunk)
