"""Step rules: equal to a hand computation, in the units that they promise."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zomirror as zm
from zomirror.methods.mirror import MirrorMap
from zomirror.methods.step import StepRule

G = np.ones(3)


def test_constant() -> None:
    rule: StepRule = zm.methods.Constant(2.5)
    memory = rule.init()
    for _ in range(3):
        assert rule.eta(memory, G) == 2.5
        memory = rule.advance(memory, zm.methods.Entropy(), G, 2 * G, 2.5)


PATH = [np.array(p, float) for p in ([0, 0, 0], [1, -1, 0], [1, 2, 0], [1, 2, 0], [0, 0, 4])]


@pytest.mark.parametrize("c", [1.0, 2.0, 0.7])
@pytest.mark.parametrize("first", [1.0, 0.03])
def test_adaptive_equals_the_printed_rule(c: float, first: float) -> None:
    """alpha_{t+1}^2 = alpha_t^2 + lambda_t^2 alpha_t^2 |x_{t+1} - x_t|_1^2, lambda_t = c / (max(|x|_1) + 1)."""
    rule = zm.methods.Adaptive(c, first)
    memory, squared = rule.init(), first**2
    for x, x_next in pairwise(PATH):
        assert rule.eta(memory, G) == pytest.approx(math.sqrt(squared), rel=1e-14)
        factor = c / (max(np.abs(x).sum(), np.abs(x_next).sum()) + 1)
        squared += factor**2 * squared * np.abs(x_next - x).sum() ** 2
        memory = rule.advance(memory, zm.methods.Entropy(), x, x_next, memory)
    assert rule.eta(memory, G) == pytest.approx(math.sqrt(squared), rel=1e-14)


def test_adaptive_by_hand() -> None:
    """Moves of 2 to radius 2, of 3 to radius 3, of 0, of 7 to radius 4, with c = 2."""
    rule, memory = zm.methods.Adaptive(), 1.0
    for x, x_next in pairwise(PATH):
        memory = rule.advance(memory, zm.methods.Entropy(), x, x_next, memory)
    wanted = (1 + (2 * 2 / 3) ** 2) * (1 + (2 * 3 / 4) ** 2) * (1 + 0) * (1 + (2 * 7 / 5) ** 2)
    assert memory == pytest.approx(math.sqrt(wanted), rel=1e-14)


def test_adaptive_with_the_euclidean_map_uses_its_norm_and_constant() -> None:
    rule = zm.methods.Adaptive(c=1.0)
    assert rule.advance(1.0, zm.methods.Euclidean(), PATH[0], PATH[1], 1.0) == pytest.approx(
        math.sqrt(1 + 2), rel=1e-15
    )
    assert rule.advance(2.0, zm.methods.Euclidean(), PATH[1], PATH[2], 2.0) == pytest.approx(
        2 * math.sqrt(1 + 9), rel=1e-15
    )


@pytest.mark.parametrize("mirror", [zm.methods.Entropy(), zm.methods.Euclidean(), zm.methods.PNorm()], ids=str)
@given(seed=st.integers(0, 2**32), scale=st.floats(0, 1e100))
def test_adaptive_never_falls_and_stays_when_nothing_moves(mirror: MirrorMap, seed: int, scale: float) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, 4)) * scale
    rule = zm.methods.Adaptive()
    assert rule.advance(3.0, mirror, x, y, 3.0) >= 3.0
    assert rule.advance(3.0, mirror, x, x, 3.0) == 3.0


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: zm.methods.Constant(0.0), ValueError, "expected eta > 0, got 0.0"),
        (lambda: zm.methods.Constant(-1), ValueError, "expected eta > 0, got -1"),
        (lambda: zm.methods.Constant(np.nan), ValueError, "expected eta to be finite, got nan"),
        (lambda: zm.methods.Constant("1"), TypeError, "expected eta to be a number, got '1'"),  # type: ignore[arg-type]
        (lambda: zm.methods.Adaptive(c=0), ValueError, "expected c > 0, got 0"),
        (lambda: zm.methods.Adaptive(first=-1), ValueError, "expected first > 0, got -1"),
        (lambda: zm.methods.Adaptive(first=math.inf), ValueError, "expected first to be finite, got inf"),
    ],
)
def test_wrong_numbers_are_refused(make: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence) as caught:
        make()
    assert isinstance(caught.value, zm.errors.ZomirrorError)


def test_numpy_numbers_become_plain_ones() -> None:
    """A numpy float64 would lift a float32 run to float64."""
    number: Any = np.float64(2.0)
    assert type(zm.methods.Constant(number).value) is float
    assert type(zm.methods.Adaptive(number, number).first) is float
    assert type(zm.methods.Adaptive(number, number).c) is float
