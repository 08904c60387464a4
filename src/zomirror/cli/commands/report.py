"""`zomirror report EXPLANATION.json|RUN|DIRECTORY...`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zomirror.cli.arguments import Json
from zomirror.cli.show import say, say_json, warn
from zomirror.errors import RunError


def report(
    what: Annotated[
        list[Path],
        typer.Argument(
            metavar="WHAT...",
            help=".json files of explanations, run directories, or directories of either.",
            exists=True,
        ),
    ],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The HTML file to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "Explanations",
    *,
    json: Json = False,
) -> None:
    """Write one self-contained HTML page: pictures, scores, convergence, a table that sorts and filters."""
    from zomirror.report import write
    from zomirror.report.source import load

    found = [load(path) for path in what]
    for note in (note for one in found for note in one.notes):
        warn(f"left out: {note}")
    explanations = [one for part in found for one in part.explanations]
    if not explanations:
        raise RunError("expected at least one explanation, found none")
    out.parent.mkdir(parents=True, exist_ok=True)
    write(out, explanations, title=title)
    if json:
        say_json({"page": str(out), "explanations": len(explanations), "valid": sum(e.valid for e in explanations)})
    else:
        say(f"{out}: {len(explanations)} explanations, {sum(e.valid for e in explanations)} of them valid")
