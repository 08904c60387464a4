"""The search on presence: the smallest set of parts that alone keeps the class (PP) or must be replaced (PN).

    1. Query the scores of x0, and of the baseline for a PP.
    2. Localise: of nine windows of half the side, keep the one that is valid with the best margin; again inside it.
    3. Prune: take away blocks of parts, first sixteenths of what is left, then ever smaller ones down to single parts.
       A batch ranks the blocks that are expected to matter least; bisection finds how many of them can go together.
    4. While queries are left, do the same from other valid windows, the best first.
    5. Query the best set once more, for all its scores.

A PP is valid if it is so over every baseline; a PN is replaced by the first. The baseline on which the last set failed
is asked first, and the others only for sets that are valid there, so several baselines cost little more than one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.progress import Found, Progress
from zomirror.contrast.search.explain_search import conducted
from zomirror.contrast.search.part_sets import BATCH, Mask, blocks, components, windows
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request, Search
from zomirror.features.parts import PartsPlace
from zomirror.methods.query import Query, Segment
from zomirror.result import Status

RATIOS = (0.5, 0.7)
"""Sides of the windows that are tried inside the last valid one; the longer side only if no window of the shorter is
valid. On eight photographs a third side of 0.85 cost 20 rows, and pruning gained as much with them."""
FURTHER = (0.6, 0.4, 0.3)
"""Sides of windows of the whole input from which the search starts anew while queries are left."""
FEW = 64
"""So few parts are also pruned as a whole, which finds sets that no window holds."""
CHECKED = 3
"""Windows of one size that are asked over all baselines before the next size is tried."""
BLOCKS = 16
"""Blocks of the first level of pruning, each further level having twice as many; as many are asked in a batch."""
GUESSES = (0.6, 1.0, 1.5)
"""The bisection begins at these multiples of the number of blocks that a linear model would take away."""

Margins = NDArray[np.float64]
Asking = Generator[Request, Answer, Margins]
Stage = Generator[Request, Answer, Mask]


def search(progress: Progress) -> Search[Found]:
    """The search for a set of parts; valid means that the margin exceeds kappa."""
    progress.goal = replace(progress.goal, floor=progress.goal.kappa)
    return (yield from conducted(progress, _smallest))


class _Spent(Exception):  # noqa: N818 - not an error
    """The next batch would exceed the budget."""


def _smallest(progress: Progress) -> Generator[Request, Answer, Status]:
    presence = Presence(progress)
    try:
        whole = yield from presence.whole()
        if not presence.found_any():
            found = yield from gather(presence)
            if presence.found_any():
                yield from prune(presence, found)
            return Status.STALLED
        found = yield from localise(presence, whole)
        yield from prune(presence, found)
        if presence.smallest().sum() == 1:
            return Status.STALLED  # there is no smaller set
        if whole.size <= FEW:
            yield from prune(presence, whole)
        yield from _restarted(presence)
        yield from prune(presence, presence.smallest(), exact=True)
        for ratio in FURTHER:
            tried = windows(whole, presence.place.positions, ratio, 5)
            margins = yield from presence.rank(tried)
            presence.pass_over(tried, margins)
            yield from _restarted(presence)
            yield from prune(presence, presence.smallest(), exact=True)
    except _Spent:
        return Status.BUDGET
    return Status.STALLED


def _restarted(presence: Presence) -> Generator[Request, Answer, None]:
    """Localise and prune from each window that was passed over."""
    while (start := presence.next_start()) is not None:
        if (yield from presence.check(start)):
            found = yield from localise(presence, start)
            yield from prune(presence, found)


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
        if self.best is None or self._order(mask) < self._order(self.best):
            self.best, self.progress.best = mask, one
        self.progress.measured(one)

    def _order(self, mask: Mask) -> tuple[float, int]:
        return round(self.weight(mask), 12), components(mask, self.place.edges)

    def _ask(self, wanted: list[tuple[Mask, int]]) -> Asking:
        """The margins of sets over baselines; what is known is not asked again."""
        keys = [(mask.tobytes(), base) for mask, base in wanted]
        new = {key: row for key, row in zip(keys, wanted, strict=True) if key not in self.known}
        for start in range(0, len(new), BATCH):
            some = list(new.items())[start : start + BATCH]
            if len(some) > self.progress.left:
                raise _Spent
            points = [np.append(mask.astype(np.float64), base) for _, (mask, base) in some]
            query = Query(tuple(Segment(point, 1) for point in points))
            margins = yield Request(query, self.progress.kept_margins, self.place.inputs_over)
            self.progress.used += len(points)
            self.known |= {key: float(margin) for (key, _), margin in zip(some, margins, strict=True)}
            self.progress.shown(self.progress.chosen)
        return np.array([self.known[key] for key in keys])


def localise(presence: Presence, start: Mask) -> Stage:
    """The smallest window reached by going from a valid one to a valid one inside it."""
    found, shrunk = start, True
    while shrunk:
        shrunk = False
        for ratio in RATIOS:
            tried = windows(found, presence.place.positions, ratio)
            inside = yield from _first_valid(presence, tried, CHECKED)
            if inside is not None:
                found, shrunk = inside, True
                break
    return found


def _first_valid(presence: Presence, masks: list[Mask], most: int) -> Generator[Request, Answer, Mask | None]:
    """The set with the best margin that is valid over every baseline, after at most `most` checks."""
    failed: set[int] = set()
    while masks and len(failed) < most:
        margins = yield from presence.rank(masks)
        promising = [i for i in np.argsort(margins, kind="stable") if presence.is_valid(margins[i]) and i not in failed]
        if not promising:
            return None
        mask: Mask = masks[promising[0]]
        if (yield from presence.check(mask)):
            presence.pass_over([masks[i] for i in promising[1:]], margins[promising[1:]])
            return mask
        failed.add(promising[0])
    return None


def gather(presence: Presence) -> Stage:
    """A valid set where the set of all parts is not one: the best blocks together, as few as suffice.

    The blocks of the best union are split, until it is valid or holds single parts.
    """
    place, count = presence.place, BATCH
    found = np.ones(place.d, bool)
    while True:
        pieces = blocks(found, place.positions, place.weights, count)
        margins = yield from presence.rank([~without(np.ones(place.d, bool), [piece]) for piece in pieces])
        order = [pieces[i] for i in np.argsort(margins, kind="stable")]
        unions = [~without(np.ones(place.d, bool), order[:n]) for n in range(1, len(order) + 1)]
        margins = yield from presence.rank(unions)
        valid = [mask for mask, margin in zip(unions, margins, strict=True) if presence.is_valid(margin)]
        for mask in valid[:CHECKED]:
            if (yield from presence.check(mask)):
                return mask
        least = int(np.argsort(margins, kind="stable")[0])  # NaN comes last
        best: Mask = unions[least]
        presence.progress.consider(best.astype(np.float64), float(margins[least]))
        if all(piece.size == 1 for piece in pieces) or (best.sum() == found.sum() and count > place.d):
            return best
        found, count = best, 2 * count


def prune(presence: Presence, found: Mask, *, exact: bool = False) -> Stage:
    """Take away blocks of parts while the set stays valid, the least useful ones first, down to single parts.

    A level ends when none of its 16 least useful blocks can go; with `exact`, single parts are taken away until none
    of all that are left can go.
    """
    place, count = presence.place, presence.place.d if exact else BLOCKS
    harm = np.zeros(place.d)
    """How much the margin rises when a part goes, as far as it is known from the block it was in."""
    while True:
        pieces = blocks(found, place.positions, place.weights, count)
        single, before = all(piece.size == 1 for piece in pieces), found
        asked: set[int] = set()
        while len(pieces) > 1:
            expected = np.array([harm[piece].sum() for piece in pieces])
            some = [i for i in np.argsort(expected, kind="stable").tolist() if i not in asked][:BLOCKS]
            if not some:
                break
            margins = yield from presence.rank([found, *(without(found, [pieces[i]]) for i in some)])
            with np.errstate(invalid="ignore"):  # of infinite scores
                rises = margins[1:] - margins[0]
            for i, rise in zip(some, rises, strict=True):
                harm[pieces[i]] = rise / pieces[i].size
            order = [int(j) for j in np.argsort(rises, kind="stable") if presence.is_valid(margins[1 + j])]
            guess = np.searchsorted(np.cumsum(rises[order]), -margins[0] - presence.progress.goal.floor)
            gone = yield from longest(presence, found, [pieces[some[j]] for j in order], int(guess))
            if gone == 0 and exact:
                asked |= set(some)
                continue
            if gone == 0:
                break
            taken = {some[j] for j in order[:gone]}
            found = without(found, [pieces[i] for i in taken])
            kept = [i for i in range(len(pieces)) if i not in taken]
            pieces, asked = [pieces[i] for i in kept], {kept.index(i) for i in asked.union(some) if i not in taken}
            if gone < len(order) and not exact:
                break
        if (single and (found == before).all()) or found.sum() == 1:
            return found
        count = min(2 * count, place.d)


def longest(
    presence: Presence, found: Mask, order: list[NDArray[np.intp]], guess: int
) -> Generator[Request, Answer, int]:
    """How many pieces, in this order, can be taken away together: bisection, beginning around a guess."""
    low, high = 0, len(order) + 1
    if order and not without(found, order).any():
        high = len(order)
    top, probes = high, [round(guess * factor) for factor in GUESSES]
    while True:
        while high - low > 1:
            inside = sorted({min(max(n, low + 1), high - 1) for n in probes})
            margins = yield from presence.rank([without(found, order[:n]) for n in inside])
            valid = [n for n, margin in zip(inside, margins, strict=True) if presence.is_valid(margin)]
            low = max([low, *valid])
            high = min([high, *(n for n in inside if n > low and n not in valid)])
            third = max(1, (high - low) // 3)
            probes = [low + third, high - third] if high - low > 4 else [(low + high) // 2]
        if low == 0 or (yield from presence.check(without(found, order[:low]))):
            return low
        top = high = low  # not valid over another baseline, which is asked first from now on
        low, probes = 0, [top // 2]


def without(mask: Mask, pieces: list[NDArray[np.intp]]) -> Mask:
    """The set without these pieces."""
    left = mask.copy()
    for piece in pieces:
        left[piece] = False
    return left
