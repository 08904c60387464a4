"""What follows a descent: a point refined, then pruned and shrunk, then with as few features as do."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.progress import Progress
from zomirror.contrast.search.evaluate import ask_margins, ask_scores, driven
from zomirror.contrast.search.local_refinement import Pull, refine
from zomirror.contrast.search.prune import thin
from zomirror.contrast.search.range_search import reach
from zomirror.contrast.search.shrink import polish
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request

FINISH_SHARE = 0.25
"""The part of the queries that the descent leaves for refining, pruning and shrinking."""
POLISH_SHARE = 0.1
"""The part of that which is for pruning and shrinking."""
BEYOND = 0.1
"""How far beyond the boundary to aim, as a part of the distance to it: scores that jump have a tie where the hinge is
least, and a tie is not valid."""
NEAR = 1.3
"""What is at most so many times as far above the least F, -kappa, as the best of them is pruned too, and may end below
it."""


def ended(progress: Progress, best: Candidate | None, last: int) -> Generator[Request, Answer, Candidate | None]:
    """`best` finished; while nothing at all is valid, what is left until `last` is spent on reaching something."""
    left = last - progress.used
    end = yield from thinned(progress, best, left if best is not None and best.valid else left // 2)
    nearest, left = progress.best, last - progress.used
    if nearest is None or nearest.valid or left <= 0:
        return end
    allowed = max(1, int((1 - FINISH_SHARE) * left))
    reached = reach(nearest, progress.goal, progress.place.box, allowed, progress.seed)
    nearest = yield from driven(progress, reached, ask_margins)
    return (yield from thinned(progress, nearest, last - progress.used))


def thinned(
    progress: Progress, start: Candidate | None, allowed: int, goal: Goal | None = None
) -> Generator[Request, Answer, Candidate | None]:
    """`start` finished and then, once it is valid, with as few features as do."""
    last = progress.used + min(allowed, progress.left)
    end = yield from finish(progress, start, allowed, goal=goal)
    if end is None or not end.valid:
        return end
    return (yield from pruned(progress, end, last - progress.used, goal))


def pruned(
    progress: Progress, end: Candidate, allowed: int, goal: Goal | None = None
) -> Generator[Request, Answer, Candidate]:
    """The valid `end` with as few features as do."""
    box, step = progress.place.box, progress.radius
    thinner = thin(end, progress.goal if goal is None else goal, box, pull_of(progress), allowed, step=step)
    return (yield from driven(progress, thinner, ask_scores))


def finish(
    progress: Progress,
    start: Candidate | None,
    allowed: int,
    slopes: NDArray[np.float64] | None = None,
    goal: Goal | None = None,
    bar: float = np.inf,
    unless_valid: int | None = None,
) -> Generator[Request, Answer, Candidate | None]:
    """`start` refined and then, once it is valid, pruned and shrunk; `goal` if it is not the search's.

    Refining ends where it falls behind the `bar`, or after `unless_valid` queries without a valid point, and what is
    left far above the `bar` is not pruned.
    """
    if start is None:
        return None
    end, box, last = start, progress.place.box, progress.used + min(allowed, progress.left)
    goal = progress.goal if goal is None else goal
    if (rows := last - progress.used - int(POLISH_SHARE * allowed)) > 1:
        beyond = BEYOND * progress.distance
        pull, step = pull_of(progress), progress.radius
        refined = refine(
            end, goal, box, pull, rows, step=step, beyond=beyond, slopes=slopes, bar=bar, unless_valid=unless_valid
        )
        end = yield from driven(progress, refined, ask_scores)
    if end.valid and last > progress.used and near(goal, end.fun, bar):
        end = yield from driven(progress, polish(end, goal, box, last - progress.used), ask_margins)
    return end


def near(goal: Goal, fun: float, best: float) -> bool:
    """Whether F is not much further than the best above the least that it can be, -kappa."""
    return fun + goal.kappa <= NEAR * (best + goal.kappa)


def pull_of(progress: Progress) -> Pull:
    """What is wanted of which class."""
    target, label = progress.options.target, progress.label
    if progress.place.kind == "PP":
        return Pull(label, kept=True)
    return Pull(label, kept=False) if target is None else Pull(target, kept=True)
