"""The command line: it parses and prints; what it does is done by the library."""

from __future__ import annotations

import signal
from types import FrameType

from zomirror.cli.app import Terminated, app

__all__ = ["app", "main"]


def main() -> None:
    """Run `zomirror`, whose exit codes are those of `zomirror --help`."""
    signal.signal(signal.SIGTERM, _terminate)
    app(prog_name="zomirror")


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
