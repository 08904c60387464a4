"""`zomirror runs list|show|resume`, and the command that a run directory stores so that it can be resumed."""

from __future__ import annotations

import json as json_text
import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zomirror.cli.arguments import Json
from zomirror.cli.show import say, say_json, table, warn
from zomirror.errors import ArgumentError, DataError, RunError

if TYPE_CHECKING:
    from zomirror.runs import RunInfo

FORMAT = "zomirror command 1"
RESUMABLE = ("attack", "explain", "minimize")
MAX_BYTES = 1 << 20
app = typer.Typer(no_args_is_help=True, help="List, describe and resume run directories.")


def write_command(run_dir: Path | None, words: Sequence[str], *, members: int = 1) -> None:
    """Store the command, and the number of its runs, in its run directory, which is created if needed."""
    if run_dir is None:
        return
    from zomirror.runs.configuration import COMMAND
    from zomirror.runs.folder import check_path

    run_dir = check_path(run_dir)
    if (run_dir / COMMAND).exists():
        return  # the one that began the run; this one may yet be refused
    run_dir.mkdir(parents=True, exist_ok=True)
    temporary = run_dir / f".{COMMAND}.tmp"  # a command killed here leaves it behind
    foreign = sorted(path.name for path in run_dir.iterdir() if path != temporary)
    if foreign:
        raise RunError(
            f"directory {str(run_dir)!r} holds other files ({', '.join(foreign[:3])}): use an empty --run-dir"
        )
    document = {"format": FORMAT, "words": list(words), "members": members}
    temporary.write_text(json_text.dumps(document), encoding="utf-8")
    temporary.replace(run_dir / COMMAND)


class StoppedRun(BaseException):
    """A signal stopped a durable run; a BaseException, so that no handler takes it for an error of the model."""

    def __init__(self, number: int, run_dir: Path) -> None:
        super().__init__(number)
        self.number, self.run_dir = number, run_dir


@contextmanager
def stoppable(run_dir: Path | None) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM stop a durable run after the current batch; then raise StoppedRun.

    Without a run directory it is Ctrl-C alone, which is raised after the batch.
    """
    from zomirror.engine.interrupt import stop_on_signal

    if run_dir is None:
        with stop_on_signal((signal.SIGINT,)) as stop:
            yield
        if stop.requested is not None:
            raise KeyboardInterrupt
        return
    with stop_on_signal() as stop:
        yield
    if stop.requested is not None:
        raise StoppedRun(stop.requested, run_dir)


def words_of(run_dir: Path) -> list[str]:
    """The command that started the run, with this directory as its --run-dir."""
    from zomirror.runs.configuration import COMMAND

    path = run_dir / COMMAND
    if not run_dir.is_dir():
        raise ArgumentError(f"expected a run directory, got {str(run_dir)!r}, which does not exist")
    if not path.is_file():
        raise DataError(f"{run_dir} does not store the command that started it: repeat that command with --run-dir")
    if path.stat().st_size > MAX_BYTES:
        raise DataError(f"{path}: expected at most {MAX_BYTES:,} bytes, got {path.stat().st_size:,}")
    try:
        document = json_text.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected JSON, got other text") from error
    words = document.get("words") if isinstance(document, dict) and document.get("format") == FORMAT else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or not words:
        raise DataError(f"{path}: expected a command of zomirror, got other JSON")
    if words[0] not in RESUMABLE:
        raise DataError(f"{path}: expected a command that can be resumed, got {words[0]!r}")
    return [*words, "--run-dir", str(run_dir)]


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
    _tell_table(found)


@app.command("show")
def show(run: Annotated[Path, typer.Argument(help="A run directory.")], *, json: Json = False) -> None:
    """Describe one run or group of runs; exit code 1 if it is damaged."""
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
    run: Annotated[Path, typer.Argument(help="The --run-dir of the command to resume.")],
    *,
    json: Json = False,
) -> None:
    """Repeat the command that started a run, which resumes it; call it from the same directory."""
    words = words_of(run)
    if not json:
        warn(f"resuming: {shlex.join(['zomirror', *words])}")
    root = context.find_root().command
    root.main([*words, *(["--json"] if json else [])], prog_name="zomirror", standalone_mode=True)


def _tell_table(runs: Sequence[RunInfo]) -> None:
    head = ("run", "state", "done", "used", "sent", "lost", "created")
    for line in table(head, [_row(info) for info in runs], right=("done", "used", "sent", "lost")):
        say(line)


def _row(info: RunInfo) -> tuple[str, ...]:
    done = "" if info.progress is None else f"{info.progress:.0%}"
    counts = (f"{n:,}" for n in (info.used, info.sent, info.lost))
    return (info.path.name, info.state, done, *counts, info.created)


def _tell(info: RunInfo) -> None:
    say(
        f"{info.path}: {info.kind}, {info.state}" + (f", {info.progress:.0%} done" if info.progress is not None else "")
    )
    say(f"queries: {info.used:,} used, {info.sent:,} sent, {info.lost:,} lost, in {info.sessions} sessions")
    if info.created:
        say(f"created {info.created} by zomirror {info.version}")
    if info.owner:
        say(f"owner: {info.owner}")
    for text in info.damage:
        say(f"damage: {text}")
    for name, value in (info.configuration or {}).items():
        say(f"  {name} = {value}")
    if info.members:
        _tell_table(info.members)


def _plain(info: RunInfo) -> dict[str, Any]:
    found = asdict(info)
    found["path"], found["members"] = str(info.path), [_plain(one) for one in info.members]
    return found
