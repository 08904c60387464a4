"""Models that answer differently to the same input: dropout left on, noise, scores that depend on the batch.

x0 is queried twice, in batches of different company. If the answers differ, a few more tell how much the margin varies.
The search then asks for a margin of several times that, and what it finds is queried again and again: it is called
valid only if it held every time, and by so much that it can be expected to hold.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.candidate import Candidate
from zomirror.contrast.progress import Progress
from zomirror.contrast.search.evaluate import ask_scores
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request
from zomirror.features.place import Place
from zomirror.features.tabular.table_place import TablePlace
from zomirror.features.vector import VectorPlace
from zomirror.numerics.arrays import Array
from zomirror.numerics.random import Draws, key_of

SAME = 1e-5
"""Scores that differ by less than this part of their range at x0 are the same: rounding in another order does it."""
MEASURED = 4
"""Queries of x0 in one batch, and as many in company, that tell how much its margin varies."""
SAFE = 3.0
"""While searching, a margin counts from 3 standard deviations on: of many points the luckiest is taken."""
IN_COMPANY = 3.5
"""The same for queries in company, whose margins depend on points that are not those of later batches."""
LOOKED, APART, CONFIRMED = 6, 12, 60
"""A point is queried 6 times, then 12 times in company, and if it held every time, 60 times in all: one that holds with
90 % probability passes in 1 of 560 cases."""
COMPANY = 4
"""At most this many other points are in a batch with company: scores may depend on the rest of the batch."""
EXPECTED = 2.8
"""It must hold with 99 % probability if its margins are normal: the quantile of Student's t for a dozen answers."""
ONE = CONFIRMED + APART * (1 + COMPANY) // 2
"""The queries that confirm one point."""
GLANCES = 3
"""Before, each of the points in question is queried 3 times: the first one whose mean is clear is confirmed."""
CLEAR = 3.5
"""A mean of 3 is clear if it is below by 3.5 standard deviations of a margin: 2.8, and 1.2 of the mean's own."""
HELD_BACK = 0.25
"""This part of the budget is kept for these queries, at least what one point of six needs."""
ROUNDED, ROUNDED_FIRST = 10, 4
"""Queries kept for rounding the answer to values that exist; the first batch has 4."""
NOTHING = "no point with a margin far beyond that was found"
PUSHES = (1.15, 1.35, 1.6, 2.0)
"""If no point of the search held, the last one is moved on: a PN by these factors, a PP by 15 %, 35 %, ... to x0."""


def repeated(progress: Progress, first: NDArray[np.float64]) -> Generator[Request, Answer, NDArray[np.float64]]:
    """Query x0 again beside another point; return its scores, the mean of all its answers if they differ."""
    place = progress.place
    x0, far = place.as_it_is, _far(place, 0)
    # Of a PP x0 was queried beside the baseline before, so it is alone now.
    company = [] if place.kind == "PP" or np.array_equal(x0, far, equal_nan=True) else [far]
    scores = yield from ask_scores(progress, [*company, x0])
    seen = np.stack([first, scores[-1]])
    if np.isnan(seen).any() or _same(seen[0], seen[1]):
        # A row of a table need not be one that this row may become.
        progress.far = (far, scores[0]) if company and isinstance(place, VectorPlace) else None
        return first
    progress.answers = seen
    together = yield from ask_scores(progress, [x0] * MEASURED)
    apart = yield from _in_company(progress, x0, MEASURED)
    progress.answers = np.concatenate([seen, together, apart])
    return _mean(progress.answers)


def prepare(progress: Progress) -> None:
    """If x0 was answered differently: search for a margin that is safe, and keep queries for confirming it."""
    if progress.answers is None:
        progress.held = ROUNDED if snaps(progress) else 0
        return
    spread = _deviation(progress.margins(progress.answers))
    goal = progress.goal
    floor = goal.floor + SAFE * spread
    progress.spread, progress.floor = spread, goal.floor
    progress.goal = replace(goal, kappa=max(goal.kappa, floor), floor=floor)
    progress.held = max(ONE + 6 * GLANCES, int(HELD_BACK * progress.options.budget))


def settled(progress: Progress) -> Generator[Request, Answer, tuple[Candidate, NDArray[np.float64]]]:
    """The point to return and its scores: the best one, confirmed if the model answers differently to one input."""
    best = progress.chosen
    if not best.valid and progress.modest is not None and best.margin < -progress.modest.floor:
        progress.note = f"the margin is less than {progress.goal.floor:.3g}, which would survive rounding and noise"
        progress.aim(progress.modest)
        best = progress.chosen
    if progress.answers is None:
        scores = yield from ask_scores(progress, [best.w])
        if not best.valid:
            return best, scores[0]
        if _agrees(progress, best, scores[0]):
            return (yield from rounded(progress, best, scores[0]))
        progress.answers, progress.floor = scores, progress.goal.floor
        progress.spread = abs(float(progress.margins(scores)[0]) - best.margin)
    else:
        scores = np.full((1, progress.scores.size), np.nan)
    progress.held = 0
    if not best.valid:
        if progress.left >= 0:
            scores = yield from ask_scores(progress, [best.w])
        progress.note = _described(progress, NOTHING)
        return best, scores[0]
    points = list(_ladder(progress, best))[: max(0, (progress.left - ONE) // GLANCES)]
    means, tried = np.empty(0), 0
    if points:
        glances = yield from ask_scores(progress, [one.w for one in points for _ in range(GLANCES)])
        margins = progress.margins(glances).reshape(-1, GLANCES)
        means = _mean(margins.T)
        progress.spread = max(progress.spread, _deviation(margins.T))
    for one, mean in zip(points, means.tolist(), strict=True):
        if progress.left < ONE:
            break
        if mean + CLEAR * progress.spread >= -progress.floor:
            continue
        tried += 1
        answers = yield from _asked_again(progress, one)
        scores = _mean(answers)[None]
        if _expected(progress, answers):
            progress.note = _described(progress, f"the answer held in {CONFIRMED} of {CONFIRMED} queries")
            goal = replace(progress.goal, floor=progress.floor)
            steady = goal.candidate(one.w, float(_mean(progress.margins(answers))), progress.place.sizes(one.w))
            return steady, scores[0]
    shown = f"{tried} point{'' if tried == 1 else 's'}"
    progress.note = _described(progress, f"none of {shown} held in {CONFIRMED} queries" if tried else NOTHING)
    return replace(best, valid=False), scores[0]


def _same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    known = np.isfinite(one)
    if not np.array_equal(one[~known], other[~known]) or not np.isfinite(other[known]).all():
        return False
    return not known.any() or bool(np.abs(one[known] - other[known]).max() <= SAME * _range(one))


def _mean(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over the first axis; NaN, without a warning, of scores that are infinite in both directions."""
    with np.errstate(invalid="ignore"):
        return np.asarray(answers.mean(axis=0))


def _deviation(margins: NDArray[np.float64]) -> float:
    """The standard deviation over the first axis, of several columns the root mean square; NaN if one is infinite."""
    with np.errstate(invalid="ignore"):
        return float(np.sqrt(margins.var(axis=0, ddof=1).mean()))


def _range(scores: NDArray[np.float64]) -> float:
    """The range of the finite scores, or 1 if they are all the same."""
    return float(np.ptp(scores[np.isfinite(scores)])) or 1.0


def _agrees(progress: Progress, best: Candidate, scores: NDArray[np.float64]) -> bool:
    """Whether the last query says the same of the best point as the one that found it."""
    margin = float(progress.margins(scores[None])[0])
    if np.isnan(margin):
        return True  # a fault of the last query says nothing of the one that found the point
    near = margin == best.margin or abs(margin - best.margin) <= SAME * _range(progress.scores)
    return near and (margin < -progress.goal.floor) == best.valid


def snaps(progress: Progress) -> bool:
    """Whether the answer is rounded to values that exist: not with a kappa of the caller's, unless it gave a step."""
    place, options = progress.place, progress.options
    wanted = options.kappa is None or getattr(options.features, "step", None) is not None
    return isinstance(place, VectorPlace) and place.grid is not None and wanted


def rounded(
    progress: Progress, best: Candidate, scores: NDArray[np.float64]
) -> Generator[Request, Answer, tuple[Candidate, NDArray[np.float64]]]:
    """The best point whose values exist, and its scores; the point itself if its values do."""
    if not snaps(progress) or np.array_equal(progress.place.legal(best.w), best.w):
        return best, scores
    progress.held = 0
    ladder = list(_ladder(progress, best))
    for some in (ladder[:ROUNDED_FIRST], ladder[ROUNDED_FIRST:]):
        points = [one.w for one in some[: max(0, progress.left + 1)]]
        if not points:
            break
        answers = yield from ask_scores(progress, points)
        seen = [progress.consider(w, float(m)) for w, m in zip(points, progress.margins(answers), strict=True)]
        if any(one.valid for one in seen):
            i = min((i for i, one in enumerate(seen) if one.valid), key=lambda i: seen[i].fun)
            return seen[i], answers[i]
    progress.note = "rounded to the values that features can take, no point that was found is valid"
    return replace(best, valid=False), scores


def _ladder(progress: Progress, best: Candidate) -> Iterator[Candidate]:
    """Points that exist, the cheapest first: the best, those with a larger margin, and the last of them moved on."""
    place = progress.place
    exists = place.legal if snaps(progress) else _as_it_is
    deeper = [one for one in sorted(progress.deeper.values(), key=lambda one: one.fun) if one.margin < best.margin]
    for one in (best, *deeper):
        yield replace(one, w=exists(one.w))
    if isinstance(place, VectorPlace):
        last = (deeper or [best])[-1].w
        for push in PUSHES:
            factor = last.dtype.type(push)
            moved = last * factor if place.kind == "PN" else last + (factor - 1) * (place.as_it_is - last)
            yield replace(best, w=exists(place.box.project(moved)))


def _as_it_is(w: Array) -> Array:
    return w


def _asked_again(progress: Progress, one: Candidate) -> Generator[Request, Answer, NDArray[np.float64]]:
    """The scores of the point, queried alone and in company until it fails or has held often enough."""
    seen = yield from ask_scores(progress, [one.w] * LOOKED)
    if _holds(progress, seen):
        apart = yield from _in_company(progress, one.w, APART)
        seen = np.concatenate([seen, apart])
    if _holds(progress, seen):
        more = yield from ask_scores(progress, [one.w] * (CONFIRMED - APART - LOOKED))
        seen = np.concatenate([seen, more])
    return seen


def _in_company(progress: Progress, w: Array, count: int) -> Generator[Request, Answer, NDArray[np.float64]]:
    """The scores of w, `count` times, each in a batch with other points."""
    seen, draws = [], Draws(key_of([progress.seed, progress.used]))
    for i in range(count):
        others = [_other(progress.place, draws, i % 4) for _ in range(1 + i % COMPANY)]
        scores = yield from ask_scores(progress, [w, *others])
        seen.append(scores[0])
    return np.stack(seen)


def _far(place: Place, which: int) -> Array:
    """A point far from x0: the start of a PN, the baseline of a PP, or a reference row of a table."""
    if isinstance(place, TablePlace) and len(place.reference):
        row: Array = place.reference[which % len(place.reference)]
        return row
    return place.absent if place.kind == "PP" else place.start


def _other(place: Place, draws: Draws, which: int) -> Array:
    """x0, a point far from it, or any input: of a bounded vector a uniform one, else a mixture of the two."""
    far = _far(place, int(draws.uniform(1)[0] * (1 << 20)))
    if which < 2 or isinstance(place, TablePlace):
        return place.as_it_is if which == 0 else far
    if isinstance(place, VectorPlace) and place.within is not None:
        lower, upper = place.within
        inside: Array = (lower + draws.uniform(place.d) * (upper - lower)).astype(place.start.dtype)
        return inside
    return np.where(draws.signs(place.d) > 0, place.as_it_is, far)


def _expected(progress: Progress, answers: NDArray[np.float64]) -> bool:
    """Whether a point that held in all these queries can be expected to hold in others, alone and in company."""
    if len(answers) < CONFIRMED or not _holds(progress, answers):
        return False
    margins = progress.margins(answers)
    groups = (margins, EXPECTED), (margins[LOOKED : LOOKED + APART], IN_COMPANY)
    return all(float(_mean(group)) + times * _deviation(group) < -progress.floor for group, times in groups)


def _holds(progress: Progress, scores: NDArray[np.float64]) -> bool:
    return bool((progress.margins(scores) < -progress.floor).all())


def _described(progress: Progress, outcome: str) -> str:
    note = f"{progress.note}; " if progress.note else ""
    return f"{note}the model answers differently to the same input (margins vary by {progress.spread:.3g}): {outcome}"
