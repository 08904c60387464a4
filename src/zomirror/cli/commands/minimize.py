"""`zomirror minimize module:function`."""

from __future__ import annotations

from enum import StrEnum
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zomirror.cli.arguments import (
    L1,
    L2,
    Json,
    MaxSent,
    Quiet,
    RunDir,
    Seed,
    Workers,
    cap_of,
    pair,
    repeated,
    workers_of,
)
from zomirror.cli.commands.runs import stoppable, write_command
from zomirror.cli.model import load_object
from zomirror.cli.show import say, say_json
from zomirror.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from zomirror.methods import Method
    from zomirror.result import Intermediate, Result


LARGEST_DIM = 10**8
"""A run holds about ten vectors: 8 GB at this many dimensions."""


def presets() -> dict[str, Callable[..., Method]]:
    """The methods that --method takes. Imported late: --help needs none of it."""
    from zomirror import methods

    return {name: getattr(methods, name) for name in methods.__all__ if name == "recommended" or name.startswith("zo")}


class ReturnsChoice(StrEnum):
    """Which iterate is returned."""

    LAST = "last"
    BEST = "best"
    RANDOM = "random"


def minimize(
    context: typer.Context,
    function: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="Maps points (n, d) to n values. Imported from the working directory or the Python path.",
        ),
    ],
    x0: Annotated[Path | None, typer.Option(metavar="FILE.npy", help="The start.")] = None,
    dim: Annotated[int | None, typer.Option(min=1, help="Start at 0 in this number of dimensions.")] = None,
    l1: L1 = 0.0,
    l2: L2 = 0.0,
    bounds: Annotated[str | None, typer.Option(metavar="LOWER,UPPER", help="Bounds of every coordinate.")] = None,
    budget: Annotated[int, typer.Option(help="Queries that the run may use.")] = 10_000,
    max_sent: MaxSent = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A preset of zomirror.methods, such as zo_ada_expmd; an unknown name is answered with all names.",
            autocompletion=lambda: list(presets()),
        ),
    ] = "recommended",
    eta: Annotated[
        float | None, typer.Option(help="Inverse step size, for the methods that take one: larger means shorter steps.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Queries per gradient estimate, for the methods that take it.")
    ] = None,
    *,
    one_by_one: Annotated[
        bool, typer.Option("--one-by-one", help="The function maps one point (d,) to a number.")
    ] = False,
    returns: Annotated[
        ReturnsChoice | None,
        typer.Option(help="Which iterate is returned. By default the one that the method recommends."),
    ] = None,
    maxiter: Annotated[int | None, typer.Option(help="Stop after this number of iterations.")] = None,
    max_time: Annotated[float | None, typer.Option(help="Stop after this number of seconds.")] = None,
    target: Annotated[float | None, typer.Option(help="Stop when F falls to this value.")] = None,
    seed: Seed = 0,
    run_dir: RunDir = None,
    workers: Workers = None,
    block_rows: Annotated[int | None, typer.Option(help="Points that a worker gets at a time. Default 1.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.npy", help="Write the result to this file.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Minimise f(x) + l1 |x|_1 + (l2/2) |x|_2^2 over a box; only values of f are known."""
    chosen = _method(method, {"eta": eta, "batch_size": batch_size})
    fun = load_object(function, "FUNCTION")
    box = pair("--bounds", bounds)
    start = _start(x0, dim, box)
    words = ["minimize", function, *repeated(context, without=("function", "run_dir", "json", "quiet"))]

    from zomirror.contrast.meter import meter
    from zomirror.minimization import minimize as minimise

    def look(now: Intermediate) -> None:
        told.update(now.nfev, now.fun)

    with stoppable(run_dir), meter(function, budget, show=None if not (json or quiet) else False) as told:
        write_command(run_dir, words)
        result = minimise(
            fun,
            start,
            l1=l1,
            l2=l2,
            bounds=box,
            budget=budget,
            method=chosen,
            rng=seed,
            vectorized=not one_by_one,
            callback=look,
            returns=None if returns is None else returns.value,
            maxiter=maxiter,
            max_time=max_time,
            target=target,
            max_sent=cap_of(max_sent, budget, run_dir),
            run_dir=run_dir,
            workers=workers_of(workers),
            block_rows=block_rows,
        )
    if out is not None:
        _save(out, result.x)
    if json:
        say_json(_summary(result, out))
    else:
        _tell(result, budget, out)
    if not result.success:
        raise typer.Exit(1)


def _start(x0: Path | None, dim: int | None, box: tuple[float, float] | None) -> NDArray[Any]:
    if (x0 is None) == (dim is None):
        raise ArgumentError("expected --x0 FILE.npy or --dim N, and not both")
    if dim is not None and dim > LARGEST_DIM:
        raise ArgumentError(f"expected --dim of at most {LARGEST_DIM:,}, got {dim:,}: a run takes 80 bytes for each")
    import numpy as np

    if x0 is None:
        return np.clip(np.zeros(dim or 0), *(box or (0.0, 0.0)))
    try:
        found = np.load(x0, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"expected --x0 to be an array, got {str(x0)!r}, which cannot be read: {error}") from error
    if not isinstance(found, np.ndarray):
        raise DataError(f"expected --x0 to be one array as numpy.save writes it, got {str(x0)!r} with several")
    return found


def _method(name: str, typed: dict[str, Any]) -> Method | None:
    """The preset with the options that its signature takes; None is the recommended one."""
    known_methods = presets()
    if name not in known_methods:
        raise ArgumentError(f"expected --method among {', '.join(known_methods)}, got {name!r}")
    known = signature(known_methods[name]).parameters
    takes = [option for option in typed if option in known]
    which = f"{name}, which takes {' and '.join(map(_flag, takes)) or 'neither --eta nor --batch-size'}"
    for option, value in typed.items():
        if value is not None and option not in takes:
            raise ArgumentError(f"expected no {_flag(option)} with {which}")
        if value is None and option in takes and known[option].default is Parameter.empty:
            raise ArgumentError(f"expected {_flag(option)} with {which}")
    if name == "recommended":
        return None
    return known_methods[name](**{option: value for option, value in typed.items() if value is not None})


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _save(path: Path, x: NDArray[Any]) -> None:
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:  # numpy.save would add .npy to another name
        np.save(file, x)


def _tell(result: Result, budget: int, out: Path | None) -> None:
    import numpy as np

    say(result.message)
    say(f"F {result.fun:.6g} (f {result.f:.6g}), {result.nfev:,} of {budget:,} queries, {result.nit:,} iterations")
    largest = np.argsort(-np.abs(result.x), kind="stable")[:5]
    shown = ", ".join(f"x[{i}] = {result.x[i]:.4g}" for i in largest if result.x[i])
    say(f"{np.count_nonzero(result.x):,} of {result.x.size:,} coordinates are not 0" + (f": {shown}" if shown else ""))
    if out is not None:
        say(f"x is in {out}")


def _summary(result: Result, out: Path | None) -> dict[str, Any]:
    import numpy as np

    names = ("fun", "f", "nfev", "sent", "nit", "status", "message", "success", "stationarity", "seed")
    found = {name: getattr(result, name) for name in names}
    return found | {"nnz": int(np.count_nonzero(result.x)), "dim": result.x.size, "file": str(out) if out else None}
