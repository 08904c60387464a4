"""Sets of parts and the margins that are known of them: asks each set once, and keeps the best valid one."""

from __future__ import annotations

from collections.abc import Generator
from typing import cast

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.progress import Progress
from zomirror.contrast.search.presence_search.part_sets import BATCH, Mask, components
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request
from zomirror.features.parts import PartsPlace
from zomirror.methods.query import Query, Segment

Margins = NDArray[np.float64]
Asking = Generator[Request, Answer, Margins]
Stage = Generator[Request, Answer, Mask]


class Spent(Exception):  # noqa: N818 - not an error
    """The next batch would exceed the budget."""


class Presence:
    """Sets of parts and the margins that are known of them."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.place = progress, cast(PartsPlace, progress.place)
        self.baselines = list(range(self.place.material.baselines if self.place.kind == "PP" else 1))
        """The baselines over which a set must be valid; the one that failed last is the first."""
        self.known: dict[tuple[bytes, int], float] = {}
        self.best: Mask | None = None
        self.starts: list[tuple[float, float, Mask]] = []
        """Windows that may be valid and were passed over: their size, margin and parts, largest first."""

    def found_any(self) -> bool:
        """Whether a valid set is known."""
        return self.best is not None

    def weight(self, mask: Mask) -> float:
        """The share of the input that these parts are."""
        return float(self.place.weights[mask].sum())

    def is_valid(self, margin: float) -> bool:
        """Whether a margin suffices; NaN does not."""
        return margin < -self.progress.goal.floor

    def whole(self) -> Stage:
        """The set of all parts, which need not be valid."""
        everything = np.ones(self.place.d, bool)
        if self.place.kind == "PP":  # x0 itself, whatever the baseline
            margin = float(self.progress.margins(self.progress.scores[None])[0])
            self.known |= {(everything.tobytes(), base): margin for base in self.baselines}
        margins = yield from self._ask([(everything, base) for base in self.baselines])
        valid = [base for base, margin in zip(self.baselines, margins, strict=True) if self.is_valid(margin)]
        if valid:
            self.baselines = valid  # a baseline that keeps the class cannot show which parts change it
            self._accept(everything)
        return everything

    def smallest(self) -> Mask:
        """The best set; all parts while there is none."""
        return np.ones(self.place.d, bool) if self.best is None else self.best

    def pass_over(self, masks: list[Mask], margins: Margins) -> None:
        """Remember windows that are valid over one baseline, to start from them later."""
        for mask, margin in zip(masks, margins, strict=True):
            if self.is_valid(margin) and not any((mask == seen).all() for _, _, seen in self.starts):
                self.starts.append((self.weight(mask), float(margin), mask))

    def next_start(self) -> Mask | None:
        """A window that was passed over: of the largest ones the one with the best margin."""
        if not self.starts:
            return None
        first = min(range(len(self.starts)), key=lambda i: (-self.starts[i][0], self.starts[i][1]))
        return self.starts.pop(first)[2]

    def rank(self, masks: list[Mask]) -> Asking:
        """The margins of sets over the baseline that failed last."""
        return (yield from self._ask([(mask, self.baselines[0]) for mask in masks]))

    def check(self, mask: Mask) -> Generator[Request, Answer, bool]:
        """Whether a set is valid over every baseline; the best set so far is kept."""
        for some in ([self.baselines[0]], self.baselines[1:]):
            margins = yield from self._ask([(mask, base) for base in some])
            for base, margin in zip(some, margins, strict=True):
                if not self.is_valid(margin):
                    self.baselines = [base, *(other for other in self.baselines if other != base)]
                    self.progress.consider(mask.astype(np.float64), float(margin))
                    return False
        self._accept(mask)
        return True

    def _accept(self, mask: Mask) -> None:
        """Keep a valid set if it is smaller than the best, or of its size in fewer connected pieces."""
        shown = self.known[mask.tobytes(), 0]  # the margin over the first baseline
        one = self.progress.consider(mask.astype(np.float64), shown)
        if self.best is None or self.order(mask) < self.order(self.best):
            self.best, self.progress.best = mask, one
        self.progress.measured(one)

    def order(self, mask: Mask) -> tuple[float, int]:
        """Sorts sets by size, and those of one size by their connected pieces."""
        return round(self.weight(mask), 12), components(mask, self.place.edges)

    def _ask(self, wanted: list[tuple[Mask, int]]) -> Asking:
        """The margins of sets over baselines; what is known is not asked again."""
        keys = [(mask.tobytes(), base) for mask, base in wanted]
        new = {key: row for key, row in zip(keys, wanted, strict=True) if key not in self.known}
        for start in range(0, len(new), BATCH):
            some = list(new.items())[start : start + BATCH]
            if len(some) > self.progress.left:
                raise Spent
            points = [np.append(mask.astype(np.float64), base) for _, (mask, base) in some]
            query = Query(tuple(Segment(point, 1) for point in points))
            margins = yield Request(query, self.progress.kept_margins, self.place.inputs_over)
            self.progress.used += len(points)
            self.known |= {key: float(margin) for (key, _), margin in zip(some, margins, strict=True)}
            self.progress.shown(self.progress.chosen)
        return np.array([self.known[key] for key in keys])
