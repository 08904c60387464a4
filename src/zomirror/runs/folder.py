"""An open directory whose files are opened by name relative to its descriptor; symbolic links are refused."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from zomirror.checks import reading
from zomirror.errors import ArgumentError, ArgumentTypeError, RunError

if TYPE_CHECKING:
    from collections.abc import Callable

DURABLE = importlib.util.find_spec("fcntl") is not None
"""Whether this system has the locks and directory descriptors that a run directory needs; Windows has not."""
# O_NONBLOCK: opening a FIFO must not wait for its writer.
_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK if DURABLE else 0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SENTENCES = {
    errno.ENOENT: "does not exist",
    errno.ELOOP: "is a symbolic link, and links inside a run directory are not followed: put the file itself there",
    errno.ENOTDIR: "is not a directory, or a part of its path is not: choose another path",
    errno.EEXIST: "is in the way: choose another path",
    errno.EACCES: "may not be written or read by this user: choose a directory of yours",
    errno.EPERM: "may not be written or read by this user: choose a directory of yours",
    errno.EROFS: "lies on a read-only file system: choose another directory",
    errno.ENOSPC: "does not fit, the disk is full: free some space and run the same call again",
    errno.EDQUOT: "does not fit, the disk quota is used up: free some space and run the same call again",
    errno.EFBIG: "would pass the largest file size allowed to this process: raise `ulimit -f` and run again",
}


def refusal(what: str, error: OSError) -> RunError:
    """A RunError that says in one sentence what the operating system refused and what to do."""
    sentence = _SENTENCES.get(error.errno or 0)
    return RunError(f"{what} {sentence}" if sentence else f"{what} cannot be used: {error.strerror or error}")


def check_name(name: str) -> str:
    """Return `name` if it is one plain path component; users and stored files supply it."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"expected a run name of type str, got {type(name).__name__}")
    if not _NAME.fullmatch(name):
        raise ArgumentError(
            f"expected a run name of at most 100 letters, digits, '.', '_' or '-' that starts with a letter or "
            f"digit, got {name[:80]!r}: a name is one path component"
        )
    return name


def check_path(path: str | os.PathLike[str]) -> Path:
    """The run directory as an absolute path; it need not exist."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"expected run_dir to be a str or a Path, got {type(path).__name__}")
    if not DURABLE:
        raise ArgumentError(
            "expected no run_dir, because this system lacks the file locks of POSIX, got one: leave it out, or run on "
            "Linux or macOS (on Windows, WSL has what it needs)"
        )
    with reading("run_dir", path):
        text = os.fspath(path)
        text = str.__str__(text) if isinstance(text, str) else text  # a subclass may lie about its length
    if not isinstance(text, str) or not text or "\0" in text:
        raise ArgumentError(f"expected run_dir to name a directory, got {text!r}: give a non-empty path of text")
    try:
        return Path(text).expanduser().absolute()
    except (RuntimeError, ValueError):  # no such user, or a name that no user can have
        raise ArgumentError(f"expected run_dir to begin with a home directory that exists, got {text!r}") from None


def write_all(fd: int, data: bytes | memoryview, offset: int) -> None:
    """Write all of `data` at `offset`; one pwrite may write only a part."""
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, offset)
        view, offset = view[done:], offset + done


class Folder:
    """One open directory; close it when done."""

    __slots__ = ("fd", "path")

    def __init__(self, fd: int, path: Path) -> None:
        self.fd = fd
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing directory; the path may be a link, because the caller named it."""
        try:
            return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), path)
        except OSError as error:
            raise refusal(f"run directory {str(path)!r}", error) from error

    @classmethod
    def make(cls, path: Path) -> Self:
        """Open a directory; create it and its parents if missing, and sync them."""
        try:
            missing = [p for p in (path, *path.parents) if not os.path.lexists(p)]
            path.mkdir(parents=True, exist_ok=True)
            for created in missing:
                parent = os.open(created.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    os.fsync(parent)
                finally:
                    os.close(parent)
        except OSError as error:
            raise refusal(f"run directory {str(path)!r}", error) from error
        return cls.open(path)

    def close(self) -> None:
        """Close the directory; closing twice is allowed."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def where(self, name: str) -> str:
        """The quoted full path of a file, for messages."""
        return repr(str(self.path / name))

    def names(self) -> list[str]:
        """The names in the directory, sorted."""
        return sorted(os.listdir(self.fd))  # noqa: PTH208 - by descriptor

    def kind(self, name: str) -> str | None:
        """'file', 'directory' or 'other' (links, devices, pipes); None if there is nothing of that name."""
        try:
            mode = os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refusal(self.where(name), error) from error
        return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "other"

    def size(self, name: str) -> int:
        """The size of a file in bytes, 0 if it does not exist."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_size
        except OSError:
            return 0

    def child(self, name: str, *, create: bool = False) -> Folder:
        """Open the sub-directory `name` (one plain component, not a link)."""
        check_name(name)
        try:
            if create and self.kind(name) is None:
                os.mkdir(name, dir_fd=self.fd)
                os.fsync(self.fd)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
            return Folder(os.open(name, flags, dir_fd=self.fd), self.path / name)
        except OSError as error:
            raise refusal(self.where(name), error) from error

    def open_file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a regular file and return its descriptor; links, pipes, devices and directories are refused."""
        try:
            fd = os.open(name, flags | _SAFE, 0o666, dir_fd=self.fd)
        except OSError as error:
            raise refusal(self.where(name), error) from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise RunError(f"{self.where(name)} is not a regular file: a run directory holds nothing else")
        return fd

    def read(self, name: str, *, limit: int) -> bytes:
        """The content of a file of at most `limit` bytes."""
        fd = self.open_file(name)
        with os.fdopen(fd, "rb") as file:
            size = os.fstat(fd).st_size
            if size > limit:
                raise RunError(f"{self.where(name)} has {size:,} bytes, more than the {limit:,} that are ever written")
            return file.read(limit)

    def write(self, name: str, fill: Callable[[BinaryIO], object]) -> None:
        """Write a file and sync it. Not atomic: for files that count only after a later `replace` of another one."""
        try:
            self.remove(name)
            fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, 0o666, dir_fd=self.fd)
            with os.fdopen(fd, "w+b") as file:
                fill(file)
                file.flush()
                os.fsync(fd)
        except OSError as error:
            raise refusal(self.where(name), error) from error

    def replace(self, name: str, fill: Callable[[BinaryIO], object], *, sync: bool = True) -> None:
        """Write a file atomically: temporary file, fsync, rename, directory fsync. Readers see the old or the new one.

        `sync=False` leaves the last step to the next `replace` in this directory.
        """
        temporary = f".{name}.tmp"
        try:
            self.write(temporary, fill)
            os.rename(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
            if sync:
                os.fsync(self.fd)
        except OSError as error:
            raise refusal(self.where(name), error) from error
        finally:
            self.remove(temporary)

    def remove(self, name: str) -> None:
        """Delete a file if possible; `write` reports one that could not be deleted."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except OSError:
            return
