"""A child process that is asked over its pipes and is killed, with its own children, after a deadline.

It runs without a shell, in its own session, with an allowlist of environment variables. Reading and writing are
interleaved, so that full pipes cannot deadlock. The process group is killed before its leader is reaped, so that its
number cannot have been given to another group.

A program that daemonises (forks twice, starts a session) leaves its group and its parent, but keeps its environment:
on Linux, processes with the random mark of the program in the environment they were started with are killed too. One
that was started with an environment of its own escapes, and so does any daemon on systems without /proc.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import subprocess
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from zomirror.classifiers.protocol import MalformedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zomirror.classifiers.command.framing import Answer

_PIPE = 2**16
_WORDS = 2000
_GRACE = 1.0
_SWEEP = 2.0  # seconds for processes that are started while others are killed
MARK = "PROGRAM_OF_ZOMIRROR"
"""The environment variable that tells the processes of a program; a program inside a program has both marks."""


class DiedError(Exception):
    """The program ended, or closed its stdout, when it should not have."""


class Child:
    """One running program; its pipes are used by one thread at a time."""

    __slots__ = ("__weakref__", "_end", "_process", "_words", "owner")

    def __init__(self, args: Sequence[str], environment: Mapping[str, str], cwd: str | None) -> None:
        pipe = subprocess.PIPE
        mark = secrets.token_hex(16)
        self._process = subprocess.Popen(  # noqa: S603
            list(args),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            env={**environment, MARK: f"{os.environ.get(MARK, '')}:{mark}"},
            cwd=cwd,
            start_new_session=True,
        )
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            os.set_blocking(stream.fileno(), False)  # type: ignore[union-attr]
        self._words = b""
        self.owner = os.getpid()
        self._end = weakref.finalize(self, _end, self._process, self.owner, mark.encode())

    def exchange(self, message: bytes, answer: Answer, until: float, *, last: bool) -> None:
        """Write `message` and read until `answer` is complete and, if this is the `last`, the program has ended.

        After TimeoutError, DiedError or MalformedError the caller must end the program.
        """
        process = self._process
        unsent = memoryview(message)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
            selector.register(process.stderr, selectors.EVENT_READ)  # type: ignore[arg-type]
            self._refuse_early(selector)
            selector.register(process.stdin, selectors.EVENT_WRITE)  # type: ignore[arg-type]
            while not answer.complete or len(unsent) or (last and not self.ended()):
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                events = selector.select(min(left, 0.01 if answer.complete else 0.25))
                for key, _ in events:
                    if key.fileobj is process.stdin:
                        unsent = self._write(unsent)
                        if not unsent:
                            selector.unregister(process.stdin)
                            if last:
                                process.stdin.close()
                    elif not (data := os.read(key.fd, _PIPE)):
                        selector.unregister(key.fileobj)
                        if key.fileobj is process.stdout and not answer.complete:
                            raise DiedError("it ended before it had answered")
                    elif key.fileobj is process.stdout:
                        answer.feed(data)
                    else:
                        self._words = (self._words + data)[-_WORDS:]
                if not events and not answer.complete and self.ended():
                    raise DiedError("it ended before it had answered")  # its own child may keep the pipe open
        if last and self.end() != 0:
            raise DiedError("it answered, but ended with an error")

    def _refuse_early(self, selector: selectors.BaseSelector) -> None:
        """Refuse a program that has ended, or has written before it was asked: its next answer would be another one."""
        for key, _ in selector.select(0):
            data = os.read(key.fd, _PIPE)
            if key.fileobj is self._process.stdout:
                raise MalformedError("it wrote before it was asked") if data else DiedError("it ended by itself")
            self._words = (self._words + data)[-_WORDS:]
            if not data:
                selector.unregister(key.fileobj)

    def hear_out(self) -> None:
        """Read the stderr of a program that is ending, for at most one second."""
        until = time.monotonic() + _GRACE
        while self._end.alive and time.monotonic() < until:
            gone = self.ended()  # before reading: if it has ended, all its output is in the pipe
            data = b""
            with contextlib.suppress(BlockingIOError):
                data = os.read(self._process.stderr.fileno(), _PIPE)  # type: ignore[union-attr]
            self._words = (self._words + data)[-_WORDS:]
            if gone and not data:
                return
            if not data:
                time.sleep(0.01)

    def _write(self, unsent: memoryview) -> memoryview:
        """Write what the pipe takes and return the rest; the rest is empty once the program has closed its stdin."""
        try:
            return unsent[os.write(self._process.stdin.fileno(), unsent[:_PIPE]) :]  # type: ignore[union-attr]
        except BrokenPipeError:
            return unsent[:0]
        except BlockingIOError:
            return unsent

    def ended(self) -> bool:
        """Tell whether the program has ended, without reaping it."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self) -> int | None:
        """End the program and its process group, and return its exit status."""
        self._end()
        return self._process.returncode

    def close(self) -> None:
        """Close the program's stdin, give it one second to end, then kill it."""
        if self._end.alive:
            self._process.stdin.close()  # type: ignore[union-attr]
            until = time.monotonic() + _GRACE
            while not self.ended() and time.monotonic() < until:
                time.sleep(0.01)
        self.end()

    def last_words(self) -> str:
        """Return how it ended and the end of its stderr, printable."""
        code = self._process.returncode
        if code is None:
            how = "it did not end"
        else:
            how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        text = " ".join(self._words.decode("utf-8", "replace").split())[-500:]
        shown = "".join(c if c.isprintable() else "?" for c in text)
        return f"{how}; its last words: {shown}" if shown else how


def _end(process: subprocess.Popen[bytes], owner: int, mark: bytes) -> None:
    """Kill a program with its process group and its daemons, then reap it; only in the process that started it."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    if os.getpid() != owner or process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    until = time.monotonic() + _SWEEP
    # Twice without a find: one that forks and ends while /proc is read is missed by a single reading.
    while (_kill_marked(mark) or _kill_marked(mark)) and time.monotonic() < until:
        time.sleep(0.001)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5.0)


def _kill_marked(mark: bytes) -> bool:
    """Kill the processes that were started with `mark` in their environment; tell whether there were any."""
    found = False
    for folder in Path("/proc").glob("[0-9]*") if hasattr(signal, "pidfd_send_signal") else ():
        with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
            process = os.pidfd_open(int(folder.name))  # opened before it is read: the number may be given to another
            try:
                if mark in (folder / "environ").read_bytes():
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    found = True
            finally:
                os.close(process)
    return found
