"""Values as a person reads them."""

from __future__ import annotations

import numpy as np
import pytest

from zomirror.features.tabular.value_words import shown, shown_both


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (28_800, "28,800"),
        (1999, "1999"),
        (np.int64(12_345), "12,345"),
        (0.35, "0.35"),
        (12_345.5, "12,345.5"),
        (3.0, "3"),
        (0.123456789, "0.1235"),
        (True, "True"),
        ("rent", "rent"),
        (None, "missing"),
        (float("nan"), "missing"),
        (float("inf"), "inf"),
    ],
    ids=str,
)
def test_a_value(value, words):
    assert shown(value) == words


def test_two_values_are_told_apart():
    assert shown_both(0.123456781, 0.123456789) == ("0.12345678", "0.12345679")
    assert shown_both("a", "a") == ("a", "a")
