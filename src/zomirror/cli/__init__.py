"""The command line: it parses and prints; the library does the work."""

from __future__ import annotations

import signal
from types import FrameType

from zomirror.cli.app import Terminated, app

__all__ = ["app", "main"]


def main() -> None:
    """Run `zomirror`; `zomirror --help` lists the exit codes."""
    signal.signal(signal.SIGTERM, _terminate)
    app(prog_name="zomirror")


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
