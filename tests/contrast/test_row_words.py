"""Sentences about rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from zomirror.contrast.explanation import Explanation
from zomirror.contrast.row_words import row_part, row_sentence
from zomirror.contrast.sentence import answer, sentence
from zomirror.features.place import Change
from zomirror.result import History, Status

NONE, COUNTS = np.empty(0), np.empty(0, np.int64)
EMPTY = History(COUNTS, NONE, NONE, NONE, NONE, COUNTS)
CHANGES = (Change("housing", "rent", "own"), Change("income", 28_800, 31_000))


def one(**values: Any) -> Explanation:
    given: dict[str, Any] = {
        "kind": "PN",
        "valid": True,
        "label": 0,
        "contrast_label": 1,
        "x": np.array([1.0, 0.2]),
        "x0": {"housing": "rent", "income": 28_800},
        "perturbed": {"housing": "own", "income": 31_000},
        "scores_before": np.array([1.0, 0.0]),
        "scores_after": np.array([0.0, 1.0]),
        "margin": -1.0,
        "objective": 0.1,
        "l1_norm": 1.2,
        "l2_norm": 1.0,
        "nnz": 2,
        "nfev": 3,
        "sent": 3,
        "seed": 0,
        "status": Status.STALLED,
        "message": Status.STALLED.value,
        "history": EMPTY,
        "scale": np.ones(()),
        "settings": {},
        "feature_names": ("housing", "income"),
        "class_names": ("refused", "granted"),
        "space": "table",
        "listed": CHANGES,
    }
    return Explanation(**given | values)


def test_the_sentence_of_a_pn():
    wanted = "refused; granted if housing: rent -> own and income: 28,800 -> 31,000"
    assert row_sentence(one()) == sentence(one()) == one().words() == wanted


def test_the_sentence_of_a_pp_and_of_both():
    pp = one(kind="PP", contrast_label=0, listed=(Change("housing", "own", "rent"),))
    assert pp.words() == "refused because of housing = rent, which alone is enough"
    both = replace(pp, listed=CHANGES)
    assert row_part(both) == " because of housing = own and income = 31,000, which alone are enough"
    assert answer([one(), pp]) == (
        "refused because of housing = rent, which alone is enough; "
        "granted if housing: rent -> own and income: 28,800 -> 31,000"
    )
    noted = replace(pp, message=f"{Status.STALLED.value}; the baseline alone has this class")
    assert noted.words().endswith("enough (the baseline alone has this class)")


@pytest.mark.parametrize("kind", ["PN", "PP"])
def test_what_was_not_found_is_said(kind):
    none = one(kind=kind, valid=False, message="nothing", listed=())
    assert none.words() == f"{kind} of refused: nothing"
    assert answer([none]) == f"refused; {kind}: nothing"
    assert one(valid=False, message="nothing", settings={"task": "attack"}).words() == "attack on refused: nothing"


def test_many_columns_are_counted():
    many = one(listed=tuple(Change(f"c{i}", 0, 1) for i in range(9)))
    assert many.words().endswith("c5: 0 -> 1 and 3 more columns")
    assert one(listed=many.listed[:7]).words().endswith("and 1 more column")


def test_where_the_baseline_has_the_class_only_that_is_said():
    said = "the baseline alone has this class, by at least the margin of x0: choose another baseline"
    pp = one(kind="PP", contrast_label=0, nnz=0, listed=(), message=f"{Status.TARGET.value}; {said}")
    assert row_sentence(pp) == f"PP of refused: {said}"
    assert row_part(pp) == f"; PP: {said}"
    assert row_sentence(one(valid=False, message="no valid one; try again")) == "PN of refused: no valid one; try again"
