"""The search by columns against brute force: every legal row, or every set of columns, of small tables."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.contrast.search.table_search.column_proposal import COLUMN

LEVELS = {"a": range(10), "b": range(0, 100, 10), "c": "uvw", "d": (False, True)}
"""Every value of each column; together 600 rows."""
GRID = {name: [row[j] for row in product(*LEVELS.values())] for j, name in enumerate(LEVELS)}
TABLE = zm.Table(GRID, step={"b": 10})


def score_of(seed: int, *, jumps: bool) -> Any:
    """A random score of rows with interactions; with `jumps` it is piecewise constant, like that of trees."""
    rng = np.random.default_rng(seed)
    slope, pair = rng.normal(size=4), 0.5 * rng.normal(size=(4, 4))
    category = rng.normal(size=3)

    def score(frame: Any) -> Any:
        numbers = np.stack(
            (
                np.asarray(frame["a"], float) / 9,
                np.asarray(frame["b"], float) / 90,
                category["uvw".index(frame["c"])] if isinstance(frame["c"], str) else
                np.array([category["uvw".index(one)] for one in frame["c"]]),
                np.asarray(frame["d"], float),
            ),
            axis=-1,
        )  # fmt: skip
        numbers = np.round(numbers * 4) / 4 if jumps else numbers
        return numbers @ slope + np.einsum("...i,ij,...j->...", numbers, pair, numbers)

    return score


def model_of(seed: int, *, jumps: bool) -> Any:
    """Two classes: the score is above the median of all rows or not."""
    score = score_of(seed, jumps=jumps)
    middle = float(np.median(score(GRID)))

    def model(frame: Any) -> Any:
        above = score(frame) - middle
        return np.stack((-above, above), axis=1)

    return model


def prices(rows: dict[str, Any], x0: dict[str, Any]) -> tuple[Any, Any]:
    """The distance of all rows from x0 with the charge for each column, and the number of changed columns."""
    apart = np.stack([np.array([value != x0[name] for value in rows[name]]) for name in LEVELS], axis=1)
    sizes = apart.astype(float)
    sizes[:, 0] = np.abs(np.array(rows["a"]) - x0["a"]) / 9
    sizes[:, 1] = np.abs(np.array(rows["b"]) - x0["b"]) / 90
    return sizes.sum(axis=1) + COLUMN * apart.sum(axis=1), apart.sum(axis=1)


def coded(e: zm.Explanation) -> Any:
    """The answer in codes."""
    return TABLE.coded({name: [value] for name, value in e.perturbed.items()})[0]


def cases(count: int) -> Any:
    """Rows near the boundary of random models, of both kinds."""
    for seed in range(count):
        model = model_of(seed, jumps=bool(seed % 2))
        i = int(np.random.default_rng(seed).integers(600))
        yield model, {name: values[i] for name, values in GRID.items()}


def test_the_nearest_of_all_rows_is_found() -> None:
    """In 19 of 20 tables no row of 600 with the other class, by 1 % of the margin of x0, costs less."""
    found = []
    for model, x0 in cases(20):
        e = zm.explain(model, x0, features=TABLE)
        scores = model(GRID)
        own = model({name: [value] for name, value in x0.items()})[0]
        margin = (scores[:, 0] - scores[:, 1]) * (1 if own[0] > own[1] else -1)
        price, _ = prices(GRID, x0)
        best = price[margin < -0.01 * abs(own[0] - own[1])].min()
        assert e.valid
        assert e.nfev <= 400
        row = {name: [value] for name, value in e.perturbed.items()}
        assert model(row)[0].argmax() == e.contrast_label != e.label
        assert all(value in LEVELS[name] for name, value in e.perturbed.items())
        found.append(float(prices(row, x0)[0][0] / best))
    assert np.mean(np.array(found) < 1 + 1e-9) >= 0.95


def test_fewest_is_the_least_number_of_columns() -> None:
    for model, x0 in cases(8):
        e = zm.explain(model, x0, features=TABLE, fewest=True)
        scores, own = model(GRID), model({name: [value] for name, value in x0.items()})[0]
        margin = (scores[:, 0] - scores[:, 1]) * (1 if own[0] > own[1] else -1)
        _, count = prices(GRID, x0)
        assert e.nnz == count[margin < -0.01 * abs(own[0] - own[1])].min()


def test_answers_differ_and_one_with_the_columns_of_a_better_one_changes_one_of_them_half_as_much() -> None:
    for model, x0 in cases(4):
        es = zm.explain(model, x0, features=TABLE, answers=4)
        sets = [frozenset(change.name for change in e.changes) for e in es]
        assert all(e.valid for e in es)
        assert len(set(sets)) == len(sets)
        sizes = [dict(zip(LEVELS, TABLE.place(x0, "PN").sizes(coded(e)), strict=True)) for e in es]
        for i, j in combinations(range(len(es)), 2):
            assert not sets[i] <= sets[j] or any(sizes[j][name] <= sizes[i][name] / 2 for name in sets[i])
        assert es[0].nfev <= 500


@pytest.mark.parametrize("rule", ["increasing", "decreasing", "fixed"])
def test_directed_columns_never_move_the_other_way(rule: str) -> None:
    for model, x0 in cases(4):
        asked: list[Any] = []

        def watched(frame: Any, model: Any = model, asked: list[Any] = asked) -> Any:
            asked.append(list(zip(frame["a"], frame["b"], strict=True)))
            return model(frame)

        zm.explain(watched, x0, features=zm.Table(GRID, step={"b": 10}, **{rule: ["a", "b"]}), budget=300)
        del asked[1]  # x0 again beside a reference row, which tells whether the model is deterministic
        a, b = (np.array(column) for column in zip(*[row for batch in asked for row in batch], strict=True))
        sign = {"increasing": 1, "decreasing": -1, "fixed": 0}[rule]
        for column, own in ((a, x0["a"]), (b, x0["b"])):
            assert ((column - own) * sign >= 0).all() if sign else (column == own).all()


def test_plausible_ends_on_the_way_to_a_row_of_the_other_class() -> None:
    """HEOM to the answer plus that from it to the nearest row of its class is at most 1.05 times the direct way."""
    rng = np.random.default_rng(1)
    for model, x0 in cases(6):
        kept = rng.choice(600, 60, replace=False)
        known = {name: [values[i] for i in kept] for name, values in GRID.items()}
        table = TABLE
        e = zm.explain(model, x0, features=table, plausible=known)
        codes, place = table.coded(known), table.place(x0, "PN")
        wanted = codes[model(known).argmax(axis=1) != e.label]
        answer = coded(e)
        near, far = place.distances(wanted, answer).min(), place.distances(wanted, place.code).min()
        assert e.valid
        assert place.sizes(answer).sum() + near <= 1.05 * far + 1e-9
