"""`zomirror runs list|show|resume`: what run directories hold, and going on with them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zomirror.cli.command_file import shown, words_of
from zomirror.cli.options import Json
from zomirror.cli.show import say, say_json, table, warn

if TYPE_CHECKING:
    from zomirror.runs import RunInfo

app = typer.Typer(no_args_is_help=True, help="Say what run directories hold; go on with a run.")


@app.command("list")
def list_(
    root: Annotated[Path, typer.Argument(help="The directory that holds run directories.")] = Path(),
    *,
    json: Json = False,
) -> None:
    """List the runs directly below a directory."""
    from zomirror.runs import list_runs

    found = list_runs(root)
    if json:
        say_json([_plain(info) for info in found])
        return
    if not found:
        say(f"no runs in {root}")
        return
    head = ("run", "state", "done", "used", "sent", "lost", "created")
    for line in table(head, [_row(info) for info in found], right=("done", "used", "sent", "lost")):
        say(line)


@app.command("show")
def show(run: Annotated[Path, typer.Argument(help="A run directory.")], *, json: Json = False) -> None:
    """Describe one run or group of runs; exit code 1 when it is damaged."""
    from zomirror.runs import inspect

    info = inspect(run)
    if json:
        say_json(_plain(info))
    else:
        _tell(info)
    if info.state == "damaged":
        raise typer.Exit(1)


@app.command("resume")
def resume(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run directory that --run-dir made.")],
    *,
    json: Json = False,
) -> None:
    """Give the command again that began a run, from the directory in which it was given; it goes on where it was."""
    words = words_of(run)
    if not json:
        warn(f"resuming: {shown(words)}")
    root = context.find_root().command
    root.main([*words, *(["--json"] if json else [])], prog_name="zomirror", standalone_mode=True)


def _row(info: RunInfo) -> tuple[str, ...]:
    done = "" if info.progress is None else f"{info.progress:.0%}"
    counts = (f"{n:,}" for n in (info.used, info.sent, info.lost))
    return (info.path.name, info.state, done, *counts, info.created)


def _tell(info: RunInfo) -> None:
    say(
        f"{info.path}: {info.kind}, {info.state}" + (f", {info.progress:.0%} done" if info.progress is not None else "")
    )
    say(f"queries: {info.used:,} used, {info.sent:,} sent, {info.lost:,} lost, in {info.sessions} sessions")
    say(f"created {info.created} by zomirror {info.version}")
    if info.owner:
        say(f"owner: {info.owner}")
    for text in info.damage:
        say(f"damage: {text}")
    for name, value in (info.configuration or {}).items():
        say(f"  {name} = {value}")
    if info.members:
        head = ("run", "state", "done", "used", "sent", "lost", "created")
        for line in table(head, [_row(one) for one in info.members], right=("done", "used", "sent", "lost")):
            say(line)


def _plain(info: RunInfo) -> dict[str, Any]:
    found = asdict(info)
    found["path"], found["members"] = str(info.path), [_plain(one) for one in info.members]
    return found
