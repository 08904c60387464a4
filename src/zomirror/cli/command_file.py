"""The command of a durable run, kept beside it, so that `zomirror runs resume` can give it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from zomirror.engine.interrupt import stop_on_signal
from zomirror.errors import ArgumentError, DataError, RunError
from zomirror.runs.configuration import COMMAND as NAME

FORMAT = "zomirror command 1"
RESUMABLE = ("attack", "explain", "minimize")
MAX_BYTES = 1 << 20


def write_command(run_dir: Path | None, words: Sequence[str]) -> None:
    """Keep the command in the directory of its run, which is made if need be."""
    if run_dir is None:
        return
    run_dir.mkdir(parents=True, exist_ok=True)
    if (foreign := sorted(path.name for path in run_dir.iterdir())) and not (run_dir / NAME).exists():
        raise RunError(
            f"directory {str(run_dir)!r} holds other files ({', '.join(foreign[:3])}): use an empty --run-dir"
        )
    temporary = run_dir / f".{NAME}.tmp"
    temporary.write_text(json.dumps({"format": FORMAT, "words": list(words)}), encoding="utf-8")
    temporary.replace(run_dir / NAME)


class Stopped(BaseException):
    """A signal ended a durable run cleanly; not an Exception, so that nobody takes it for a failure of a model."""

    def __init__(self, number: int, run_dir: Path) -> None:
        super().__init__(number)
        self.number, self.run_dir = number, run_dir


@contextmanager
def stoppable(run_dir: Path | None) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM end a durable run after its batch in flight; then raise Stopped."""
    if run_dir is None:
        yield
        return
    with stop_on_signal() as stop:
        yield
    if stop.requested is not None:
        raise Stopped(stop.requested, run_dir)


def words_of(run_dir: Path) -> list[str]:
    """The command that began the run, with this directory as its --run-dir."""
    path = run_dir / NAME
    if not run_dir.is_dir():
        raise ArgumentError(f"expected a run directory, got {str(run_dir)!r}, which does not exist")
    if not path.is_file():
        raise DataError(f"{run_dir} does not say which command began it: give the same command again, with --run-dir")
    if path.stat().st_size > MAX_BYTES:
        raise DataError(f"{path}: expected at most {MAX_BYTES:,} bytes, got {path.stat().st_size:,}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected JSON, got something else") from error
    words = document.get("words") if isinstance(document, dict) and document.get("format") == FORMAT else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or words[:1] == []:
        raise DataError(f"{path}: expected a command of zomirror, got something else")
    if words[0] not in RESUMABLE:
        raise DataError(f"{path}: expected a command that can be resumed, got {words[0]!r}")
    return [*words, "--run-dir", str(run_dir)]


def shown(words: Sequence[str]) -> str:
    """The command as it is typed."""
    return shlex.join(["zomirror", *words])
