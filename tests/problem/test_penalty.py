"""h(x) = l1 |x|_1 + (l2/2) |x|_2^2."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zomirror as zm

NUMPY_HALF: Any = np.float32(0.5)
NUMPY_TWO: Any = np.int64(2)


def test_value_by_hand() -> None:
    x = np.array([1.0, -2.0, 0.0])
    assert zm.methods.ElasticNet(0.5, 3.0)(x) == 0.5 * 3 + 1.5 * 5
    assert zm.methods.ElasticNet(0.5)(x) == 1.5
    assert zm.methods.ElasticNet(l2=3.0)(x) == 7.5
    assert zm.methods.ElasticNet()(x) == 0.0


@given(l1=st.floats(0, 1e3), l2=st.floats(0, 1e3), seed=st.integers(0, 99))
def test_value_is_even_convex_and_zero_at_zero(l1: float, l2: float, seed: int) -> None:
    h = zm.methods.ElasticNet(l1, l2)
    x, y = np.random.default_rng(seed).normal(size=(2, 7))
    assert h(np.zeros(7)) == 0
    assert h(-x) == h(x)
    assert h((x + y) / 2) <= (h(x) + h(y)) / 2 * (1 + 1e-12)


def test_float32_is_summed_in_float64() -> None:
    x = np.array([1.0, 2.0**-30], np.float32)
    assert zm.methods.ElasticNet(1.0)(x) == 1 + 2.0**-30
    assert zm.methods.ElasticNet(l2=2.0)(np.full(3, 2.0**100, np.float32)) == 3 * 2.0**200


def test_beyond_the_range_is_inf_without_a_warning() -> None:
    with np.errstate(all="warn"):
        assert zm.methods.ElasticNet(l2=1.0)(np.array([1e200])) == np.inf


@pytest.mark.parametrize("name", ["l1", "l2"])
@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        (-0.1, ValueError, "{} >= 0, got -0.1"),
        (np.nan, ValueError, "{} to be finite, got nan"),
        (np.inf, ValueError, "{} to be finite, got inf"),
        ("0.1", TypeError, "{} to be a number, got '0.1'"),
        (True, TypeError, "{} to be a number, got True"),
        (None, TypeError, "{} to be a number, got None"),
        (1j, TypeError, "{} to be a number, got 1j"),
        (np.ones(2), TypeError, "{} to be a number, got array"),
    ],
)
def test_wrong_weights_are_refused(name: str, value: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence.format(name)) as caught:
        zm.methods.ElasticNet(**{name: value})
    assert isinstance(caught.value, zm.errors.ZomirrorError)


def test_numbers_are_plain_and_frozen() -> None:
    h = zm.methods.ElasticNet(l1=NUMPY_HALF, l2=NUMPY_TWO)
    assert type(h.l1) is float
    assert type(h.l2) is float
    assert h == zm.methods.ElasticNet(0.5, 2.0)
    with pytest.raises(FrozenInstanceError):
        h.l1 = 1.0  # type: ignore[misc]
