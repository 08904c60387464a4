"""`zomirror explain [MODEL] INPUT...`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zomirror.cli.arguments import ARRAYS, SEARCH, TABLES, SearchOptions, said, takes_search_options
from zomirror.cli.show import say
from zomirror.errors import ArgumentError

if TYPE_CHECKING:
    from zomirror.contrast import Explanation


class KindChoice(StrEnum):
    """The kinds of explanation."""

    PP = "PP"
    PN = "PN"
    BOTH = "both"


class LossChoice(StrEnum):
    """The losses that a search can minimise."""

    HINGE = "hinge"
    SOFTPLUS = "softplus"


@takes_search_options(l1=0.1, l2=None, out=Path("explanations"))
def explain(
    context: typer.Context,
    typed: SearchOptions,
    *,
    kind: Annotated[
        KindChoice,
        typer.Option(help=said("kind"), case_sensitive=False),
    ] = KindChoice.BOTH,
    baseline: Annotated[
        float | None,
        typer.Option(
            help="The value of an absent feature. Default 0; for a .csv the mean of each column.",
            rich_help_panel=ARRAYS,
        ),
    ] = None,
    signed: Annotated[
        bool,
        typer.Option("--signed", help=f"{said('signed')} For a .csv it always may.", rich_help_panel=ARRAYS),
    ] = False,
    loss: Annotated[LossChoice, typer.Option(help=said("loss"), rich_help_panel=SEARCH)] = LossChoice.HINGE,
    answers: Annotated[
        int,
        typer.Option(min=1, help=said("answers"), rich_help_panel=TABLES),
    ] = 1,
    search: Annotated[
        int,
        typer.Option(help=said("search"), rich_help_panel=SEARCH),
    ] = 0,
) -> None:
    """Find the few features that decide a model's answer: a part that keeps the class, a change that gives another."""
    if typed.target is not None and kind is not KindChoice.PN:
        raise ArgumentError("expected --kind PN with --target: a PP keeps the class")
    from zomirror.cli.search_command import SearchCommand  # imported late: --help needs none of it

    kinds = ("PP", "PN") if kind is KindChoice.BOTH else (kind.value,)
    settings = {"loss": loss.value, "search": search}
    SearchCommand.of(context, typed, settings, baseline=baseline, signed=signed, answers=answers).run(kinds, _tell)


def _tell(name: str, found: list[Explanation], pictures: list[Path]) -> None:
    """Print the answer in words, and a line for each explanation."""
    from zomirror.contrast.sentence import answer
    from zomirror.drawing.marked_parts import counted_of, is_text, marked

    say(f"{name}: {answer(found)}.")
    for one in found:
        if is_text(one) and one.valid:
            say(f"  {one.kind}  {''.join(f'«{words}»' if mark else words for words, mark in marked(one))}")
    for one, picture in zip(found, pictures, strict=True):
        valid = "valid" if one.valid else "not valid"
        columns = f"{one.nnz} column{'' if one.nnz == 1 else 's'}"
        size = columns if one.space == "table" else counted_of(one)
        counts = f"{size}, F {one.objective:.4g}, {one.nfev:,} queries"
        say(f"  {one.kind}  {valid}, {counts}: {picture}")
