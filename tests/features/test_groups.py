"""Groups of entries: what is replaced, and what is refused in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError, ArgumentTypeError

X0 = np.arange(1.0, 7.0).reshape(2, 3)
LABELS = np.array([[0, 0, 5], [5, -1, 7]])


def test_absent_groups_take_the_baseline_and_negative_labels_stay() -> None:
    place = zm.Groups(LABELS, baseline=-1.0).place(X0, "PP")
    np.testing.assert_array_equal(place.inputs(np.array([[1.0, 0.0, 0.0]]))[0], [[1, 2, -1], [-1, 5, -1]])
    np.testing.assert_array_equal(place.perturbed(place.as_it_is), X0)
    np.testing.assert_allclose(place.weights, [0.4, 0.4, 0.2])
    assert place.names == ("group 0", "group 5", "group 7")
    assert [one.name for one in place.changes(np.array([0.0, 0.0, 1.0]))] == ["group 7"]


def test_a_pn_replaces_what_a_pp_keeps() -> None:
    w = np.array([[1.0, 0.0, 1.0]])
    kept = zm.Groups(LABELS, baseline=X0 + 10).place(X0, "PP").inputs(w)
    replaced = zm.Groups(LABELS, baseline=X0 + 10).place(X0, "PN").inputs(1 - w)
    np.testing.assert_array_equal(kept, replaced)


def test_a_soft_group_is_there_in_part() -> None:
    place = zm.Groups(LABELS, baseline=0.0, soft=True).place(X0, "PP")
    np.testing.assert_allclose(place.inputs(np.array([[0.5, 1.0, 0.25]]))[0], [[0.5, 1, 3], [4, 5, 1.5]])
    assert place.space == "graded"


def test_soft_groups_are_explained_by_a_descent() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(6, 3))
    x0, labels = rng.random(6), np.arange(6) // 2
    found = zm.explain(
        lambda batch: batch @ weights, x0, kind="PP", features=zm.Groups(labels, soft=True), budget=2_000
    )
    assert found.valid
    back = zm.Explanation.from_json(found.to_json())
    np.testing.assert_array_equal(back.x, found.x)


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"labels": np.zeros((3, 2), int)}, ArgumentError, r"labels of shape \(2, 3\).*got \(3, 2\)"),
        ({"labels": np.zeros((2, 3))}, ArgumentTypeError, "labels to be integers"),
        ({"labels": np.zeros((2, 3), int)}, ArgumentError, "at least two parts, got 1"),
        (
            {"labels": LABELS, "names": {3: "left"}},
            ArgumentError,
            r"named group to hold an entry, got none .*3 .'left'",
        ),
        ({"labels": LABELS, "names": 3}, ArgumentTypeError, "names to be a sequence or a mapping"),
        ({"labels": LABELS, "baseline": X0}, ArgumentError, "baseline that differs from x0"),
        ({"labels": LABELS, "baseline": np.zeros(4)}, ArgumentError, r"baseline of shape \(2, 3\) or one number"),
        ({"labels": LABELS, "baseline": np.nan}, ArgumentError, "finite baseline"),
        ({"labels": LABELS, "baseline": "blur"}, ArgumentError, "baseline to be one of 'mean'"),
        ({"labels": LABELS, "baseline": lambda x: x[:1, :2]}, ArgumentError, r"baseline of shape \(2, 3\)"),
        ({"labels": LABELS, "soft": 1}, ArgumentTypeError, "soft to be True or False"),
    ],
    ids=["shape", "floats", "one", "empty", "names", "x0", "size", "nan", "word", "function", "soft"],
)
def test_what_does_not_fit_is_refused_before_any_query(given: dict[str, Any], error: type, says: str) -> None:
    def never(batch: Any) -> Any:
        raise AssertionError("asked")

    with pytest.raises(error, match=says):
        zm.explain(never, X0, features=zm.Groups(**given))
