"""The search on presence: the smallest set of parts that alone keeps the class (PP) or must be replaced (PN).

    1. Query the scores of x0, and of the baseline for a PP.
    2. Localise: of nine windows of half the side, keep the one that is valid with the best margin; again inside it.
    3. Prune: take away blocks of parts, sixteenths of what is left. A batch ranks the blocks that are expected to
       matter least; bisection finds how many of them can go together.
    4. Do the same from other valid windows, for half of the budget.
    5. Prune the smallest of these sets by ever smaller blocks, down to single parts.
    6. While queries are left, localise and prune from further windows.
    7. Query the best set once more, for all its scores.

So few parts that all can be ranked in two batches are pruned to the end at once. Regions of an image stay connected:
no block is taken away that would part the set.

A PP is valid if it is so over every baseline; a PN is replaced by the first. The baseline on which the last set failed
is asked first, and the others only for sets that are valid there, so several baselines cost little more than one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.progress import Found, Progress
from zomirror.contrast.search.explain_search import conducted
from zomirror.contrast.search.presence_search.part_sets import BATCH, Mask, blocks, in_one_piece, windows, without
from zomirror.contrast.search.presence_search.presence import Presence, Spent, Stage
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request, Search
from zomirror.result import Status

RATIOS = (0.5, 0.7)
"""Sides of the windows that are tried inside the last valid one; the longer side only if no window of the shorter is
valid. On eight photographs a third side of 0.85 cost 20 rows, and pruning gained as much with them."""
FURTHER = (0.6, 0.4, 0.3)
"""Sides of windows of the whole input from which the search starts anew while queries are left."""
FEW = 64
"""So few parts are also pruned as a whole, which finds sets that no window holds."""
ROUGH = 0.5
"""The share of the budget for sets that are pruned by sixteenths only. Most of the size is lost there: on nine
photographs and 300 rows, several such sets and then the smallest of them ended 5 % smaller than the first one pruned
to its end. Beginning with 5 x 5 windows of 0.35 of the side instead ended 11 % larger."""
FINISHED = 3
"""So many of them are then pruned down to single parts, the smallest first."""
CHECKED = 3
"""Windows of one size that are asked over all baselines before the next size is tried."""
BLOCKS = 16
"""Blocks of the first level of pruning, each further level having twice as many; as many are asked in a batch."""
GUESSES = (0.6, 1.0, 1.5)
"""The bisection begins at these multiples of the number of blocks that a linear model would take away."""


def search(progress: Progress) -> Search[Found]:
    """The search for a set of parts; valid means that the margin exceeds kappa."""
    progress.goal = replace(progress.goal, floor=progress.goal.kappa)
    return (yield from conducted(progress, _smallest))


def _smallest(progress: Progress) -> Generator[Request, Answer, Status]:
    presence = Presence(progress)
    try:
        whole = yield from presence.whole()
        if not presence.found_any():
            found = yield from gather(presence)
            if presence.found_any():
                yield from prune(presence, found)
            return Status.STALLED
        if whole.size <= FEW:
            yield from prune(presence, (yield from localise(presence, whole)))
            if presence.smallest().sum() > 1:
                yield from prune(presence, whole)
        else:
            for start in (yield from _roughly(presence, whole)):
                yield from prune(presence, start)
        if presence.smallest().sum() == 1:
            return Status.STALLED  # there is no smaller set
        yield from _restarted(presence)
        yield from prune(presence, presence.smallest(), exact=True)
        for ratio in FURTHER:
            tried = windows(whole, presence.place.positions, ratio, 5)
            margins = yield from presence.rank(tried)
            presence.pass_over(tried, margins)
            yield from _restarted(presence)
            yield from prune(presence, presence.smallest(), exact=True)
    except Spent:
        return Status.BUDGET
    return Status.STALLED


def _roughly(presence: Presence, whole: Mask) -> Generator[Request, Answer, list[Mask]]:
    """The smallest sets after sixteenths of several windows were taken away, for half of the budget."""
    progress, start = presence.progress, whole
    found: list[Mask] = []
    while not found or progress.used < ROUGH * progress.options.budget:
        if (yield from presence.check(start)):
            inside = yield from localise(presence, start)
            found.append((yield from prune(presence, inside, finest=BLOCKS)))
        further = presence.next_start()
        if further is None:
            break
        start = further
    return sorted(found, key=presence.order)[:FINISHED]


def _restarted(presence: Presence) -> Generator[Request, Answer, None]:
    """Localise and prune from each window that was passed over."""
    while (start := presence.next_start()) is not None:
        if (yield from presence.check(start)):
            found = yield from localise(presence, start)
            yield from prune(presence, found)


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


def prune(presence: Presence, found: Mask, *, finest: int | None = None, exact: bool = False) -> Stage:
    """Take away blocks of parts while the set stays valid, the least useful ones first, down to single parts.

    The blocks are at first sixteenths of the set; the last level is that of `finest` blocks, or of single parts. A
    level ends when none of its 16 least useful blocks can go; with `exact`, single parts are taken away until none of
    all that are left can go. Where parts should hang together, no block goes whose absence would part the set.
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
            if place.connected and place.d > FEW:
                order = [order[j] for j in in_one_piece(found, [pieces[some[j]] for j in order], place.edges)]
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
        if (single and (found == before).all()) or found.sum() == 1 or count == finest:
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
