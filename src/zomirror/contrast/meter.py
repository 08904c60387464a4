"""The progress line of a search: objective, best valid F, queries used, queries per second, time left."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

DELAY = 1.0
"""Seconds after which the line appears: a shorter search shows none."""
BAR = 16
"""Width of the bar in columns; it is left out in narrow windows."""


class Meter:
    """The progress of a search, drawn to fit the window."""

    def __init__(self, what: str, budget: int) -> None:
        self.what, self.budget = what, budget
        self.used, self.objective, self.best = 0, math.nan, math.nan
        self._began = time.monotonic()
        self.live: Live | None = None
        self.later: Live | None = None
        """The line that appears after DELAY; None if none will."""

    def update(self, used: int, objective: float, best: float = math.nan) -> None:
        """Set the queries used so far, F at the iterate, and F at the best valid point."""
        self.used, self.objective, self.best = used, objective, best
        if self.later is not None and time.monotonic() - self._began > DELAY:
            self.live, self.later = self.later, None
            self.live.start()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line while something else is printed."""
        if self.live is not None:
            self.live.stop()
        yield
        if self.live is not None:
            self.live.start()

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """The longest line that fits."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        lines = self.lines()
        if options.max_width > len(lines[0]) + BAR:
            grid = Table.grid(padding=(0, 1))
            grid.add_row(Text(lines[0]), ProgressBar(self.budget, self.used, width=BAR))
            yield grid
        else:
            fitting = (line for line in lines if len(line) < options.max_width)
            yield Text(next(fitting, lines[-1]), no_wrap=True, overflow="crop")

    def lines(self) -> list[str]:
        """The line in several lengths, longest first."""
        rate = self.used / max(time.monotonic() - self._began, 1e-9)
        left = f"{math.ceil((self.budget - self.used) / rate):,} s left" if rate else ""
        reached = [f"F {self.objective:.4g}"] if math.isfinite(self.objective) else []
        reached += [f"best valid {self.best:.4g}"] if math.isfinite(self.best) else []
        counted = f"{self.used:,} of {self.budget:,} queries"
        speed = [f"{rate:,.0f}/s"] if rate else []
        some = [
            [self.what, *reached, counted, *speed, left],
            [self.what, *reached, f"{self.used:,}/{self.budget:,}", left],
            [*reached, f"{self.used:,}/{self.budget:,}", left],
            [*reached, f"{self.used:,}/{self.budget:,}"],
            [*reached[-1:], f"{self.used:,}/{self.budget:,}"],
            [f"{self.used / max(1, self.budget):.0%}"],
        ]
        return [", ".join(filter(None, parts)) for parts in some]


@contextmanager
def meter(what: str, budget: int, *, show: bool | None = None) -> Iterator[Meter]:
    """A progress line on standard error, removed at the end.

    `show` None: only on a terminal, when it takes longer than DELAY; True: always.
    """
    told = Meter(what, budget)
    if show is False or (show is None and not sys.stderr.isatty()):
        yield told
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if not show and (not console.is_terminal or console.is_dumb_terminal):
        yield told
        return
    line = Live(told, console=console, transient=True, refresh_per_second=8)
    if show:
        told.live = line
        line.start()
    else:
        told.later = line
    try:
        yield told
    finally:
        if told.live is not None:
            told.live.stop()
