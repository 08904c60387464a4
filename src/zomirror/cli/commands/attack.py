"""`zomirror attack [MODEL] INPUT...`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zomirror.cli.arguments import SEARCH, SearchOptions, takes_search_options
from zomirror.cli.show import say

if TYPE_CHECKING:
    from zomirror.contrast import Explanation


@takes_search_options(l1=0.01, l2=0.0, out=Path("attacks"))
def attack(
    context: typer.Context,
    typed: SearchOptions,
    *,
    l0: Annotated[
        str | None,
        typer.Option(
            help='The largest number of pixels that may change, or "least" for as few as possible.',
            metavar="N|least",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    label_only: Annotated[
        bool, typer.Option("--label-only", help="Use only the class, not the scores.", rich_help_panel=SEARCH)
    ] = False,
) -> None:
    """Find the nearest or the sparsest change of an input that gives it another class."""
    from zomirror.cli.search_command import SearchCommand  # imported late: --help needs none of it

    begun = time.monotonic()

    def tell(name: str, found: list[Explanation], pictures: list[Path]) -> None:
        """Print the attack in words, its size, the queries, the seconds since the command began, and the picture."""
        one = found[0]
        sizes = f"l1 {one.l1_norm:.4g}, l0 {one.pixels:,}, {one.nfev:,} queries, {time.monotonic() - begun:.1f} s"
        say(f"{name}: {one.words()}")
        say(f"  {sizes}: {pictures[0]}")

    given: dict[str, Any] = {} if l0 is None else {"l0": int(l0) if l0.isdecimal() else l0}
    SearchCommand.of(context, typed, given | ({"scores": "label"} if label_only else {})).run(("attack",), tell)
