"""Thin: a valid point made smaller on the features that it uses, most of which it can do without.

Around the least F lies a flat valley: a feature that is changed by little adds little, of an l2 penalty only the square
of its change, and descents leave many of those. Here the faintest are set to zero and the others make up for them, as
a linear model of the scores on the features in use says. There are few of those, so that a model costs few queries and
can be made anew wherever F has fallen.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.search.linear_model import Linear
from zomirror.contrast.search.local_refinement import Pull, along, bounded, correction, steps_within
from zomirror.numerics.arrays import Array, Indices
from zomirror.problem import Box

Vector = NDArray[np.float64]
Asking = Generator[list[Array], Vector, Candidate]
"""Yields points, is sent their scores (n, classes), returns the best."""

PARTS = (0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
"""Which parts of the features in use are tried without the others; one less than all is tried too."""
RADII = (0.3, 0.1, 0.03)
"""How far those that are kept may go to make up for the others, in units of a feature's range."""
STEP = 0.02
"""The difference step, in the same units."""
GAIN = 0.001
"""A round that gains a smaller part of F, and no feature, is the last."""


def thin(best: Candidate, goal: Goal, box: Box, pull: Pull, allowed: int, *, step: float | None = None) -> Asking:
    """The best point found with the features of the valid `best` or fewer, with at most `allowed` more queries.

    `step` is how far to look for a change of the scores, where they jump.
    """
    lower, upper = (np.broadcast_to(side, best.w.shape).astype(np.float64) for side in (box.lower, box.upper))
    left = allowed - 1
    if left <= 0:
        return best
    scores = bounded((yield [best.w]))[0]
    while True:
        used = np.flatnonzero((best.w != 0) & (lower < upper))
        counts = np.unique([used.size - 1, *(int(part * used.size) for part in PARTS)])
        counts = counts[counts > 0]
        if counts.size == 0 or left < used.size + 2 * counts.size * len(RADII):
            return best
        w, sides = best.w[used].astype(np.float64), (lower[used], upper[used])
        lengths = steps_within(w, *sides, size=STEP if step is None else step)
        slopes = (bounded((yield along(best.w, used, lengths))) - scores).T / lengths
        left -= used.size
        if not np.isfinite(slopes).all():
            return best
        order = np.argsort(-np.abs(w), kind="stable")
        kept = [np.sort(order[:count]) for count in counts for _ in RADII]
        radii = np.tile(RADII, counts.size)
        problems = [
            _problem(w, scores, slopes, sides, goal, pull, features, radius)
            for features, radius in zip(kept, radii, strict=True)
        ]
        before, missed = best, np.zeros(len(problems))
        for _ in range(2):  # what the model did not foresee of the margin is known the second time
            points = []
            for features, problem, miss in zip(kept, problems, missed, strict=True):
                point = before.w.copy()
                point[used] = 0
                point[used[features]] = replace(problem, kappa=problem.kappa + miss).solve().astype(point.dtype)
                points.append(box.project(point))
            reply = bounded((yield points))
            left -= len(points)
            margins = pull.margins(reply)
            for point, margin, row in zip(points, margins, reply, strict=True):
                candidate = goal.candidate(point, float(margin))
                if candidate.valid and candidate.better_than(best):
                    best, scores = candidate, row
            missed = correction(margins + goal.kappa)
        fewer = np.count_nonzero(best.w) < np.count_nonzero(before.w)
        if best is before or not (fewer or best.fun < before.fun - GAIN * abs(before.fun)):
            return best


def _problem(
    w: Vector,
    scores: Vector,
    slopes: Vector,
    box: tuple[Vector, Vector],
    goal: Goal,
    pull: Pull,
    kept: Indices,
    radius: float,
) -> Linear:
    """The penalised problem of the linear model around `w`, for the kept features, the others being zero."""
    rivals, sign = pull.rivals(scores)[0], 1.0 if pull.kept else -1.0
    A = sign * (slopes[rivals] - slopes[pull.own])
    b = sign * (scores[rivals] - scores[pull.own]) - A @ w
    # Valid means strictly beyond the boundary, by more than the scores' own rounding.
    kappa = goal.kappa + 1e-6 * (1.0 + float(np.abs(scores).max()))
    lower, upper = np.maximum(box[0], w - radius), np.minimum(box[1], w + radius)
    return Linear(A[:, kept], b, lower[kept], upper[kept], goal.penalty, kappa)
