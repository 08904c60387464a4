"""Hosts on this machine: network namespaces of their own, joined by a bridge, whose links can be taken down.

    with Hosts(["scheduler", "a", "b", "client"]) as hosts:
        hosts.start("a", [sys.executable, "-m", ...])
        with hosts.down("a"):
            ...

All is made inside namespaces: the network of the machine itself is not touched. It takes the right to make them (root,
or CAP_SYS_ADMIN and CAP_NET_ADMIN) and the program `ip` of iproute2; `refusal()` says what is missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

NETWORK = "10.77.0"
"""The first three numbers of the addresses; nobody outside the namespaces sees them."""


def refusal() -> str:
    """Why this machine does not let us make hosts; empty if it does."""
    if shutil.which("ip") is None:
        return "the program ip (iproute2) is not installed"
    name = f"zm-{os.getpid()}-try"
    tried = _ip("netns", "add", name, check=False)
    if tried.returncode:
        return f"network namespaces are refused here: {tried.stderr.strip() or tried.returncode}"
    linked = _ip("-n", name, "link", "add", "try0", "type", "bridge", check=False)
    _ip("netns", "del", name, check=False)
    return f"a bridge is refused here: {linked.stderr.strip()}" if linked.returncode else ""


class Hosts:
    """Named hosts; as a context manager it ends their processes and removes them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._tag = f"zm-{os.getpid()}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._logs = tempfile.TemporaryDirectory()

    def __enter__(self) -> Hosts:
        try:
            _ip("netns", "add", self._space("switch"))
            _ip("-n", self._space("switch"), "link", "add", "br0", "type", "bridge")
            _ip("-n", self._space("switch"), "link", "set", "br0", "up")
            for i, name in enumerate(self._names):
                _ip("netns", "add", self._space(name))
                _ip(
                    *("-n", self._space("switch"), "link", "add", self._port(name), "type", "veth"),
                    *("peer", "name", "eth0", "netns", self._space(name)),
                )
                _ip("-n", self._space("switch"), "link", "set", self._port(name), "master", "br0", "up")
                _ip("-n", self._space(name), "addr", "add", f"{NETWORK}.{i + 1}/24", "dev", "eth0")
                for link in ("eth0", "lo"):
                    _ip("-n", self._space(name), "link", "set", link, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait(10)
        for name in (*self._names, "switch"):
            _ip("netns", "del", self._space(name), check=False)
        self._logs.cleanup()

    def address(self, name: str) -> str:
        """The address of a host."""
        return f"{NETWORK}.{self._names.index(name) + 1}"

    def start(self, name: str, args: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program on a host, in a session of its own; its output is in `said(name)`."""
        with (Path(self._logs.name) / name).open("ab") as log:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self._space(name), *args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **options,
            )
        self._processes.append(process)
        return process

    def said(self, name: str) -> str:
        """What the programs on a host have printed."""
        path = Path(self._logs.name) / name
        return path.read_text(errors="replace") if path.exists() else ""

    @contextlib.contextmanager
    def down(self, name: str) -> Iterator[None]:
        """Take the link of a host down, and up again at the end; its processes run on."""
        _ip("-n", self._space("switch"), "link", "set", self._port(name), "down")
        try:
            yield
        finally:
            _ip("-n", self._space("switch"), "link", "set", self._port(name), "up")

    def _space(self, name: str) -> str:
        return f"{self._tag}-{name}"

    def _port(self, name: str) -> str:
        return f"to-{name}"[:15]


def _ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)
