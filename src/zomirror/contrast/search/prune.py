"""Prune a valid point: set its smallest features to zero and adjust the others to stay valid.

F is flat around its minimum, since a small change of a feature costs little, and its square under an l2 penalty; so
descents leave many small features. Here the smallest are set to zero, and a linear model of the scores on the
remaining ones says how to compensate. Few features are in use, so a model costs few queries and is rebuilt whenever F
has decreased.
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
from zomirror.numerics.linear import inner
from zomirror.problem import Box

Vector = NDArray[np.float64]
Asking = Generator[list[Array], Vector, Candidate]
"""Yields points, is sent their scores (n, classes), returns the best."""

PARTS = (0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
"""Fractions of the features in use that are kept, each tried; all but one feature is tried too."""
RADII = (0.3, 0.1, 0.03)
"""Trust-region radii for the kept features, in units of a feature's range."""
STEP = 0.02
"""The finite-difference step, in units of a feature's range."""
GAIN = 0.001
"""Stop after a round that removes no feature and lowers F by less than 0.1 %."""


def thin(best: Candidate, goal: Goal, box: Box, pull: Pull, allowed: int, *, step: float | None = None) -> Asking:
    """The best point found on the features of the valid `best`, with at most `allowed` more queries.

    `step` is the finite-difference step for piecewise constant scores (trees).
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
        for _ in range(2):  # the second round corrects for the model's error in the margin
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
    """The penalised problem of the linear model around `w` on the `kept` features, with the others zero."""
    rivals, sign = pull.rivals(scores)[0], 1.0 if pull.kept else -1.0
    A = sign * (slopes[rivals] - slopes[pull.own])
    b = sign * (scores[rivals] - scores[pull.own]) - inner(A, w[None])[:, 0]
    # Aim strictly beyond the boundary, by more than the rounding error of the scores.
    kappa = goal.kappa + 1e-6 * (1.0 + float(np.abs(scores).max()))
    lower, upper = np.maximum(box[0], w - radius), np.minimum(box[1], w + radius)
    return Linear(A[:, kept], b, lower[kept], upper[kept], goal.penalty, kappa)
