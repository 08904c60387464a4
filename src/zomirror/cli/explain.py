"""`zomirror explain [MODEL] INPUT...`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from zomirror.errors import ArgumentError

if TYPE_CHECKING:
    from zomirror.cli.saved import Saved
    from zomirror.contrast import Explanation


class Kind(StrEnum):
    """What to look for."""

    PP = "PP"
    PN = "PN"
    BOTH = "both"


class Loss(StrEnum):
    """What is descended."""

    HINGE = "hinge"
    SOFTPLUS = "softplus"


def explain(
    context: typer.Context,
    model: ModelName,
    inputs: Inputs = None,
    kind: Annotated[
        Kind, typer.Option(help="PP: what alone keeps the class. PN: what would change it.", case_sensitive=False)
    ] = Kind.BOTH,
    l1: L1 = 0.1,
    l2: L2 = 0.15,
    kappa: Kappa = 0.0,
    budget: Budget = 10_000,
    bounds: Bounds = None,
    baseline: Annotated[
        float | None,
        typer.Option(help="What an absent feature is. Without it 0; for a .csv the mean of each column."),
    ] = None,
    *,
    signed: Annotated[
        bool, typer.Option("--signed", help="A PN may take away, too. For a .csv it always may.")
    ] = False,
    label: Annotated[int | None, typer.Option(help="Explain this class instead of the predicted one.")] = None,
    target: Annotated[int | None, typer.Option(help="The class that a PN must reach.")] = None,
    loss: Annotated[Loss, typer.Option(help="What is descended.")] = Loss.HINGE,
    search: Annotated[int, typer.Option(help="Try so many strengths of the penalty and keep the sparsest.")] = 0,
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
    out: Annotated[Path, typer.Option(file_okay=False, help="Where pictures and .json files go.")] = Path(
        "explanations"
    ),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say which few features hold up a model's decision: a part that alone keeps it, a change that turns it."""
    if target is not None and kind is not Kind.PN:
        raise ArgumentError("expected --kind PN with --target: a PP keeps the class")
    options: dict[str, Any] = {"l1": l1, "l2": l2, "kappa": kappa, "budget": budget, "loss": loss.value}
    work = begin(
        context,
        [model, *(inputs or [])],
        options | {"search": search, "label": label, "target": target},
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
        baseline=baseline,
        signed=signed,
        workers=workers,
        show=not (json or quiet),
        each=("kind", "workers"),
    )
    kinds = ("PP", "PN") if kind is Kind.BOTH else (kind.value,)
    found = work.find(kinds, lambda name, some: None if json else _tell(name, some, work.saved))
    work.saved.overview(found)
    work.end(found, json=json)


def _tell(name: str, explained: list[Explanation], saved: Saved) -> None:
    """The answer in words, and a line for each explanation."""
    from zomirror.contrast.words import answer
    from zomirror.features.image_axes import counted

    say(f"{name}: {answer(explained)}.")
    for one in explained:
        valid = "valid" if one.valid else "not valid"
        counts = f"{counted(one.x, one.nnz, one.feature_names)}, F {one.objective:.4g}, {one.nfev:,} queries"
        say(f"  {one.kind}  {valid}, {counts}: {saved.of(one)[1]}")
