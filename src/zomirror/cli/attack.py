"""`zomirror attack [MODEL] INPUT...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zomirror.cli.again import Kept, stoppable
from zomirror.cli.asked import Asked
from zomirror.cli.inputs import model_and_inputs, read_inputs
from zomirror.cli.model import Access, load_model
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
    numbers,
    pair,
    repeated,
    shape_of,
)
from zomirror.cli.saved import Saved
from zomirror.cli.show import say, say_json, warn
from zomirror.result import Status

if TYPE_CHECKING:
    from zomirror.attack import Attack


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
    out: Annotated[Path, typer.Option(file_okay=False, help="Where pictures and .json files go.")] = Path("attacks"),
    *,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the sparsest change of an input that makes a model take it for another class."""
    first, texts = model_and_inputs([model, *(inputs or [])])
    asked_model = load_model(first, Access(remote_model, token_env, batch_rows))
    asked = Asked(
        asked_model,
        {"l1": l1, "l2": l2, "kappa": kappa, "budget": budget, "label": label, "target": target},
        seed=seed,
        bounds=pair("--bounds", bounds),
        baseline=None,
        signed=True,
        mean=numbers("--mean", mean) or asked_model.mean,
        std=numbers("--std", std) or asked_model.std,
        class_names=tuple(class_names.split(",")) if class_names else None,
        repeat=repeated(context, without=("model", "inputs", "seed", "run_dir", "out", "json", "quiet")),
    )
    found_inputs = read_inputs(texts, shape=shape_of(shape) or asked_model.shape, drop=tuple(drop or ()))
    found: list[Attack] = []
    saved = Saved(out)
    typed = repeated(context, without=("model", "inputs", "run_dir", "json", "quiet"))
    kept = Kept(run_dir, ["attack", asked_model.name, *texts, *typed])
    try:
        with stoppable(run_dir):
            for given in found_inputs:
                name = saved.name(given.name, "attack")
                place = run_dir / name if run_dir else None
                one = asked.attack(given, show=not (json or quiet), run_dir=place, look=kept.write)
                if one.status is Status.INTERRUPTED:
                    return
                saved.keep(name, one)
                found.append(one)
                if not json:
                    say(f"{given.name}: {one.words()}")
                    say(f"  l1 {one.l1_norm:.4g}, {one.nfev:,} queries: {saved.of(one)[1]}")
    finally:
        kept.write()
        if len(found) < len(found_inputs) and saved.files:
            warn(f"{len(saved.files)} files of what was done are in {out}")
    saved.overview([one.explanation for one in found])
    if json:
        say_json([_summary(one, saved) for one in found])
    else:
        say(f"pictures and .json files are in {out}; a page of them: zomirror report {out}")
    if not all(one.success for one in found):
        raise typer.Exit(1)


def _summary(one: Attack, saved: Saved) -> dict[str, Any]:
    """What a script wants to know; the arrays are in the file."""
    names = ("success", "label", "adversarial_label", "nnz", "l1_norm", "l2_norm", "margin", "nfev", "sent", "seed")
    text, picture = saved.of(one)
    settings = one.explanation.settings
    found = {name: getattr(one, name) for name in (*names, "status", "message")}
    where = {"file": str(text), "picture": str(picture), "command": settings["command"]}
    return {"input": settings["input"]} | found | where
