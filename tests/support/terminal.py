"""A command in a real pseudo-terminal: a window of a given width, keys typed when something appears."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Session:
    """What was printed and the exit code."""

    raw: str
    code: int

    @property
    def frames(self) -> list[str]:
        """What stood on a line at some time: the text between returns and newlines, without escape sequences."""
        return [ESCAPES.sub("", part) for part in re.split(r"[\r\n]+", self.raw)]

    @property
    def text(self) -> str:
        """All of it, without escape sequences."""
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")


def run(
    command: Sequence[str],
    cwd: Path,
    *,
    columns: int = 100,
    environment: Mapping[str, str] | None = None,
    when: str = "\0",
    keys: bytes = b"",
    timeout: float = 90,
) -> Session:
    """Run the command to its end; when `when` has appeared, `keys` are typed once."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    hidden = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TERM", "CI")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=kept | {"TERM": "xterm-256color"} | dict(environment or {}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_own_terminal,
    )
    os.close(theirs)
    printed, typed, end = b"", False, time.monotonic() + timeout
    try:
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other side is closed
                    break
                if not part:
                    break
                printed += part
            if not typed and when.encode() in printed:
                os.write(ours, keys)
                typed = True
        return Session(printed.decode(), process.wait(timeout=max(1.0, end - time.monotonic())))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)


def _own_terminal() -> None:
    """Make standard input the controlling terminal, so that Ctrl-C typed there is a signal here."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
