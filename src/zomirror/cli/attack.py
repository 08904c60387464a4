"""`zomirror attack [MODEL] INPUT...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zomirror.cli.model import Access
from zomirror.cli.options import (
    L1,
    L2,
    BatchRows,
    Bounds,
    Budget,
    ClassNames,
    Drop,
    Inputs,
    Json,
    Kappa,
    Mean,
    ModelName,
    Quiet,
    RemoteModel,
    RunDir,
    Seed,
    Shape,
    Std,
    TokenEnv,
    Workers,
)
from zomirror.cli.show import say
from zomirror.cli.work import begin

if TYPE_CHECKING:
    from zomirror.cli.saved import Saved
    from zomirror.contrast import Explanation


def attack(
    context: typer.Context,
    model: ModelName,
    inputs: Inputs = None,
    l1: L1 = 0.01,
    l2: L2 = 0.0,
    kappa: Kappa = 0.0,
    budget: Budget = 10_000,
    bounds: Bounds = None,
    label: Annotated[int | None, typer.Option(help="The class to leave, instead of the predicted one.")] = None,
    target: Annotated[int | None, typer.Option(help="The class to be taken for.")] = None,
    seed: Seed = 0,
    batch_rows: BatchRows = None,
    remote_model: RemoteModel = None,
    token_env: TokenEnv = None,
    shape: Shape = None,
    mean: Mean = None,
    std: Std = None,
    class_names: ClassNames = None,
    drop: Drop = None,
    run_dir: RunDir = None,
    workers: Workers = None,
    out: Annotated[Path, typer.Option(file_okay=False, help="Where pictures and .json files go.")] = Path("attacks"),
    *,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the sparsest change of an input that makes a model take it for another class."""
    work = begin(
        context,
        [model, *(inputs or [])],
        {"l1": l1, "l2": l2, "kappa": kappa, "budget": budget, "label": label, "target": target},
        Access(remote_model, token_env, batch_rows),
        seed=seed,
        bounds=bounds,
        mean=mean,
        std=std,
        class_names=class_names,
        shape=shape,
        drop=drop,
        run_dir=run_dir,
        out=out,
        workers=workers,
        show=not (json or quiet),
        each=("workers",),
    )
    found = work.find(("attack",), lambda name, some: None if json else _tell(name, some[0], work.saved))
    work.saved.overview(found)
    work.end(found, json=json)


def _tell(name: str, one: Explanation, saved: Saved) -> None:
    """The answer in words, and where its picture is."""
    say(f"{name}: {one.words()}")
    say(f"  l1 {one.l1_norm:.4g}, {one.nfev:,} queries: {saved.of(one)[1]}")
