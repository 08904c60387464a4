"""One HTTP endpoint with a deadline, a size limit, bounded retries, and secrets that stay in the environment.

The rules of every request:

- No redirect is followed, no netrc or proxy variable is read, certificates are always verified.
- Secrets are read from environment variables when a request is sent. Over plain http they are sent to this machine
  only. No message, repr or traceback of ours holds one: errors are raised outside the frames that hold it, and of the
  text of a server that was sent one only known words are shown (quotation.py). A variable's name is shown only where
  it is one: a secret given in its place is not.
- `timeout` bounds a request with all its retries and waits. The time is checked at every read from the socket, so
  that a server that sends one byte per second is cut off too. Only the DNS look-up is left to the system.
- `max_bytes` bounds what is read from the socket and what it decompresses to.
- Statuses 429, 502, 503 and 504, and connections that are refused, reset or closed early, are retried after
  Retry-After or an exponential backoff, plus jitter. Everything else is final.
"""

from __future__ import annotations

import os
import re
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from zomirror.checks import integer, positive, positive_integer, shown, text
from zomirror.classifiers.http import quotation
from zomirror.classifiers.http.reply import Failure, Reply
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

if TYPE_CHECKING:
    from urllib3 import HTTPConnectionPool

AGAIN = (429, 502, 503, 504)
_DAY = 86_400.0
_NAME = re.compile(r"[A-Z]{1,12}(_([A-Z]{1,12}|[0-9]{1,2}))*")
"""A name that cannot be a secret: short words of capital letters, which no key or token consists of."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The server at `url` (scheme, host, port and prefix of the path) and how it is asked.

    `token_env` names the environment variable of a bearer token; `header_env` pairs further secret headers with the
    variables that hold their values.
    """

    url: str
    token_env: str | None = None
    header_env: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # a secret may be given as a header's name
    timeout: float = 60.0
    retries: int = 4
    max_bytes: int = 2**24
    connections: int = 1
    ca_file: str | None = None
    proxy: str | None = None
    rng: int | None = None
    _pool: HTTPConnectionPool = field(init=False, repr=False, compare=False)
    _owner: int = field(init=False, repr=False, compare=False)
    _jitter: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        scheme, host, _ = check_url("url", self.url)
        positive("timeout", self.timeout)
        positive_integer("max_bytes", self.max_bytes)
        positive_integer("connections", self.connections)
        integer("retries", self.retries, 0)
        if self.rng is not None:
            integer("rng", self.rng, 0)
        if self.ca_file is not None and not os.path.isfile(text("ca_file", self.ca_file)):  # noqa: PTH113 - never raises
            raise ArgumentError(f"expected ca_file to be a file of certificates, found none at {shown(self.ca_file)}")
        for name, variable in self._variables():
            if not isinstance(name, str) or not isinstance(variable, str):
                raise ArgumentTypeError(
                    "expected token_env and header_env to hold strings: the names of headers and of environment "
                    f"variables, got {type(name).__name__} and {type(variable).__name__} (not shown)"
                )
        if self.proxy is not None:
            check_url("proxy", self.proxy)
        if self._variables() and scheme == "http" and (self.proxy is not None or not is_loopback(host)):
            raise ArgumentError(
                f"expected https for a request with a secret, got plain http to {host!r}: "
                "use https, or ask a server on this machine without a proxy"
            )
        for name, variable in self._variables():
            if not re.fullmatch(r"[A-Za-z0-9-]+", name):
                raise ArgumentError(
                    "expected the name of a header of letters, digits and dashes, got another (not shown)"
                )
            check_secret(variable)
        object.__setattr__(self, "_jitter", np.random.default_rng(self.rng))
        self._connect()

    def __reduce__(self) -> tuple[type[Endpoint], tuple[object, ...]]:
        fields = (self.url, self.token_env, self.header_env, self.timeout, self.retries, self.max_bytes)
        return Endpoint, (*fields, self.connections, self.ca_file, self.proxy, self.rng)

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        before: Callable[[], None],
    ) -> Reply:
        """Return the reply to a request, retried on the statuses of AGAIN and on broken connections.

        `before` is called before every attempt; if it raises, the request ends with that exception.
        """
        until = time.monotonic() + self.timeout
        attempt = 0
        while True:
            before()
            attempt += 1
            reply = self._attempt(method, path, headers, body, until)
            if isinstance(reply, Reply):
                if reply.status not in AGAIN:
                    return reply
                failure = Failure(f"status {reply.status}{self.quote(reply.body)}", again=True)
                pause = retry_after(reply.headers.get("retry-after"))
            else:
                failure, pause = reply, 0.0
            pause += float(self._jitter.uniform(0.0, min(8.0, 0.25 * 2**attempt)))
            left = until - time.monotonic()
            if not failure.again or attempt > self.retries or pause >= left:
                waited = f", and {pause:.1f} s of waiting do not fit" if failure.again and pause >= left > 0 else ""
                raise OracleError(
                    f"no answer from {self.url} in {attempt} {'attempt' if attempt == 1 else 'attempts'} "
                    f"({self.timeout:g} s allowed{waited}): {failure.reason}"
                )
            time.sleep(pause)

    def quote(self, body: bytes) -> str:
        """Return the beginning of the answer for an error message: printable, short, without secrets."""
        text = " ".join(body[:2000].decode("utf-8", "replace").split())
        if not text:
            return ""
        shown = self.shown(text)
        return (
            f"; the server says: {shown}" if shown else "; the server's words are not shown: they may hold the secret"
        )

    def shown(self, text: str) -> str:
        """Return what of a server's text may be shown: all of it, or known words if a secret is sent to it."""
        return quotation.shown(text, self._secrets())

    def fault(self, text: str) -> str:
        """Return what is wrong with an answer, in words of ours; its numbers, which are the server's, may be hidden."""
        return quotation.few_digits(text) if self._variables() else text

    def reveals(self, text: str) -> bool:
        """Whether `text` holds a secret of this endpoint, or 8 successive characters of one."""
        return quotation.reveals(text, self._secrets())

    def _secrets(self) -> tuple[str, ...]:
        return tuple(os.environ.get(variable) or "unset" for _, variable in self._variables())

    def _connect(self) -> None:
        from zomirror.classifiers.http.deadline import open_pool  # urllib3 is only imported where it is used

        object.__setattr__(self, "_pool", open_pool(self.url, self.connections, self.ca_file, self.proxy))
        object.__setattr__(self, "_owner", os.getpid())

    def _variables(self) -> tuple[tuple[str, str], ...]:
        bearer = () if self.token_env is None else (("Authorization", self.token_env),)
        return (*bearer, *self.header_env)

    def _attempt(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, until: float
    ) -> Reply | Failure:
        """Send once. Errors are returned, not raised: a traceback would hold the secrets of these frames."""
        from zomirror.classifiers.http.deadline import exchange

        sent = {"Accept-Encoding": "identity", **headers}
        for name, variable in self._variables():
            value = os.environ.get(variable)
            if value is None:
                return Failure(f"{named(variable)} is not set any more", again=False)
            sent[name] = f"Bearer {value}" if (name, variable) == ("Authorization", self.token_env) else value
        if self._owner != os.getpid():
            self._connect()  # two processes must not share a connection
        parts = urlsplit(self.url)
        url = f"{parts.path.rstrip('/')}{path}"
        if self.proxy is not None and parts.scheme == "http":
            url = f"http://{parts.netloc}{url}"  # an http proxy gets the whole URL; https is tunnelled
        answer = exchange(self._pool, method, url or "/", sent, body, until, self.max_bytes)
        if not isinstance(answer, Reply):
            detail = self.shown(answer.detail)
            return Failure(f"{answer.reason} ({detail})" if detail else answer.reason, answer.again)
        return decompress(answer, self.max_bytes)


def decompress(reply: Reply, max_bytes: int) -> Reply | Failure:
    """Decompress an answer, which was not asked to be compressed, up to `max_bytes`."""
    encoding = reply.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return reply
    if encoding not in ("gzip", "x-gzip"):
        return Failure("the answer is compressed, though identity was asked for", again=False)
    inflate = zlib.decompressobj(wbits=31)
    try:
        body = inflate.decompress(reply.body, max_bytes + 1)
    except zlib.error:
        return Failure("the answer is marked as gzip but is not", again=False)
    if len(body) > max_bytes:
        return Failure(f"the answer has more than {max_bytes} bytes, raise max_bytes to allow it", again=False)
    if not inflate.eof:
        return Failure("the compressed answer ends too early", again=True)
    return Reply(reply.status, reply.headers, body)


def retry_after(value: str | None) -> float:
    """Return the seconds of a Retry-After header, at most a day; 0 if it cannot be read."""
    value = (value or "").strip()
    if re.fullmatch(r"\d{1,9}", value):
        return min(float(value), _DAY)
    try:
        moment = parsedate_to_datetime(value)
        return min(max(0.0, moment.timestamp() - time.time()), _DAY)
    except (ValueError, TypeError, OverflowError):
        return 0.0


def check_url(what: str, url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL without secrets; error messages never show the URL."""
    remedy = "give scheme://host:port/prefix, and secrets by the name of an environment variable"
    if not isinstance(url, str):
        raise ArgumentTypeError(f"expected {what} to be a string, got an object of type {type(url).__name__}: {remedy}")
    if not url.isprintable() or " " in url:
        raise ArgumentError(f"expected {what} without spaces and control characters: {remedy}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ArgumentError(f"expected {what} a URL with a valid host and port: {remedy}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"expected {what} to start with http:// or https:// and a host: {remedy}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment or "?" in url:
        raise ArgumentError(f"expected {what} without user, password, query and fragment: {remedy}")
    return parts.scheme, parts.hostname, port


def is_loopback(host: str) -> bool:
    """Whether `host` is a name or address of this machine, without a look-up."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_secret(variable: str) -> None:
    """Refuse a variable that is not set or cannot be sent in a header; its value is never shown."""
    value = os.environ.get(variable) if "\0" not in variable and "=" not in variable else None
    if value is None:
        raise ArgumentError(f"expected a secret in {named(variable)}, found none: set it, and give its name")
    if not value or not value.isascii() or not value.isprintable():
        raise ArgumentError(f"expected printable ASCII in {named(variable)}, got something else: set it again")


def named(variable: str) -> str:
    """Return `the environment variable NAME`; without the name where it may be a secret given in its place."""
    if _NAME.fullmatch(variable) and len(variable) <= 40:
        return f"the environment variable {variable}"
    return "the environment variable named (not shown: it may be the secret itself)"
