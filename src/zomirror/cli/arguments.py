"""Options that commands share, and options that hold several numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from zomirror.errors import ArgumentError

L1 = Annotated[float, typer.Option(help="Weight of |x|_1: larger means sparser.")]
L2 = Annotated[float, typer.Option(help="Weight of |x|_2^2 / 2: larger means smaller entries.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same answer.")]
RunDir = Annotated[
    Path | None,
    typer.Option(
        file_okay=False, help="Write every query to a journal in this directory; the same command resumes a killed run."
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(metavar="N", help="Number of processes (-1: one per core), or dask://HOST:PORT of a cluster."),
]
MaxSent = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Queries that each search may ever send, repeated ones included. Default: the budget; "
        "with --run-dir twice the budget.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no live progress.")]


class RegionsChoice(StrEnum):
    """What the parts of a picture are."""

    GRID = "grid"
    SUPERPIXELS = "superpixels"
    PIXELS = "pixels"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What `zomirror explain` and `zomirror attack` both take, as typed."""

    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="An .onnx file, module:function, a URL or lenet. May be left out if all inputs are digits.",
        ),
    ]
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="A .png, .jpg, .npy, .csv (FILE:ROWS for some rows) or .txt file, - for a text on standard input, or "
            "digits:N for a bundled digit.",
        ),
    ] = None
    l1: L1
    l2: L2
    kappa: Annotated[
        float | None,
        typer.Option(help="The margin by which a class must win, in units of the scores; by default a safe one."),
    ] = None
    budget: Annotated[
        int | None,
        typer.Option(
            help="Queries that each search may use. Default 2,000; for tables and attacks 10,000; regions, words 300."
        ),
    ] = None
    max_sent: MaxSent = None
    bounds: Annotated[
        str | None,
        typer.Option(metavar="LOWER,UPPER", help="Range of the inputs. Default 0,1; for a .csv that of each column."),
    ] = None
    label: Annotated[
        str | None, typer.Option(help="The class of the input, by number or name. Default: the predicted class.")
    ] = None
    target: Annotated[
        str | None, typer.Option(help="The class that a PN or an attack must reach. Default: any other class.")
    ] = None
    seed: Seed = 0
    batch_rows: Annotated[int | None, typer.Option(help="Largest number of inputs in one call of the model.")] = None
    remote_model: Annotated[
        str | None, typer.Option(help="For a URL: the model's name in the Open Inference Protocol.")
    ] = None
    token_env: Annotated[
        str | None, typer.Option(help="For a URL: the environment variable that holds the bearer token.")
    ] = None
    shape: Annotated[str | None, typer.Option(metavar="SIDES", help="Shape of one input, such as 3,32,32.")] = None
    mean: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="The model takes (input - mean) / std: one number, or one per channel."),
    ] = None
    std: Annotated[str | None, typer.Option(metavar="NUMBERS", help="See --mean.")] = None
    class_names: Annotated[str | None, typer.Option(metavar="NAMES", help="Names of the classes, a,b,c.")] = None
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Leave out this column of the .csv; repeatable.")
    ] = None
    fixed: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="This column of the .csv must not change; repeatable.")
    ] = None
    increasing: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="This column may only rise; repeatable.")
    ] = None
    decreasing: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="This column may only fall; repeatable.")
    ] = None
    categorical: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="The numbers of this column are names; repeatable.")
    ] = None
    regions: Annotated[
        RegionsChoice | None,
        typer.Option(
            help="Explain a picture by cells of a grid, by superpixels or by single pixels. Default: the grid for "
            "pictures of more than 4,096 pixels.",
        ),
    ] = None
    run_dir: RunDir = None
    workers: Workers = None
    out: Annotated[Path, typer.Option(file_okay=False, help="Directory for pictures and .json files.")]
    json: Json = False
    quiet: Quiet = False


def takes_search_options(**defaults: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of SearchOptions as options; the command receives them as one object, `typed`."""
    hints = get_type_hints(SearchOptions, include_extras=True)
    shared = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=defaults.get(field.name, Parameter.empty if field.default is MISSING else field.default),
            annotation=hints[field.name],
        )
        for field in fields(SearchOptions)
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**words: Any) -> None:
            command(typed=SearchOptions(**{one.name: words.pop(one.name) for one in shared}), **words)

        own = signature(command, eval_str=True).parameters.values()
        both = [*(one.replace(kind=Parameter.KEYWORD_ONLY) for one in own if one.name != "typed"), *shared]
        run.__doc__ = command.__doc__
        run.__signature__ = Signature(both)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in both}  # typer reads both
        return run

    return decorate


def numbers(name: str, text: str | None) -> tuple[float, ...] | None:
    """Read `0.49,0.48,0.45` as numbers."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ArgumentError(f"expected {name} as numbers separated by commas, got {text!r}") from None


def workers_of(text: str | None) -> int | str | None:
    """Read `4` as a number of processes, `dask://host:port` as it is; None means this process."""
    if text is None or text.startswith("dask://"):
        return text
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"expected --workers as a number or dask://HOST:PORT, got {text!r}") from None


def class_of(text: str | None) -> int | str | None:
    """Read `3` as the number of a class, anything else as its name."""
    return int(text) if text is not None and text.isdecimal() else text


def cap_of(max_sent: int | None, budget: int, run_dir: Path | None) -> int:
    """--max-sent, or its default; a durable run may send again what a kill has lost."""
    return max_sent or (budget if run_dir is None else 2 * budget)


def pair(name: str, text: str | None) -> tuple[float, float] | None:
    """Read `0,1` as two numbers."""
    found = numbers(name, text)
    if found is None:
        return None
    if len(found) != 2:
        raise ArgumentError(f"expected {name} as LOWER,UPPER, got {text!r}")
    return found[0], found[1]


def shape_of(text: str | None) -> tuple[int, ...] | None:
    """Read `1,28,28` as a shape."""
    found = numbers("--shape", text)
    if found is None:
        return None
    if not all(0 < side < 2**31 and side == int(side) for side in found):
        raise ArgumentError(f"expected --shape as positive integers separated by commas, got {text!r}")
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
