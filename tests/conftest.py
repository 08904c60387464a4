"""What every test stands on: no network beyond this machine, and property tests that repeat themselves."""

from __future__ import annotations

import os
import socket
from ipaddress import ip_address
from typing import Any

import hypothesis

hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


class RemoteConnectionError(Exception):
    """A test tried to reach another machine; not an OSError, so that no retry loop swallows it."""


def is_local(host: str | bytes | None) -> bool:
    """Whether the host is this machine, without asking a name server."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in {None, "", "localhost"}:
        return True
    try:
        address = ip_address(str(name).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def guard(name: str) -> None:
    """Let the method of every socket reach loopback addresses and Unix sockets only."""
    method = getattr(socket.socket, name)

    def guarded(self: socket.socket, *args: Any) -> Any:
        address = args[-1]  # connect(address), connect_ex(address), sendto(data[, flags], address)
        if self.family != socket.AF_UNIX and not is_local(address[0]):
            raise RemoteConnectionError(f"tests may talk to this machine only, not to {address[0]!r}")
        return method(self, *args)

    setattr(socket.socket, name, guarded)


def guard_resolver() -> None:
    """Refuse to look up other machines: the name server is one already."""
    resolve = socket.getaddrinfo

    def guarded(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_local(host):
            raise RemoteConnectionError(f"tests may not look up {host!r}")
        return resolve(host, *args, **kwargs)

    socket.getaddrinfo = guarded


for _name in ("connect", "connect_ex", "sendto"):
    guard(_name)
guard_resolver()
