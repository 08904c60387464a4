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
from zomirror.schema.parameter import parameter


def said(name: str) -> str:
    """The help of an option of explain(), which is written once."""
    return parameter(name).help


def each(name: str) -> str:
    """The help of an option that names columns and can be repeated."""
    return f"{said(name)} Repeatable."


TABLES, ARRAYS, MODELS = "Tables", "Arrays and pictures", "Models and classes"
SEARCH, RUNS = "The search", "Runs and files"
"""Headings of the options that most calls do without; the first heading holds the others."""
L1 = Annotated[float, typer.Option(help=said("l1"), rich_help_panel=SEARCH)]
L2 = Annotated[float, typer.Option(help="Weight of |x|_2^2 / 2: larger means smaller entries.", rich_help_panel=SEARCH)]
Seed = Annotated[int, typer.Option(min=0, help=said("seed"))]
RunDir = Annotated[
    Path | None,
    typer.Option(
        file_okay=False,
        help="Write every query to a journal in this directory; the same command resumes a killed run.",
        rich_help_panel=RUNS,
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Number of processes (-1: one per core), or dask://HOST:PORT of a cluster.",
        rich_help_panel=RUNS,
    ),
]
MaxSent = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Queries that each search may ever send, repeated ones included. Default: the budget; "
        "with --run-dir twice the budget.",
        rich_help_panel=RUNS,
    ),
]
BatchRows = Annotated[
    int | None, typer.Option(help="Largest number of inputs in one call of the model.", rich_help_panel=MODELS)
]
RemoteModel = Annotated[
    str | None,
    typer.Option(help="For a URL: the model's name in the Open Inference Protocol.", rich_help_panel=MODELS),
]
TokenEnv = Annotated[
    str | None,
    typer.Option(help="For a URL: the environment variable that holds the bearer token.", rich_help_panel=MODELS),
]
Shape = Annotated[
    str | None, typer.Option(metavar="SIDES", help="Shape of one input, such as 3,32,32.", rich_help_panel=ARRAYS)
]
Mean = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS",
        help="The model takes (input - mean) / std: one number, or one per channel.",
        rich_help_panel=ARRAYS,
    ),
]
Std = Annotated[str | None, typer.Option(metavar="NUMBERS", help="See --mean.", rich_help_panel=ARRAYS)]
ClassNames = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Names of the classes, a,b,c.", rich_help_panel=MODELS)
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Leave out this column of the .csv; repeatable.", rich_help_panel=TABLES),
]
Fixed = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help=each("fixed"), rich_help_panel=TABLES),
]
Increasing = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help=each("increasing"), rich_help_panel=TABLES),
]
Decreasing = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help=each("decreasing"), rich_help_panel=TABLES),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help=each("categorical"), rich_help_panel=TABLES),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.", rich_help_panel=RUNS)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no live progress.", rich_help_panel=RUNS)]


class RegionsChoice(StrEnum):
    """What the parts of a picture are: the choices of the schema."""

    GRID = "grid"
    SUPERPIXELS = "superpixels"
    PIXELS = "pixels"


class SpaceChoice(StrEnum):
    """The feature spaces of the schema."""

    VECTOR = "vector"
    TABLE = "table"
    REGIONS = "regions"
    WORDS = "words"
    WINDOWS = "windows"


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
    l2: Annotated[float | None, typer.Option(help=said("l2"), rich_help_panel=SEARCH)]
    kappa: Annotated[
        float | None,
        typer.Option(
            help=said("kappa"),
            rich_help_panel=SEARCH,
        ),
    ] = None
    budget: Annotated[
        int | None,
        typer.Option(help=said("budget")),
    ] = None
    max_sent: MaxSent = None
    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="LOWER,UPPER",
            help="Range of the inputs. Default 0,1; for a .csv that of each column.",
            rich_help_panel=ARRAYS,
        ),
    ] = None
    label: Annotated[str | None, typer.Option(help=said("label"))] = None
    target: Annotated[str | None, typer.Option(help=said("target"))] = None
    seed: Seed = 0
    batch_rows: BatchRows = None
    remote_model: RemoteModel = None
    token_env: TokenEnv = None
    shape: Shape = None
    mean: Mean = None
    std: Std = None
    class_names: ClassNames = None
    drop: Drop = None
    fixed: Fixed = None
    increasing: Increasing = None
    decreasing: Decreasing = None
    categorical: Categorical = None
    regions: Annotated[
        RegionsChoice | None,
        typer.Option(
            help=said("regions"),
            rich_help_panel=ARRAYS,
        ),
    ] = None
    run_dir: RunDir = None
    workers: Workers = None
    out: Annotated[Path, typer.Option(file_okay=False, help="Directory for pictures and .json files.")]
    json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainerOptions:
    """What `zomirror serve` and `zomirror studio` both take, as typed."""

    model: Annotated[str, typer.Argument(metavar="MODEL", help="As for zomirror explain.")]
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA",
            help="Inputs as for zomirror explain. The rows of a .csv are the reference of a table.",
        ),
    ] = None
    features: Annotated[
        SpaceChoice | None,
        typer.Option(help="What may change. Default: as the model and the data suggest."),
    ] = None
    budget: Annotated[int, typer.Option(min=100, help="The most queries that one explanation may use.")] = 10_000
    fixed: Fixed = None
    increasing: Increasing = None
    decreasing: Decreasing = None
    categorical: Categorical = None
    drop: Drop = None
    class_names: ClassNames = None
    shape: Shape = None
    mean: Mean = None
    std: Std = None
    batch_rows: BatchRows = None
    remote_model: RemoteModel = None
    token_env: TokenEnv = None


def takes_search_options(**defaults: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of SearchOptions as options; the command receives them as one object, `typed`."""
    return _takes(SearchOptions, **defaults)


def takes_explainer_options(**defaults: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same for ExplainerOptions."""
    return _takes(ExplainerOptions, **defaults)


def _takes(options: type[Any], **defaults: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    hints = get_type_hints(options, include_extras=True)
    shared = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=defaults.get(field.name, Parameter.empty if field.default is MISSING else field.default),
            annotation=hints[field.name],
        )
        for field in fields(options)
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**words: Any) -> None:
            command(typed=options(**{one.name: words.pop(one.name) for one in shared}), **words)

        own = signature(command, eval_str=True).parameters.values()
        both = [*(one.replace(kind=Parameter.KEYWORD_ONLY) for one in own if one.name != "typed"), *shared]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
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
    for one in context.command.params:
        value = context.params.get(one.name or "")
        if one.name in without or value in (None, [], ()) or value == one.default:
            continue
        flag = one.opts[0]
        if value is True:
            words.append(flag)
        else:
            words += [word for item in (value if isinstance(value, list) else [value]) for word in (flag, str(item))]
    return words
