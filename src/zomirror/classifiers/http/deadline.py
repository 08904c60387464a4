"""One HTTP exchange over urllib3 with a deadline and a size limit.

urllib3 applies its timeout to every read anew, so a server that sends single bytes could take for ever. Here every read
and write sets the socket's timeout to the time left, and bytes are counted.
"""

from __future__ import annotations

import http.client
import io
import logging
import math
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProtocolError, ProxyError, SSLError

from zomirror.classifiers.http.reply import Failure, Reply

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from urllib3 import HTTPConnectionPool

_CONNECT_SECONDS = 10.0
_HEADER_BYTES = 2**18
_DAY = 86_400.0


class _TooLargeError(Exception):
    """The answer is too large. Not an OSError, which urllib3 would wrap."""


@dataclass(frozen=True, slots=True)
class _Limit:
    until: float
    max_bytes: int

    def left(self) -> float:
        """Return the seconds left, or raise TimeoutError."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, _DAY)  # a socket refuses timeouts of many years


_limit: ContextVar[_Limit] = ContextVar("limit of the exchange under way")


def _without_headers(record: logging.LogRecord) -> bool:
    """Drop urllib3's warning about malformed headers of our exchanges: it quotes them, and they may hold a secret."""
    return record.levelno < logging.WARNING or _limit.get(None) is None


logging.getLogger("urllib3.connection").addFilter(_without_headers)


class _Reader(io.RawIOBase):
    """Reads a socket until the deadline or the size limit."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)  # keeps the socket open while the response is read
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        limit = _limit.get()
        self._sock.settimeout(limit.left())
        got = self._file.readinto(buffer)
        self._count += got or 0
        if self._count > limit.max_bytes + _HEADER_BYTES:
            raise _TooLargeError
        return got

    def close(self) -> None:
        self._file.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response whose status line, headers and body are read through a _Reader."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Reader(sock))


class _Plain(HTTPConnection):
    response_class = _Response

    def send(self, data: Any) -> None:
        _before_write(self)
        super().send(data)


class _Tls(HTTPSConnection):
    response_class = _Response

    def send(self, data: Any) -> None:
        _before_write(self)
        super().send(data)


def _before_write(connection: HTTPConnection) -> None:
    if connection.sock is None:
        connection.connect()
    connection.sock.settimeout(_limit.get().left())


def open_pool(url: str, connections: int, ca_file: str | None, proxy: str | None) -> HTTPConnectionPool:
    """Return the connections to the host of `url`; certificates are always verified."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    options: dict[str, Any] = {"maxsize": connections, "block": True, "retries": False}
    if secure:
        options |= {"cert_reqs": "CERT_REQUIRED", "ca_certs": ca_file}
    pool: HTTPConnectionPool
    if proxy is not None:
        pool = urllib3.ProxyManager(proxy, num_pools=1, **options).connection_from_url(url)
    elif secure:
        pool = urllib3.HTTPSConnectionPool(str(parts.hostname), parts.port, **options)
    else:
        pool = urllib3.HTTPConnectionPool(str(parts.hostname), parts.port, **options)
    pool.ConnectionCls = _Tls if pool.scheme == "https" else _Plain
    return pool


def exchange(
    pool: HTTPConnectionPool,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    until: float,
    max_bytes: int,
) -> Reply | Failure:
    """Send one request and read the whole answer; errors are returned as a Failure."""
    limit = _Limit(until, max_bytes)
    token = _limit.set(limit)
    response = None
    try:
        left = limit.left()
        response = pool.urlopen(
            method,
            url,
            body=body,
            headers=dict(headers),
            retries=False,
            redirect=False,
            assert_same_host=False,  # a proxy gets the whole URL; redirects are off
            timeout=urllib3.Timeout(connect=min(_CONNECT_SECONDS, left), read=left),
            pool_timeout=math.ceil(left),
            preload_content=False,
            decode_content=False,
        )
        content = bytearray()
        for chunk in response.stream(2**16, decode_content=False):
            content += chunk
            if len(content) > max_bytes:
                raise _TooLargeError
        response.release_conn()
        found = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, found, bytes(content))
    except _TooLargeError:
        return Failure(f"the answer has more than {max_bytes} bytes, raise max_bytes to allow it", again=False)
    except (HTTPError, http.client.HTTPException, OSError, ValueError) as error:
        if time.monotonic() >= until:
            return Failure("the answer was not complete in time", again=False)
        return _failure(error)
    finally:
        if response is not None:
            response.close()  # no effect on a connection that was returned to the pool
            response.release_conn()
        _limit.reset(token)


def _failure(error: Exception) -> Failure:
    """Return what went wrong, and whether to retry."""
    if isinstance(error, SSLError):
        reason, again = "the connection is not secure (ca_file names a certificate to trust)", False
    elif isinstance(error, ProxyError):
        reason, again = "the proxy failed", True
    elif isinstance(error, (NewConnectionError, ConnectTimeoutError)):
        reason, again = "the connection failed", True
    elif isinstance(error, ProtocolError):
        reason, again = "the connection broke", True
    else:
        reason, again = f"the connection failed: {type(error).__name__}", False
    return Failure(reason, again, str(error))
