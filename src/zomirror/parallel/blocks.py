"""A slow function whose batches are split over workers, in blocks that only the configuration decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import positive_integer
from zomirror.engine.black_box import call
from zomirror.errors import ArgumentError
from zomirror.numerics.arrays import Array
from zomirror.parallel.team import Team

Block = tuple[Array, NDArray[np.int64] | None]


def split(
    fun: Callable[..., Any], workers: Any, block_rows: int | None, *, vectorized: bool
) -> tuple[Team, Callable[..., Any], bool]:
    """A team, the function it is asked through, and whether that takes many rows; `fun` itself without workers."""
    team = Team(workers)
    rows = 1 if block_rows is None else positive_integer("block_rows", block_rows)
    if workers is None and block_rows is None:
        return team, fun, vectorized
    return team, Split(fun, team, rows, vectorized=vectorized), True


class Split:
    """`fun`, asked in blocks of `rows` rows by the workers of a team; rows in the order they were given."""

    def __init__(self, fun: Callable[..., Any], team: Team, rows: int, *, vectorized: bool) -> None:
        self._ask = _Ask(fun, vectorized)
        self._team = team
        self._rows = rows

    def __call__(self, points: Array, samples: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """The values of the points, one a row; the first failure, in the order of the rows, is raised."""
        cuts = [slice(i, i + self._rows) for i in range(0, len(points), self._rows)]
        blocks = [(points[cut], None if samples is None else samples[cut]) for cut in cuts]
        answers = dict(self._team.spread(self._ask, blocks))  # all of them: each was sent
        parts = []
        for i, block in enumerate(blocks):
            answer = answers[i]
            if isinstance(answer, Exception):
                raise answer
            if np.ndim(answer) == 0 or len(answer) != len(block[0]):
                raise ArgumentError(
                    f"expected values of shape ({len(block[0])},), got {np.shape(answer)}: return one number per row"
                )
            parts.append(np.asarray(answer))
        return np.concatenate(parts)


@dataclass(frozen=True, slots=True, eq=False)
class _Ask:
    """Asks one block, in whatever process it is called."""

    fun: Callable[..., Any]
    vectorized: bool

    def __call__(self, block: Block) -> Any:
        points, samples = block
        points.flags.writeable = False  # a pickle has forgotten it
        return call(self.fun, points, samples, vectorized=self.vectorized)
