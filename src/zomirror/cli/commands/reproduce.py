"""`zomirror reproduce STUDY`: the experiments of the paper."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zomirror.cli.arguments import Json, Quiet, Workers, workers_of
from zomirror.cli.show import say, say_json, table, warn
from zomirror.errors import ArgumentError

if TYPE_CHECKING:
    from zomirror.paper.reference import Compared
    from zomirror.paper.runner import Finished
    from zomirror.paper.studies import Report


class SettingsChoice(StrEnum):
    """The settings of the paper, or of its authors' code."""

    PRINTED = "printed"
    AUTHORS = "authors"


def reproduce(
    study: Annotated[
        str | None, typer.Argument(help="mnist, cifar, all, dimension, check or report; --list describes them.")
    ] = None,
    path: Annotated[Path | None, typer.Argument(help="For check: the directory of the authors' models.")] = None,
    settings: Annotated[
        SettingsChoice, typer.Option(help="Settings as the paper prints them, or as its authors' code has them.")
    ] = SettingsChoice.PRINTED,
    images_per_class: Annotated[int, typer.Option(min=1, help="Correctly classified test images of each class.")] = 20,
    model: Annotated[
        Path | None, typer.Option(dir_okay=False, help="An .onnx file to use instead of the bundled network.")
    ] = None,
    iterations: Annotated[
        int, typer.Option(min=1, help="Iterations of 201 queries each; the paper's figures have 200.")
    ] = 200,
    algorithms: Annotated[
        str | None, typer.Option(help="Algorithms to run, such as adaexpmd,expmd-1,psgd-10,recommended. Default: all.")
    ] = None,
    workers: Workers = None,
    lockstep: Annotated[
        int, typer.Option(min=1, help="Runs that each process advances together, with one call of the model for all.")
    ] = 1,
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Directory for runs, results, figures and the page.")
    ] = Path("reproduction"),
    *,
    list_: Annotated[bool, typer.Option("--list", help="List the studies and their number of runs.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Repeat the paper's experiments; the same command resumes an interrupted study."""
    from zomirror.paper import reference as check
    from zomirror.paper import runner, studies
    from zomirror.paper.settings import ALGORITHMS, Algorithm

    if list_:
        _list(per_class=images_per_class, json=json)
        return
    if study is None:
        raise ArgumentError(f"expected a study: {', '.join(studies.STUDIES)}; zomirror reproduce --list describes them")
    if study == "report":
        _tell(studies.report(out, iterations=iterations), runner.Finished(0, 0, 0), json=json)
        return
    if study == "check":
        if path is None:
            raise ArgumentError("expected the directory of the authors' models: zomirror reproduce check PATH")
        tasks = check.tasks(path)
    elif path is not None:
        raise ArgumentError(f"expected a path with check only, got {str(path)!r} with {study}")
    else:
        tasks = studies.plan(
            study,
            settings.value,
            images_per_class,
            model=model,
            iterations=iterations,
            algorithms=[Algorithm.named(name) for name in algorithms.split(",")] if algorithms else ALGORITHMS,
        )
    with _bar(f"reproduce {study}", show=not (quiet or json)) as tell:
        work = runner.run(tasks, out, workers=workers_of(workers), lockstep=lockstep, tell=tell)
    if work.signal is not None:
        warn(f"stopped, {work.left:,} runs left; the same command resumes")
        raise typer.Exit(128 + signal.Signals(work.signal))
    if study == "check" and path is not None:
        _tell_check(studies.checked(path, out), work, json=json)
    else:
        _tell(studies.report(out, iterations=iterations), work, json=json)


def _list(*, per_class: int, json: bool) -> None:
    from zomirror.paper.images import CLASSES
    from zomirror.paper.settings import ALGORITHMS, KINDS
    from zomirror.paper.studies import STUDIES

    runs = per_class * CLASSES * len(KINDS) * len(ALGORITHMS)
    if json:
        say_json({"studies": STUDIES, "runs_per_data_set": runs, "algorithms": [one.name for one in ALGORITHMS]})
        return
    for line in table(("study", "what it is"), list(STUDIES.items())):
        say(line)
    say(f"a data set: {len(ALGORITHMS)} algorithms and step sizes x {len(KINDS)} kinds x {per_class * CLASSES} images")
    say(f"          = {runs:,} runs of 40,201 queries")


@contextmanager
def _bar(what: str, *, show: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; its function takes the finished and the total number of runs."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(
        *columns, console=console, transient=True, disable=not (show and console.is_terminal)
    ) as bar:
        task = bar.add_task(what, total=None)
        first: list[int] = []

        def tell(done: int, total: int) -> None:
            # Runs of earlier sessions are left out: they took no time now and would make the estimate too short.
            first.append(done)
            bar.update(task, completed=done - first[0], total=total - first[0])

        yield tell


def _tell(report: Report, work: Finished, *, json: bool) -> None:
    if json:
        say_json(
            {
                "computed": work.computed,
                "found": work.found,
                "page": str(report.page),
                "claims": {
                    settings: {str(claim.number): claim.verdict.value for claim in made}
                    for settings, made in report.claims.items()
                },
            }
        )
        return
    if work.computed or work.found:
        say(f"{work.computed:,} runs computed, {work.found:,} already finished")
    for settings, made in report.claims.items():
        say(f"settings: {settings}")
        rows = [(f"({claim.number})", claim.verdict.value, claim.text) for claim in made]
        for line in table(("claim", "verdict", "the paper says"), rows):
            say(f"  {line}")
    for growth in report.growths:
        say(f"queries at d = {', '.join(f'{d:,}' for d in growth.dimensions)}: {growth.words}")
    say(f"page: {report.page}; figures and numbers are in the same directory")


def _tell_check(rows: list[Compared], work: Finished, *, json: bool) -> None:
    if json:
        say_json(
            [
                {
                    "settings": row.reference.settings,
                    "row": row.title,
                    "reference": row.reference.values,
                    "measured": row.measured,
                    "seeds": row.seeds,
                    "deviation": row.deviation,
                    "deviation_in_sd_of_seeds": row.strayed,
                    "agrees": row.agrees,
                    "same_signs": row.reference.replayed,
                }
                for row in rows
            ]
        )
    else:
        say(f"{work.computed:,} runs computed, {work.found:,} already finished")
        times = ("t=25", "50", "100", "150", "200")
        head = ("settings", "row", "images", "seeds", *times, "largest deviation", "by seeds")
        lines = [
            (
                row.reference.settings,
                row.title,
                str(len(row.reference.images)),
                str(row.seeds),
                *(f"{m:.3g}/{r:.3g}" for m, r in zip(row.measured, row.reference.values, strict=True)),
                f"{row.deviation:.1%}",
                "same signs" if row.reference.replayed else "" if row.strayed is None else f"{row.strayed:.1f} sd",
            )
            for row in rows
        ]
        for line in table(head, lines):
            say(line)
        say(f"measured/reference; {sum(row.agrees for row in rows)} of {len(rows)} rows agree within 10 %")
        say("same signs: with the reference's random directions; sd: standard deviation over our seeds")
    if not all(row.agrees for row in rows):
        raise typer.Exit(1)
