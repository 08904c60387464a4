"""Refine: from a point near the boundary to the best one around it, with a local linear model of the scores.

A descent on a hinge zigzags about its kink. Here the scores are asked at one small step along each feature, which
gives a linear model of every class; the penalised problem of that model is solved exactly within a trust region; the
answers for several regions are asked, then again by how much each missed the boundary, and the best of them is where
the next model is made. The first model knows all features; those that follow ask only the features in use and the most
promising others.
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
from zomirror.problem import Box, ElasticNet

Vector = NDArray[np.float64]
Asking = Generator[list[Array], Vector, Candidate]
"""Yields points, is sent their scores (n, classes), returns the best."""

STEP = 0.05
"""The largest difference step, in units of a feature's range."""
REGIONS = ((1.0, 1.5), (0.4, 1.0), (0.1, 0.4))
"""Trust regions as parts of the radius, and what the radius is multiplied by where that one does best."""
AIMS = 3
"""How often each region is aimed at: what the model did not foresee of the margin is known the next time."""
SLACKS = (0.03, 0.2)
"""With rough slopes and nothing valid: how much further the next aims are, as parts of the change that was foreseen."""
CORRECTION = 1.1
"""Where a point missed the boundary by so much, the next is aimed so many times as far beyond it; where it went too
far, that part of the excess is taken back."""
RIVALS, FACETS = 3, 8
"""Contrast classes that are tried one by one (PN), and classes that are kept at a distance together (PP)."""
PROMISING = 100
"""Features beside those in use that are asked again."""
AGAIN = 0.1
"""All features are asked a second time where that costs at most this part of what is allowed."""
FIRST_RADIUS, AGAIN_RADIUS, LAST_RADIUS, SHRINKING = 0.5, 0.1, 0.008, 0.3
GAIN = 0.004
"""A round that gains a smaller part of F has not gained."""
PATIENCE = 2
"""How many more steps like the last one may lead to the bar."""
FAR = 1e9
RESCUE = 0.02
"""While nothing is valid, the penalty counts this much."""


@dataclass(frozen=True, slots=True)
class Pull:
    """What is wanted of the class `own`: that it wins (kept), or that it does not."""

    own: int
    kept: bool

    def margins(self, scores: Vector) -> Vector:
        """How far from that each row is."""
        margins = keep_margin(scores, self.own) if self.kept else change_margin(scores, self.own)
        return margins.astype(np.float64)

    def rivals(self, scores: Vector) -> list[list[int]]:
        """The rivals of each linear problem: all at once to win against, one at a time to lose against."""
        order = [int(i) for i in np.argsort(-scores, kind="stable") if i != self.own]
        return [order[:FACETS]] if self.kept else [[rival] for rival in order[:RIVALS]]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The linear problem of one trust region and its rivals, and what the radius is multiplied by if it does best."""

    problem: Linear
    growth: float


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """scores + slopes (v - w) on some features, the others staying as they are in w."""

    w: Vector
    features: Indices
    scores: Vector
    slopes: Vector

    def regions(self, goal: Goal, box: tuple[Vector, Vector], pull: Pull, radius: float) -> list[Region]:
        """The problems to solve within the radius."""
        at, sign, found = self.w[self.features], 1.0 if pull.kept else -1.0, []
        # Valid means strictly beyond the boundary, by more than the scores' own rounding.
        kappa = goal.kappa + 1e-6 * (1.0 + float(np.abs(self.scores).max()))
        for part, growth in REGIONS:
            lower, upper = np.maximum(box[0], at - part * radius), np.minimum(box[1], at + part * radius)
            for rivals in pull.rivals(self.scores):
                A = sign * (self.slopes[rivals] - self.slopes[pull.own])
                b = sign * (self.scores[rivals] - self.scores[pull.own]) - A @ at
                found.append(Region(Linear(A, b, lower, upper, goal.penalty, kappa), growth))
        return found

    def answers(self, regions: Sequence[Region], further: Vector) -> list[Vector]:
        """The minimiser of each, aimed that much further beyond the boundary."""
        problems = [replace(r.problem, kappa=r.problem.kappa + more) for r, more in zip(regions, further, strict=True)]
        return [self._whole(problem.solve()) for problem in problems]

    def changes(self, regions: Sequence[Region], answers: Sequence[Vector]) -> Vector:
        """How far the model takes the margins from where they are, in each region."""
        steps = [point[self.features] - self.w[self.features] for point in answers]
        return np.array([np.abs(r.problem.A @ step).max() for r, step in zip(regions, steps, strict=True)])

    def foreseen(self, goal: Goal, regions: Sequence[Region], answers: Sequence[Vector]) -> float:
        """The least F that the model knows of in the regions."""
        pairs = [(region.problem, point) for region, point in zip(regions, answers, strict=True)]
        margins = [float((problem.A @ point[self.features] + problem.b).max()) for problem, point in pairs]
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

    `step` is how far to look for a change of the scores, where they jump. While nothing is valid, the margin aimed
    at is `beyond` the one that is needed. With rough `slopes` (classes, d) the first model knows only the features that
    they promise most of. It ends where, at the pace of the last step, F would long be above the `bar`, and asks for no
    other model once `unless_valid` queries have found nothing valid.
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
        model, gained = Model(w, features, scores, slopes[:, features]), False
        while not gained and radius >= LAST_RADIUS:  # what was paid for is looked at closely before more is asked
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
                else:  # a miss tells more about rough slopes than about the boundary
                    further = SLACKS[aim] * model.changes(regions, straight)
            gained = _gained(before, best)
            if best.valid and before.valid and best.fun - bar > PATIENCE * (before.fun - best.fun):
                return best
            radius = min(1.0, radius * (growth if gained else SHRINKING))
        if not gained and (whole or (asked_all and free.size > AGAIN * allowed)):
            return best
        # Some features brought nothing: once more, with all of them.
        whole, radius = not gained, max(radius, AGAIN_RADIUS)
    return best


def correction(missed: Vector) -> Vector:
    """How much further to aim, by how far the boundary was missed; as before where that is not known."""
    return np.nan_to_num(missed) * np.where(missed > 0, CORRECTION, 1 / CORRECTION)


def bounded(scores: Vector) -> Vector:
    """Scores whose differences exist: the logarithm of an impossible class is -inf."""
    return np.clip(scores, -FAR, FAR)


def _rescue(goal: Goal, beyond: float) -> Goal:
    """Validity first."""
    return Goal(ElasticNet(RESCUE * goal.penalty.l1, RESCUE * goal.penalty.l2), goal.kappa + beyond)


def _gained(before: Candidate, best: Candidate) -> bool:
    if best is before or before.valid != best.valid:
        return best is not before
    old, new = (before.fun, best.fun) if best.valid else (before.margin, best.margin)
    return not new > old - GAIN * abs(old)  # a NaN of before is beaten by anything


def _promising(best: Candidate, free: Indices, slopes: Vector, pull: Pull, most: int) -> Indices:
    """The features in use, and those along which the scores change most relative to the class that counts."""
    promise = np.abs(slopes[:, free] - slopes[pull.own, free]).max(axis=0)
    used = best.w[free] != 0
    promise[used] = np.inf if promise[~used].any() else np.abs(best.w[free])[used]
    count = int(np.count_nonzero(used)) + (PROMISING if promise[~used].any() else 0)
    return np.sort(free[np.argsort(-promise, kind="stable")[: max(0, min(count, most))]])


def steps_within(w: Array, lower: Vector, upper: Vector, *, size: float) -> Vector:
    """A step of that size along each feature that stays in the box, or the longer way to its side."""
    up, down = upper - w, w - lower
    step = np.where(up >= size, size, np.where(down >= size, -size, np.where(up >= down, up, -down)))
    return np.asarray(step)


def along(w: Array, features: Indices, steps: Vector) -> list[Array]:
    """`w` with one step along each feature."""
    points = np.repeat(w[None], features.size, axis=0)
    points[np.arange(features.size), features] += steps.astype(w.dtype)
    return list(points)
