"""A model of which only the class is known: one 1 in each row, from scores or from numbers of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zomirror.classifiers import LabelOnly
from zomirror.errors import ArgumentError, OracleError

BATCH = np.arange(6.0).reshape(3, 2)


def test_scores_and_numbers_of_classes_are_told_alike() -> None:
    scores = np.array([[1.0, 3.0, 2.0], [5.0, 0.0, 0.0], [0.0, 0.0, 0.5]])
    expected = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_array_equal(LabelOnly(lambda batch: scores)(BATCH), expected)
    np.testing.assert_array_equal(LabelOnly(lambda batch: scores.argmax(axis=1), classes=3)(BATCH), expected)


def test_a_score_that_is_nan_names_no_class() -> None:
    answers = LabelOnly(lambda batch: np.array([[0.0, np.nan], [0.0, 1.0], [1.0, 0.0]]))(BATCH)
    assert np.isnan(answers[0]).all()
    np.testing.assert_array_equal(answers[1:], [[0, 1], [1, 0]])


def test_the_batch_cannot_be_written_into() -> None:
    def spoiling(batch: Any) -> Any:
        batch[:] = 0
        return np.zeros(len(batch), int)

    with pytest.raises(ValueError, match="read-only"):
        LabelOnly(spoiling, classes=2)(BATCH.copy())


@pytest.mark.parametrize(
    ("answer", "classes", "error", "says"),
    [
        (np.zeros(3, int), None, ArgumentError, "class_names"),
        (np.array([0, 1, 2]), 2, OracleError, "classes in 0..1"),
        (np.zeros(3), 2, OracleError, "expected scores of shape"),
        (np.zeros((2, 2)), None, OracleError, "expected scores of shape"),
    ],
)
def test_other_answers_are_refused(answer: Any, classes: int | None, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        LabelOnly(lambda batch: answer, classes)(BATCH)
