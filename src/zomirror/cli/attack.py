"""`zomirror attack [MODEL] INPUT...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zomirror.cli.arguments import SearchOptions, takes_search_options
from zomirror.cli.show import say

if TYPE_CHECKING:
    from zomirror.contrast import Explanation


@takes_search_options(l1=0.01, l2=0.0, out=Path("attacks"))
def attack(context: typer.Context, typed: SearchOptions) -> None:
    """Find the sparsest change of an input that gives it another class."""
    from zomirror.cli.search_command import SearchCommand  # imported late: --help needs none of it

    SearchCommand.of(context, typed, {}).run(("attack",), _tell)


def _tell(name: str, found: list[Explanation], pictures: list[Path]) -> None:
    """Print the attack in words and where its picture is."""
    say(f"{name}: {found[0].words()}")
    say(f"  l1 {found[0].l1_norm:.4g}, {found[0].nfev:,} queries: {pictures[0]}")
