"""Options that hold several numbers, and options that commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from zomirror.errors import ArgumentError

L1 = Annotated[float, typer.Option(help="Weight of |x|_1: larger is sparser.")]
L2 = Annotated[float, typer.Option(help="Weight of |x|_2^2 / 2: larger is smaller.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same answer.")]
Kappa = Annotated[float, typer.Option(help="By how much a class must win, in units of the scores.")]
Budget = Annotated[int, typer.Option(help="Queries that each input may use.")]
Bounds = Annotated[
    str | None,
    typer.Option(metavar="LOWER,UPPER", help="Of inputs. Without it 0,1; for a .csv the range of each column."),
]
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="An .onnx file, module:function, a URL or lenet. May be left out: digits are shown to lenet.",
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT",
        help="A .png, .jpg, .npy or .csv file (FILE:ROWS for some rows), or digits:N of the bundled ones.",
    ),
]
BatchRows = Annotated[int | None, typer.Option(help="Inputs that the model is given at a time, at most.")]
RemoteModel = Annotated[str | None, typer.Option(help="At a URL: the model's name in the Open Inference Protocol.")]
TokenEnv = Annotated[str | None, typer.Option(help="At a URL: the environment variable that holds the bearer token.")]
Shape = Annotated[str | None, typer.Option(metavar="SIDES", help="Of one input, such as 3,32,32.")]
Mean = Annotated[
    str | None, typer.Option(metavar="NUMBERS", help="The model takes (input - mean) / std; one or one a channel.")
]
Std = Annotated[str | None, typer.Option(metavar="NUMBERS", help="See --mean.")]
ClassNames = Annotated[str | None, typer.Option(metavar="NAMES", help="With commas between them.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Leave out of the .csv; repeatable.")]
RunDir = Annotated[
    Path | None,
    typer.Option(file_okay=False, help="Keep every query in a journal there; the same command goes on after a kill."),
]
Workers = Annotated[
    str | None,
    typer.Option(metavar="N", help="Processes that share the work (-1: one a core), or dask://HOST:PORT of a cluster."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No live progress.")]


def numbers(name: str, text: str | None) -> tuple[float, ...] | None:
    """`0.49,0.48,0.45` as numbers."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ArgumentError(f"expected {name} as numbers with commas between them, got {text!r}") from None


def workers_of(text: str | None) -> int | str | None:
    """`4` as a number of processes, `dask://host:port` as it is; None: this process."""
    if text is None or text.startswith("dask://"):
        return text
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"expected --workers as a number or dask://HOST:PORT, got {text!r}") from None


def pair(name: str, text: str | None) -> tuple[float, float] | None:
    """`0,1` as two numbers."""
    found = numbers(name, text)
    if found is None:
        return None
    if len(found) != 2:
        raise ArgumentError(f"expected {name} as LOWER,UPPER, got {text!r}")
    return found[0], found[1]


def shape_of(text: str | None) -> tuple[int, ...] | None:
    """`1,28,28` as a shape."""
    found = numbers("--shape", text)
    if found is None:
        return None
    if not all(side == int(side) and side > 0 for side in found):
        raise ArgumentError(f"expected --shape as positive integers with commas between them, got {text!r}")
    return tuple(int(side) for side in found)


def repeated(context: typer.Context, *, without: Sequence[str]) -> list[str]:
    """The options that differ from their defaults, as they are typed."""
    words: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in without or value in (None, [], ()) or value == parameter.default:
            continue
        flag = parameter.opts[0]
        if value is True:
            words.append(flag)
        else:
            words += [word for item in (value if isinstance(value, list) else [value]) for word in (flag, str(item))]
    return words
