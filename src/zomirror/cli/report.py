"""`zomirror report EXPLANATION.json|DIRECTORY...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zomirror.cli.options import Json
from zomirror.cli.show import say, say_json
from zomirror.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from zomirror.contrast import Explanation

MAX_BYTES = 1 << 28


def report(
    what: Annotated[
        list[Path],
        typer.Argument(
            metavar="WHAT...", help="The .json files that explain wrote, or directories of them.", exists=True
        ),
    ],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The page.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its heading.")] = "Explanations",
    *,
    json: Json = False,
) -> None:
    """Write one self-contained HTML page: pictures, scores, convergence, a table that sorts and filters."""
    from zomirror.report import write

    files = [file for path in what for file in _files(path)]
    explanations = [_read(file) for file in files]
    out.parent.mkdir(parents=True, exist_ok=True)
    write(out, explanations, title=title)
    if json:
        say_json({"page": str(out), "explanations": len(explanations), "valid": sum(e.valid for e in explanations)})
    else:
        say(f"{out}: {len(explanations)} explanations, {sum(e.valid for e in explanations)} of them valid")


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.json"))
    if not found:
        raise ArgumentError(
            f"expected .json files in {str(path)!r}, found none: zomirror explain --out {path} writes them"
        )
    return found


def _read(path: Path) -> Explanation:
    from zomirror.contrast import Explanation

    if path.stat().st_size > MAX_BYTES:
        raise DataError(f"{path}: expected at most {MAX_BYTES:,} bytes, got {path.stat().st_size:,}")
    try:
        return Explanation.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected UTF-8 text, got something else") from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
