"""The margin that kappa=None asks for: what survives rounding to 8 bits and a noise of 0.001 of each feature's range.

Both move the margin by a random amount whose size is the length of its slope times that of the noise. So the margin is
queried at points around x0 whose features are moved by a little more than that, and the spread of the answers is taken.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zomirror.contrast.progress import Progress
from zomirror.contrast.search.evaluate import ask_scores
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request
from zomirror.features.vector import VectorPlace
from zomirror.numerics.arrays import Array
from zomirror.numerics.random import Draws, key_of

FEWEST, PROBES, SHARE = 4, 24, 20
"""Points around x0: 24, which tell the spread of the margin to 15 %; of a small budget a twentieth, at least 4."""
MOVED = 0.004
"""Features are moved by 0 or 0.004 of their range at random: a standard deviation of 0.002."""
TIMES = 1.75
"""The margin in units of that spread: 0.0035 times the length of the slope."""


def ask_safe_margin(
    progress: Progress, around: Array | None = None, probes: int | None = None
) -> Generator[Request, Answer, None]:
    """Query points around x0 or another point, and ask for a margin that survives small changes; not for steps (trees).

    A margin that was asked for before is never lowered.
    """
    place = progress.place
    if progress.options.kappa is not None or progress.radius is not None or not isinstance(place, VectorPlace):
        return
    if progress.answers is not None:
        return  # the noise of the model is the larger one
    draws, inward = Draws(key_of([progress.seed, PROBES])), _inward(place)
    count = probes or min(PROBES, max(FEWEST, progress.left // SHARE))
    here = place.as_it_is if around is None else around
    points = [here + inward * (draws.signs(place.d) > 0) for _ in range(count)]
    scores = yield from ask_scores(progress, [place.box.project(point) for point in points])
    margins = progress.margins(scores)
    if np.isfinite(margins).all():
        spread = float(margins.std(ddof=1))
        goal = progress.modest = progress.modest or progress.goal
        safe = max(TIMES * spread, progress.goal.floor - goal.floor)
        progress.aim(replace(goal, kappa=max(goal.kappa, safe + goal.floor), floor=goal.floor + safe))


def _inward(place: VectorPlace) -> Array:
    """A small step of each feature into the decision set."""
    here = place.as_it_is
    moved = MOVED if place.within is None else MOVED * (place.within[1] - place.within[0])
    upwards, downwards = (np.minimum(moved, side) for side in (place.box.upper - here, here - place.box.lower))
    return np.where(upwards >= downwards, upwards, -downwards).astype(here.dtype)
