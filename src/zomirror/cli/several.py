"""Several explanations or attacks by several workers, given out in the order they were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zomirror.cli.asked import Asked
from zomirror.cli.inputs import Input
from zomirror.engine.interrupt import stop_on_signal
from zomirror.parallel import spread

Wanted = tuple[Input, str, Path | None]
"""An input, what is wanted of it (PP, PN or attack), and the directory of its run."""


@dataclass(frozen=True, slots=True, eq=False)
class One:
    """Answers for one input, in whatever process it is called."""

    asked: Asked

    def __call__(self, wanted: Wanted) -> Any:
        """The Explanation or the Attack."""
        given, kind, place = wanted
        return self.asked.answer(given, kind, show=False, run_dir=place, look=lambda: None)


def answered(
    asked: Asked, wanted: Sequence[Wanted], workers: Any, *, show: bool, look: Callable[[], None]
) -> Iterator[Any]:
    """One after the other; those of a signal that came in between are missing at the end."""
    if workers in (None, 1):
        for given, kind, place in wanted:
            yield asked.answer(given, kind, show=show, run_dir=place, look=look)
        return
    durable = any(place is not None for _, _, place in wanted)
    early: dict[int, Any] = {}
    done = 0
    with stop_on_signal() as signalled:
        for i, one in spread(One(asked), wanted, workers=workers, again=durable, stop=lambda: bool(signalled)):
            look()
            if isinstance(one, Exception):
                raise one
            early[i] = one
            while done in early:
                yield early.pop(done)
                done += 1
