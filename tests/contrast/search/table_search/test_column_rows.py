"""The rows asked so far: which of them are answers."""

from __future__ import annotations

import numpy as np

from zomirror.contrast.search.table_search.column_rows import Rows
from zomirror.contrast.search.table_search.column_sections import sections
from zomirror.contrast.search.table_search.column_values import axes_of
from zomirror.features.tabular.column import Column

UNIT = Column("a", "continuous", 0.0, 10.0, step=0.01, unit=10.0)
CITY = Column("c", "categorical", 0.0, 2.0, np.arange(3.0))


def rows(*asked: tuple[list[float], float], columns: tuple[Column, ...] = (UNIT, UNIT, CITY)) -> Rows:
    """Rows with their margins; a row costs the sum of its sizes."""
    own = np.array([5.0, 5.0, 0.0][: len(columns)])

    def price(w: np.ndarray) -> np.ndarray:
        parts = [column.parts(w[:, j], own[j]) for j, column in enumerate(columns)]
        return np.asarray(np.sum(parts, axis=0))

    made = Rows(own, axes_of(columns, own, own[None]), price, lambda m: m, 0.0, np.array([1.0]))
    asking = made.ask([np.array(w) for w, _ in asked])
    next(asking)
    try:
        asking.send(np.array([margin for _, margin in asked]))
    except StopIteration:
        return made
    raise AssertionError


def test_a_leader_needs_none_of_the_columns_of_a_better_one() -> None:
    made = rows(([7.0, 5.0, 0.0], -1.0), ([6.9, 6.0, 0.0], -1.0), ([5.0, 9.0, 0.0], -1.0), ([6.0, 5.0, 0.0], 1.0))
    assert made.leaders(9) == [1, 3]
    assert made.leaders(1) == [1]
    assert made.nearest(9) == [0, 4]


def test_an_answer_may_contain_a_better_one_if_it_halves_one_of_its_changes() -> None:
    """a + 2 alone is valid, and so are a + 1 with b + 3, and a + 1.5 with the category."""
    made = rows(([7.0, 5.0, 0.0], -1.0), ([6.0, 8.0, 0.0], -1.0), ([6.5, 5.0, 1.0], -1.0))
    assert made.leaders(3) == [1]
    assert made.answers(3) == [1, 2]
    assert made.answers(1) == [1]
    np.testing.assert_array_equal(made.apart(1, made.w[1:], made.masks[1:]), [False, True, False])


def test_a_row_is_asked_once() -> None:
    made = rows(([7.0, 5.0, 0.0], -1.0))
    assert made.knows(np.array([7.0, 5.0, 0.0]))
    assert list(made.ask([made.own, np.array([7.0, 5.0, 0.0])])) == []
    assert len(made) == 2


def test_sections_find_the_last_valid_step_in_few_rounds() -> None:
    """The margin falls below 0 at 7.31: of 500 steps between 5 and 10 that one is found, 7 parts at a time."""
    made, rounds = rows(([10.0, 5.0, 0.0], -1.0)), 0
    while fresh := [w for w in sections(made, made.leaders(1)[0]) if not made.knows(w)]:
        rounds += 1
        asking = made.ask(fresh)
        batch = next(asking)
        try:
            asking.send(np.array([7.305 - w[0] for w in batch]))
        except StopIteration:
            continue
    best = made.w[made.leaders(1)[0]]
    np.testing.assert_allclose(best, [7.31, 5.0, 0.0])
    assert rounds <= 6
