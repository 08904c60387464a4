"""The search for an adversarial input with few changed pixels, and the probe at full contrast that begins every attack.

1. Probe random pixels at full contrast (corner_probe.py).
2. If many pixels are needed, small changes tell more: search with slopes (boundary_search.py).
3. Exchange pixels for fewer ones (exchange.py), until the limit or the budget is reached.
4. With the rest, make the changes of those pixels smaller.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zomirror.contrast.candidate import Candidate, Goal
from zomirror.contrast.pixel_search.corner_probe import fewer, first, smaller
from zomirror.contrast.pixel_search.exchange import brought, exchanged, jumped
from zomirror.contrast.pixel_search.label_search import LabelSearch
from zomirror.contrast.pixel_search.pixel import Pixels
from zomirror.contrast.progress import Progress
from zomirror.contrast.search.boundary.boundary_search import CELLS, LARGEST, BoundarySearch
from zomirror.contrast.search.coarse_to_fine import Grid, is_picture
from zomirror.contrast.search.evaluate import ask_margins, ask_scores, driven
from zomirror.contrast.search.finishing import pull_of
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request
from zomirror.features.vector import VectorPlace
from zomirror.numerics.random import Draws, key_of
from zomirror.result import Status

Step = Generator[Request, Answer, Status]

PROBE_SHARE = 0.3
"""The probe may use 30 % of the budget; where slopes can be estimated, at most a third of the queries of a first look
at them."""
MANY = 10
"""More pixels than this after the probe: small changes tell more than full ones, so slopes are estimated first."""
EXCHANGED = 100
"""Queries that a probe for the least l1 spends on exchanging its few pixels."""
SHRUNK = 40
"""And on making their changes smaller."""
CHEAP, JUMP = 64, 250
"""A first look of more than 64 queries waits until exchanges of 10 pixels have failed for 250 queries."""
SLOPES_SHARE, LOOKS = 0.3, 5
"""Queries of the search with slopes: 30 % of the budget, at most 5 times those of a first look."""
PUSHED = (1.0, 1.05, 1.15, 1.3)
"""What they find is multiplied by these factors and moved to values that exist."""
SMALLER_SHARE = 0.1
"""Of the queries, 10 % are kept for smaller changes of the pixels that are left."""
STREAM = 50
"""The random words of a stage are those of the key (seed, 50, stage)."""


def first_look(place: VectorPlace) -> int:
    """The queries of a first look at the slopes of a picture, at most; of other inputs one for each feature."""
    shape = place.x0.shape
    return CELLS * Grid(shape, 1).channels if is_picture(shape) else place.d


class PixelSearch:
    """The two stages of the search, and the point that the second one begins at."""

    def __init__(self, place: VectorPlace) -> None:
        self.place, self.pixels = place, Pixels.of(place)
        self._start = Candidate(np.zeros_like(place.start), np.inf, np.inf, valid=False)

    def limited(self, goal: Goal, most: int | None) -> Goal:
        """The goal with a limit to the pixels, or with the fewest of them first."""
        return replace(goal, pixels=self.pixels.size, most=most)

    def probe(self, progress: Progress, *, shrink: bool) -> Step:
        """The first adversarial points, with at most a share of the budget."""
        pixels, draws, share = self.pixels, _draws(progress, 0), int(PROBE_SHARE * progress.left)
        labels = progress.options.scores == "label"
        if not labels and self._has_slopes(progress):
            share = min(share, first_look(self.place) // 3)
        last = progress.used + share
        goal, most = self.limited(progress.goal, None), progress.goal.most or 1
        origin, allowed = np.zeros_like(self.place.start), last - progress.used
        found = first(pixels, origin, goal, draws, allowed, patient=labels)
        self._start = yield from driven(progress, found, ask_margins)
        if not self._start.valid:
            return Status.RUNNING
        thinner = fewer(pixels, self._start, goal, draws, last - progress.used)
        self._start = yield from driven(progress, thinner, ask_margins)
        if labels or self._start.count > MANY:
            return Status.RUNNING
        least = exchanged(pixels, self._start, goal, draws, min(EXCHANGED, progress.left // 4), most)
        self._start = yield from driven(progress, least, ask_margins)
        if shrink:
            reduced = smaller(self.place, self._start, goal, min(SHRUNK, progress.left // 4))
            yield from driven(progress, reduced, ask_margins)
        return Status.RUNNING

    def by_label(self, progress: Progress) -> Step:
        """Smaller changes or fewer pixels, from the class alone; nothing if no start was found."""
        most = progress.goal.most
        goal = progress.goal if most is None else self._down_to(progress.goal, most)
        start = goal.candidate(self._start.w, self._start.margin)
        if start.valid:
            label = LabelSearch(self.place, self.pixels, goal, _draws(progress, 2))
            yield from driven(progress, label.run(start, progress.left), ask_margins)
        return Status.BUDGET

    def _down_to(self, goal: Goal, most: int) -> Goal:
        """The goal with fewer pixels first, as long as there are more than `most`."""
        return replace(goal, pixels=lambda w: max(most, self.pixels.size(w)), most=None)

    def search(self, progress: Progress) -> Step:
        """Fewer pixels, then smaller changes of them; RUNNING if nothing was found within the limit."""
        pixels, draws = self.pixels, _draws(progress, 1)
        goal = self.limited(progress.goal, None)
        start = goal.candidate(self._start.w, self._start.margin)
        if first_look(self.place) > CHEAP and (not start.valid or start.count > MANY):
            allowed = min(JUMP, progress.left // 4)
            start = yield from driven(progress, jumped(pixels, start, goal, draws, allowed, MANY), ask_margins)
        if not start.valid or start.count > MANY:
            start = yield from self._with_slopes(progress, start, goal)
        last = progress.used + int((1 - SMALLER_SHARE) * progress.left)
        if not start.valid:
            start = yield from driven(progress, brought(pixels, start, goal, draws, last - progress.used), ask_margins)
        if start.valid:
            limit = progress.goal.most or 1
            least = exchanged(pixels, start, goal, draws, last - progress.used, limit)
            start = yield from driven(progress, least, ask_margins)
            yield from driven(progress, smaller(self.place, start, goal, progress.left), ask_margins)
        return Status.BUDGET

    def _has_slopes(self, progress: Progress) -> bool:
        """Whether a search with slopes applies: to pictures that are not too large, but not to trees."""
        place = self.place
        return progress.radius is None and is_picture(place.x0.shape) and place.d <= LARGEST

    def _with_slopes(self, progress: Progress, start: Candidate, goal: Goal) -> Generator[Request, Answer, Candidate]:
        """The better of `start` and what a search with slopes finds, at values that exist."""
        place = self.place
        if not self._has_slopes(progress):
            return start
        allowed = min(LOOKS * first_look(place), int(SLOPES_SHARE * progress.left))
        plain = replace(goal, pixels=None)
        beyond = BoundarySearch(place, plain, pull_of(progress), allowed, allowed)
        found = yield from driven(progress, beyond.run(), ask_scores)
        if found is None or not found.valid or progress.left <= 0:
            return start
        points = [place.legal(place.box.project(found.w * found.w.dtype.type(factor))) for factor in PUSHED]
        margins = yield from ask_margins(progress, points[: progress.left])
        seen = [goal.candidate(w, float(margin)) for w, margin in zip(points, margins, strict=False)]
        for one in seen:
            progress.consider(one.w, one.margin)
            start = one if one.valid and one.better_than(start) else start
        return start


def _draws(progress: Progress, stage: int) -> Draws:
    return Draws(key_of([progress.seed, STREAM, stage]))
