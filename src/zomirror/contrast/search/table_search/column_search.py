"""The search for a PP or PN of one row of a table, as a generator that an engine drives.

A PN:
1. Query the scores of x0.
2. Ask each column alone: every category, and a few values of each number.
3. Propose rows by a model of the margin (column_proposal.py), 24 at a time, until they are worth less than a row.
4. Put columns of the best row back, and move its numbers towards x0 by sections (column_sections.py).
5. Query the best row once more, for all its scores.

A PP is the fewest columns that keep the class while the others are at the baseline (column_subset.py). The baseline,
unless the user chose it, is the reference row of another class that is nearest to typical.

Every row that is queried is legal.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.plausible import BatchCost, NearRows
from zomirror.contrast.progress import Found, Progress
from zomirror.contrast.search.evaluate import ask_margins, ask_scores, driven
from zomirror.contrast.search.explain_search import conducted
from zomirror.contrast.search.table_search.column_proposal import COLUMN, propose
from zomirror.contrast.search.table_search.column_rows import Asking, Rows, changed_in
from zomirror.contrast.search.table_search.column_sections import sections
from zomirror.contrast.search.table_search.column_subset import fewest_columns
from zomirror.contrast.search.table_search.column_values import axes_of, spread
from zomirror.engine.ledger import Answer
from zomirror.engine.request import Request, Search
from zomirror.features.tabular.table_place import TablePlace
from zomirror.numerics.arrays import Array
from zomirror.result import Status

Vector = NDArray[np.float64]
Cost = Callable[[Vector], Vector]
"""From rows to one number >= 0 each."""

FIRST = 110
"""Rows of step 2, about."""
WORTH, PATIENCE = 0.02, 2
"""Proposals end when their largest expected saving was under 2 % of the best price twice in a row."""
EFFORT, EACH = 400, 25
"""A PN ends after 400 rows, and 25 more for each further answer, unless nothing valid was found."""
KEPT = 40
"""Rows that proposals leave for step 4."""
DONORS = 300
"""The nearest reference rows, made legal, are candidates while nothing is valid."""
ASKED_ROWS, BATCH, ENOUGH = 192, 24, 24
"""For `plausible`: up to 192 of the nearest rows are queried, 24 at a time, until 24 have the new class."""
GIVEN = 5
"""The nearest of them that are asked as answers."""
BASELINES = 12
"""Reference rows that are queried for a baseline of another class."""
CHEAPER = 0.02
"""With `plausible`, which leads to a row that may differ in all columns, a changed column costs 0.02 of COLUMN."""
KAPPA = 0.01
"""kappa=None: the wanted class must win by 1 % of the margin of x0."""


def search(progress: Progress) -> Search[Found]:
    """The whole search; after a failure the caller can still read `progress`."""
    place = cast(TablePlace, progress.place)
    if place.kind == "PP" and not place.chosen_baseline:
        yield from _choose_baseline(progress, place)
    return (yield from conducted(progress, _subset if place.kind == "PP" else _columns))


def _choose_baseline(progress: Progress, place: TablePlace) -> Generator[Request, Answer, None]:
    """Take the reference row nearest to typical whose class is another one; without one, the typical row stays."""
    order = np.argsort(place.distances(place.reference, place.typical), kind="stable")
    near, far = order[: BASELINES // 2], order[np.linspace(0, order.size - 1, BASELINES // 2).astype(np.intp)]
    rows = place.reference[np.sort(np.unique(np.concatenate((near, far))))]
    rows = rows[np.argsort(place.distances(rows, place.typical), kind="stable")]
    bases = [place.based(row).baseline for row in rows]
    scores = yield from ask_scores(progress, [place.code, *bases])
    classes = scores.argmax(axis=1)
    label = classes[0] if progress.options.label is None else progress.options.label
    other = np.flatnonzero((classes[1:] != label) & ~np.isnan(scores[1:]).any(axis=1))
    if other.size:
        progress.place = place.based(bases[int(other[0])])


def _columns(progress: Progress) -> Generator[Request, Answer, Status]:
    """The search for a PN."""
    place, options = cast(TablePlace, progress.place), progress.options
    base = float(progress.margins(progress.scores[None])[0])
    _ask_for_margin(progress, base)
    legal = np.unique(place.legal(place.reference), axis=0)
    donors = legal[np.argsort(place.distances(legal, place.code), kind="stable")[:DONORS]]
    cost: Cost | None = None
    if isinstance(options.plausible, NearRows):
        wanted = yield from _rows_of_other_class(progress, place, options.plausible.codes)
        if len(wanted):
            donors = np.concatenate((place.legal(wanted[:DONORS]), donors))
            cost = _nearest_cost(place, wanted)
    elif isinstance(options.plausible, BatchCost):
        plausible = options.plausible
        cost = lambda w: plausible(place.build(w), len(w))  # noqa: E731 - one line
    progress.goal = replace(progress.goal, further=_further(progress, place, cost))
    rows = Rows(
        own=place.code,
        axes=axes_of(place.columns, place.code, place.reference),
        price=_price(progress, place, cost),
        link=link_of(progress.scores),
        bar=progress.goal.floor,
        margin=np.array([base]),
        fewest=options.fewest,
        local=cost is None,
    )
    spent = progress.used
    allowed = progress.left - (options.answers - 1)
    effort = min(allowed, EFFORT + EACH * (options.answers - 1) - spent)
    first = list(donors[:GIVEN]) if cost is not None else []
    yield from driven(progress, improve(rows, donors, allowed, effort, options.answers, first), ask_margins)
    sizes = place.sizes(rows.w)
    progress.others = [
        progress.goal.candidate(rows.w[i], float(rows.margin[i]), sizes[i]) for i in rows.answers(options.answers)[1:]
    ]
    return Status.BUDGET


def improve(
    rows: Rows, donors: Vector, allowed: int, effort: int, answers: int = 1, first: list[Vector] | None = None
) -> Asking:
    """Steps 2 to 4; ends after `effort` rows if something is valid then, else after `allowed` rows."""

    def left() -> int:
        return max(0, (effort if rows.valid.any() else allowed) - len(rows) + 1)

    yield from rows.ask([*(first or []), *_singles(rows)][: left()])
    best: list[int] | None = None
    while left() > 0 and best != (best := rows.answers(answers)):
        yield from _proposals(rows, donors, answers, left)
        yield from _sections(rows, answers, left)


def _proposals(rows: Rows, donors: Vector, answers: int, left: Callable[[], int]) -> Asking:
    """Step 3: until the proposals of two rounds in a row are worth little, or there is none."""
    idle = 0
    while left() > KEPT and idle < PATIENCE:
        proposed, gain = propose(rows, donors, answers)
        if not proposed:
            return
        leaders = rows.answers(answers)
        idle = idle + 1 if len(leaders) == answers and gain < WORTH * rows.prices[leaders[0]] else 0
        yield from rows.ask(proposed[: left() - KEPT])


def _sections(rows: Rows, answers: int, left: Callable[[], int]) -> Asking:
    """Step 4: until no row is left to ask."""
    before = 0
    while left() > 0 and len(rows) > before:
        before = len(rows)
        for leader in rows.answers(answers):
            yield from rows.ask(sections(rows, leader)[: left()])


def _rows_of_other_class(
    progress: Progress, place: TablePlace, known: Vector
) -> Generator[Request, Answer, NDArray[np.float64]]:
    """The rows nearest to x0 to which the model gives the new class, nearest first; they count as queries."""
    order = np.argsort(place.distances(known, place.code), kind="stable")[:ASKED_ROWS]
    found = [np.empty((0, place.d))]
    for start in range(0, order.size, BATCH):
        rows = known[order[start : start + BATCH]][: max(0, progress.left)]
        if not len(rows):
            break
        margins = yield from ask_margins(progress, list(rows))  # not candidates: they may not be legal for x0
        found.append(rows[margins < 0])
        if sum(len(some) for some in found) >= ENOUGH:
            break
    return np.concatenate(found)


def _singles(rows: Rows) -> list[Vector]:
    """x0 with one other value: every category, and a few values of each number."""
    numbers = sum(1 for axis in rows.axes for side in (-1, 1) if (axis.side == side).any())
    others = sum(axis.codes.size for axis in rows.axes if axis.column.nominal)
    each = int(np.clip((FIRST - others) // max(1, numbers), 1, 6))
    made = []
    for axis in rows.axes:
        levels = np.arange(axis.codes.size) if axis.column.nominal else spread(axis, each)
        made += [changed_in(rows.own, axis.j, code) for code in axis.codes[levels]]
    return made


def _subset(progress: Progress) -> Generator[Request, Answer, Status]:
    """The search for a PP."""
    place = cast(TablePlace, progress.place)
    free = np.flatnonzero(place.can_change)
    whole = float(progress.margins(progress.scores[None])[0])
    if progress.goal.floor == 0.0:
        _ask_for_margin(progress, -whole)
    link, allowed = link_of(progress.scores), progress.left - (progress.options.answers - 1)
    steps = fewest_columns(
        whole, progress.distance, free.size, progress.goal.floor, link, allowed, progress.options.answers
    )

    def point(one: NDArray[np.bool_]) -> Vector:
        w = place.baseline.copy()
        w[free[one]] = place.code[free[one]]
        return w

    def points() -> Generator[list[Array], Vector, list[tuple[NDArray[np.bool_], float]]]:
        try:
            sets = next(steps)
            while True:
                sets = steps.send((yield [point(one) for one in sets]))
        except StopIteration as stop:
            best: list[tuple[NDArray[np.bool_], float]] = stop.value
            return best

    found = yield from driven(progress, points(), ask_margins)
    for one, margin in found[1:]:
        w = point(one)
        progress.others.append(progress.goal.candidate(w, margin, place.sizes(w)))
    return Status.BUDGET


def _ask_for_margin(progress: Progress, margin: float) -> None:
    """Valid means: wins by more than kappa; by default kappa is a part of the margin of x0."""
    given = progress.options.kappa
    kappa = KAPPA * max(margin, 0.0) if given is None else given
    progress.goal = replace(progress.goal, kappa=kappa, floor=kappa)


def _price(progress: Progress, place: TablePlace, cost: Cost | None) -> Callable[[Vector], Vector]:
    """What F charges for rows beside their margin; where the fewest columns are wanted, each costs a whole range."""
    penalty, weight = progress.goal.penalty, progress.options.l1 * progress.options.plausibility
    charge = penalty.l1 + penalty.l2 / 2 if progress.options.fewest else _column(cost) * penalty.l1

    def price(w: Vector) -> Vector:
        sizes = place.sizes(w)
        total = penalty.l1 * sizes.sum(axis=1) + penalty.l2 / 2 * (sizes**2).sum(axis=1)
        total += charge * np.count_nonzero(sizes, axis=1)
        return np.asarray(total if cost is None else total + weight * cost(w))

    return price


def _column(cost: Cost | None) -> float:
    """What each changed column costs, in units of its range."""
    return COLUMN if cost is None else CHEAPER * COLUMN


def _further(progress: Progress, place: TablePlace, cost: Cost | None) -> Callable[[Array], float]:
    """What F charges for a row beside its margin and penalty."""
    l1, weight = progress.goal.penalty.l1, progress.options.plausibility

    def further(w: Array) -> float:
        row = np.asarray(w, np.float64)
        count = int(np.count_nonzero(place.sizes(row)))
        return l1 * (_column(cost) * count + (0.0 if cost is None else weight * float(cost(row[None])[0])))

    return further


def _nearest_cost(place: TablePlace, wanted: Vector) -> Cost:
    """The distance to the nearest of these rows."""
    wanted = wanted[:ENOUGH]

    def cost(w: Vector) -> Vector:
        nearest: Vector = np.min([place.distances(w, row) for row in wanted], axis=0)
        return nearest

    return cost


def link_of(scores: Vector) -> Callable[[Vector], Vector]:
    """The scale on which effects add up: log-odds for probabilities, else the margins themselves."""
    if (scores >= 0).all() and abs(float(scores.sum()) - 1.0) < 1e-3:
        return lambda margins: 2.0 * np.arctanh(np.clip(margins, -0.999, 0.999))
    return lambda margins: margins
