"""`zomirror attack [MODEL] INPUT...`."""

from __future__ import annotations

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
    workers_of,
)
from zomirror.cli.several import answered
from zomirror.cli.show import say
from zomirror.cli.work import Work, begin
from zomirror.result import Status

if TYPE_CHECKING:
    from zomirror.contrast.adversarial import Attack


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
        each=("workers",),
    )
    found: list[Attack] = []
    saved = work.saved
    wanted = [(given, saved.name(given.name, "attack")) for given in work.inputs]
    todo = [(given, "attack", work.place(name)) for given, name in wanted]
    with work.under_way(len(wanted), found):
        answers = answered(work.asked, todo, workers_of(workers), show=not (json or quiet), look=work.kept.write)
        for (given, name), one in zip(wanted, answers, strict=False):
            if one.status is Status.INTERRUPTED:
                return
            saved.keep(name, one)
            found.append(one)
            if not json:
                say(f"{given.name}: {one.words()}")
                say(f"  l1 {one.l1_norm:.4g}, {one.nfev:,} queries: {saved.of(one)[1]}")
    saved.overview([one.explanation for one in found])
    work.end(found, lambda one: _summary(one, work), good=all(one.success for one in found), json=json)


def _summary(one: Attack, work: Work) -> dict[str, Any]:
    """What a script wants to know; the arrays are in the file."""
    names = ("success", "label", "adversarial_label", "nnz", "l1_norm", "l2_norm", "margin", "nfev", "sent", "seed")
    settings = one.explanation.settings
    found = {name: getattr(one, name) for name in (*names, "status", "message")}
    return {"input": settings["input"]} | found | work.where(one, settings)
