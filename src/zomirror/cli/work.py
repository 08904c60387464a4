"""What `zomirror explain` and `zomirror attack` have in common: from what was typed to files and an exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import typer

from zomirror.cli.again import Kept, stoppable
from zomirror.cli.asked import Asked
from zomirror.cli.inputs import Input, model_and_inputs, read_inputs
from zomirror.cli.model import Access, load_model
from zomirror.cli.options import numbers, pair, repeated, shape_of
from zomirror.cli.saved import Saved
from zomirror.cli.show import say, say_json, warn

T = TypeVar("T")
ONCE = ("model", "inputs", "run_dir", "json", "quiet")
"""What is not repeated among the options of a command that is given again."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The model and the options, the inputs, and where everything goes."""

    asked: Asked
    inputs: list[Input]
    saved: Saved
    kept: Kept
    run_dir: Path | None

    def place(self, name: str) -> Path | None:
        """The directory of one of its runs."""
        return self.run_dir / name if self.run_dir else None

    @contextmanager
    def under_way(self, count: int, found: Sequence[object]) -> Iterator[None]:
        """Ctrl-C ends a durable run cleanly; where fewer than `count` were `found`, it says where those are."""
        try:
            with stoppable(self.run_dir):
                yield
        finally:
            self.kept.write()
            if len(found) < count and self.saved.files:
                warn(f"{len(self.saved.files)} files of what was done are in {self.saved.folder}")

    def end(self, found: Sequence[T], summary: Callable[[T], dict[str, Any]], *, good: bool, json: bool) -> None:
        """The last line, or all of it as JSON; not `good`: exit code 1."""
        if json:
            say_json([summary(one) for one in found])
        else:
            folder = self.saved.folder
            say(f"pictures and .json files are in {folder}; a page of them: zomirror report {folder}")
        if not good:
            raise typer.Exit(1)

    def where(self, one: Any, settings: dict[str, Any]) -> dict[str, str]:
        """The files of one answer, and the command that repeats it."""
        text, picture = self.saved.of(one)
        return {"file": str(text), "picture": str(picture), "command": settings["command"]}


def begin(
    context: typer.Context,
    given: list[str],
    options: dict[str, Any],
    access: Access,
    *,
    seed: int,
    bounds: str | None,
    mean: str | None,
    std: str | None,
    class_names: str | None,
    shape: str | None,
    drop: list[str] | None,
    run_dir: Path | None,
    out: Path,
    baseline: float | None = None,
    signed: bool = True,
    each: Sequence[str] = (),
) -> Work:
    """Everything that was typed, read and checked; options named in `each` differ between the answers."""
    first, texts = model_and_inputs(given)
    model = load_model(first, access)
    asked = Asked(
        model,
        options,
        seed=seed,
        bounds=pair("--bounds", bounds),
        baseline=baseline,
        signed=signed,
        mean=numbers("--mean", mean) or model.mean,
        std=numbers("--std", std) or model.std,
        class_names=tuple(class_names.split(",")) if class_names else None,
        repeat=repeated(context, without=(*ONCE, *each, "seed", "out")),
    )
    inputs = read_inputs(texts, shape=shape_of(shape) or model.shape, drop=tuple(drop or ()))
    command = [str(context.info_name), model.name, *texts, *repeated(context, without=ONCE)]
    return Work(asked, inputs, Saved(out), Kept(run_dir, command), run_dir)
