"""Refine a point near the boundary by a trust-region method with linear models of the scores.

A descent on a hinge zigzags about its kink. Here finite differences along each feature give a linear model of every
score. The penalised problem of that model is solved exactly within several trust regions, and the solutions are
queried. Each is then solved again with the margin corrected by the model's error. The next model is built at the best
point. The first model has all features; later ones have the features in use and the most promising others.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.loss import change_margin, keep_margin
from zomirror.contrast.search.linear_model import Linear
from zomirror.numerics.arrays import Array, Indices
from zomirror.numerics.linear import inner
from zomirror.problem import Box, ElasticNet

Vector = NDArray[np.float64]
Asking = Generator[list[Array], Vector, Candidate]
"""Yields points, is sent their scores (n, classes), returns the best."""

STEP = 0.05
"""The largest finite-difference step, in units of a feature's range."""
REGIONS = ((1.0, 1.5), (0.4, 1.0), (0.1, 0.4))
"""Each trust region as a fraction of the radius, and the factor of the radius if that region gives the best point."""
AIMS = 3
"""Each region is solved and queried 3 times; the second and third correct for the model's error in the margin."""
SLACKS = (0.03, 0.2)
"""With rough slopes and nothing valid, the second and third solutions are aimed 3 % and 20 % of the predicted change
further."""
CORRECTION = 1.1
"""A solution that missed the boundary by m is next aimed 1.1 m further; one that overshot by m, m / 1.1 less far."""
RIVALS, FACETS = 3, 8
"""Contrast classes tried one at a time (PN), and rival classes in one problem (PP)."""
PROMISING = 100
"""Features queried for a later model besides those in use."""
AGAIN = 0.1
"""All features are queried a second time only if that costs at most 10 % of the allowed queries."""
FIRST_RADIUS, AGAIN_RADIUS, LAST_RADIUS, SHRINKING = 0.5, 0.1, 0.008, 0.3
"""Trust-region radius of the first model, the least one of every later model, the one below which a model is given up,
and its factor after a failed step; radii are in units of a feature's range."""
GAIN = 0.004
"""A step counts as progress if it lowers F by at least 0.4 %."""
PATIENCE = 2
"""Give up if reaching the bar would take more than 2 further steps like the last."""
FAR = 1e9
"""Scores are clipped to +-1e9, so that differences of infinite ones are finite."""
RESCUE = 0.02
"""While nothing is valid, the penalty is multiplied by 0.02."""


@dataclass(frozen=True, slots=True)
class Pull:
    """The class `own`, and whether it must win (`kept`) or lose."""

    own: int
    kept: bool

    def margins(self, scores: Vector) -> Vector:
        """The margin of each row: negative where that is so."""
        margins = keep_margin(scores, self.own) if self.kept else change_margin(scores, self.own)
        return margins.astype(np.float64)

    def rivals(self, scores: Vector) -> list[list[int]]:
        """The rival classes of each linear problem: all in one to win against, one at a time to lose against."""
        order = [int(i) for i in np.argsort(-scores, kind="stable") if i != self.own]
        return [order[:FACETS]] if self.kept else [[rival] for rival in order[:RIVALS]]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The linear problem of one trust region, and the factor of the radius if it gives the best point."""

    problem: Linear
    growth: float


@dataclass(frozen=True, slots=True, eq=False)
class LinearScores:
    """scores + slopes (v - w) as a function of some features of v; the others keep their values in w."""

    w: Vector
    features: Indices
    scores: Vector
    slopes: Vector

    def regions(self, goal: Goal, box: tuple[Vector, Vector], pull: Pull, radius: float) -> list[Region]:
        """The problems to solve within the radius."""
        at, sign, found = self.w[self.features], 1.0 if pull.kept else -1.0, []
        # Aim strictly beyond the boundary, by more than the rounding error of the scores.
        kappa = goal.kappa + 1e-6 * (1.0 + float(np.abs(self.scores).max()))
        for part, growth in REGIONS:
            lower, upper = np.maximum(box[0], at - part * radius), np.minimum(box[1], at + part * radius)
            for rivals in pull.rivals(self.scores):
                A = sign * (self.slopes[rivals] - self.slopes[pull.own])
                b = sign * (self.scores[rivals] - self.scores[pull.own]) - inner(A, at[None])[:, 0]
                found.append(Region(Linear(A, b, lower, upper, goal.penalty, kappa), growth))
        return found

    def answers(self, regions: Sequence[Region], further: Vector) -> list[Vector]:
        """The minimiser in each region, aimed `further` beyond the boundary."""
        problems = [replace(r.problem, kappa=r.problem.kappa + more) for r, more in zip(regions, further, strict=True)]
        return [self._whole(problem.solve()) for problem in problems]

    def changes(self, regions: Sequence[Region], answers: Sequence[Vector]) -> Vector:
        """The predicted change of the margin in each region."""
        steps = [point[self.features] - self.w[self.features] for point in answers]
        return np.array([np.abs(inner(r.problem.A, step[None])).max() for r, step in zip(regions, steps, strict=True)])

    def foreseen(self, goal: Goal, regions: Sequence[Region], answers: Sequence[Vector]) -> float:
        """The least F that the model predicts at the answers."""
        pairs = [(region.problem, point) for region, point in zip(regions, answers, strict=True)]
        margins = [float(problem.values(point[self.features]).max()) for problem, point in pairs]
        return min(goal.candidate(point, margin).fun for point, margin in zip(answers, margins, strict=True))

    def _whole(self, answer: Vector) -> Vector:
        point = self.w.copy()
        point[self.features] = answer
        return point


def refine(
    best: Candidate,
    goal: Goal,
    box: Box,
    pull: Pull,
    allowed: int,
    *,
    step: float | None = None,
    beyond: float = 0.0,
    slopes: Vector | None = None,
    bar: float = np.inf,
    unless_valid: int | None = None,
) -> Asking:
    """The best point found around `best`, with at most `allowed` more queries; `best` may be invalid.

    `step` is the finite-difference step for piecewise constant scores (trees). While nothing is valid, solutions aim
    `beyond` the boundary. With rough `slopes` (classes, d) the first model has only the features where those are
    largest. The refinement stops if at the pace of its last step F would stay above the `bar`, and builds no further
    model after `unless_valid` queries without a valid point.
    """
    lower, upper = (np.broadcast_to(side, best.w.shape).astype(np.float64) for side in (box.lower, box.upper))
    free = np.flatnonzero(lower < upper)
    rough = slopes is not None
    left, radius, whole, asked_all = allowed - 1, FIRST_RADIUS, not rough, False
    scores = bounded((yield [best.w]))[0]
    slopes = np.zeros((scores.size, best.w.size)) if slopes is None else slopes.copy()
    fewest = 0 if unless_valid is None else allowed - unless_valid
    while best.valid or left > fewest:
        features = free if whole and free.size <= left // 2 else _promising(best, free, slopes, pull, left // 2)
        asked_all = asked_all or features.size == free.size
        if features.size == 0:
            return best
        w, sides = best.w.astype(np.float64), (lower[features], upper[features])
        lengths = steps_within(w[features], *sides, size=min(STEP, radius / 2) if step is None else step)
        reply = bounded((yield along(best.w, features, lengths)))
        left -= features.size
        slopes[:, features] = (reply - scores).T / lengths
        if not np.isfinite(slopes).all():
            return best
        model, gained = LinearScores(w, features, scores, slopes[:, features]), False
        while not gained and radius >= LAST_RADIUS:  # smaller radii cost less than another model
            regions = model.regions(goal if best.valid else _rescue(goal, beyond), sides, pull, radius)
            answers, before = model.answers(regions, np.zeros(len(regions))), best
            if best.valid and model.foreseen(goal, regions, answers) > best.fun - GAIN * abs(best.fun):
                break  # there is nothing better in a smaller region either
            growth, further, straight = SHRINKING, np.zeros(len(regions)), answers
            for aim in range(AIMS):
                answers = model.answers(regions, further) if aim else answers
                points = [box.project(point.astype(best.w.dtype)) for point in answers[:left]]
                if not points:
                    return best
                reply = bounded((yield points))
                left -= len(points)
                margins = pull.margins(reply)
                for point, margin, row, region in zip(points, margins, reply, regions, strict=False):
                    candidate = goal.candidate(point, float(margin))
                    if candidate.better_than(best):
                        best, scores, growth = candidate, row, region.growth
                if aim + 1 == AIMS:
                    break
                if before.valid or not rough:
                    missed = margins + np.array([region.problem.kappa for region in regions])[: len(points)]
                    further[: len(points)] += correction(missed)
                else:  # with rough slopes a miss is mostly the slopes' error, so it is no correction
                    further = SLACKS[aim] * model.changes(regions, straight)
            gained = _gained(before, best)
            if best.valid and before.valid and best.fun - bar > PATIENCE * (before.fun - best.fun):
                return best
            radius = min(1.0, radius * (growth if gained else SHRINKING))
        if not gained and (whole or (asked_all and free.size > AGAIN * allowed)):
            return best
        # No progress with some of the features: build the next model with all of them.
        whole, radius = not gained, max(radius, AGAIN_RADIUS)
    return best


def correction(missed: Vector) -> Vector:
    """How much further to aim after missing the boundary by `missed`; 0 where that is NaN."""
    return np.nan_to_num(missed) * np.where(missed > 0, CORRECTION, 1 / CORRECTION)


def bounded(scores: Vector) -> Vector:
    """Scores clipped to +-FAR: a log-probability may be -inf, and inf - inf is NaN."""
    return np.clip(scores, -FAR, FAR)


def _rescue(goal: Goal, beyond: float) -> Goal:
    """The goal while nothing is valid: hardly any penalty, and a margin of `beyond` more."""
    return Goal(ElasticNet(RESCUE * goal.penalty.l1, RESCUE * goal.penalty.l2), goal.kappa + beyond)


def _gained(before: Candidate, best: Candidate) -> bool:
    if best is before or before.valid != best.valid:
        return best is not before
    old, new = (before.fun, best.fun) if best.valid else (before.margin, best.margin)
    return not new > old - GAIN * abs(old)  # written so that a NaN before counts as progress


def _promising(best: Candidate, free: Indices, slopes: Vector, pull: Pull, most: int) -> Indices:
    """The features in use and those with the largest slopes of the score differences to `pull.own`."""
    promise = np.abs(slopes[:, free] - slopes[pull.own, free]).max(axis=0)
    used = best.w[free] != 0
    promise[used] = np.inf if promise[~used].any() else np.abs(best.w[free])[used]
    count = int(np.count_nonzero(used)) + (PROMISING if promise[~used].any() else 0)
    return np.sort(free[np.argsort(-promise, kind="stable")[: max(0, min(count, most))]])


def steps_within(w: Array, lower: Vector, upper: Vector, *, size: float) -> Vector:
    """A step of `size` along each feature, up or down, inside the box; where neither fits, to the farther bound."""
    up, down = upper - w, w - lower
    step = np.where(up >= size, size, np.where(down >= size, -size, np.where(up >= down, up, -down)))
    return np.asarray(step)


def along(w: Array, features: Indices, steps: Vector) -> list[Array]:
    """`w` with one step along each feature."""
    points = np.repeat(w[None], features.size, axis=0)
    points[np.arange(features.size), features] += steps.astype(w.dtype)
    return list(points)
