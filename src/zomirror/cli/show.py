"""What the commands print: answers to standard output, everything else to standard error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer


def say(text: str) -> None:
    """Print a line to standard output."""
    typer.echo(printable(text))


def warn(text: str) -> None:
    """Print a line to standard error."""
    typer.echo(printable(text), err=True)


def printable(text: str) -> str:
    """The text without control characters, which names of classes and features may contain."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def say_json(document: Any) -> None:
    """Print JSON; NaN and infinities become strings."""
    from zomirror.contrast.explanation_json import plain

    typer.echo(json.dumps(plain(document), indent=2, allow_nan=False))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> list[str]:
    """The lines of a table; columns named in `right` are right-aligned."""
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    lines = []
    for line in (head, *rows):
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(head, line, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
