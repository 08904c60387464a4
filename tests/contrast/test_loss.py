"""Margins are negative exactly when the explanation is valid; losses are the formulas of the module."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zomirror.contrast.loss import Hinge, Softplus, change_margin, is_valid, keep_margin
from zomirror.errors import ArgumentError

SHAPES = st.tuples(st.integers(1, 6), st.integers(2, 5))
SCORES = hnp.arrays(np.float64, SHAPES, elements=st.integers(-3, 3).map(float))  # small integers: many ties


@given(SCORES, st.data())
def test_margins_are_the_formulas(scores, data):
    k = data.draw(st.integers(0, scores.shape[1] - 1))
    t = data.draw(st.integers(0, scores.shape[1] - 1))
    rival = np.array([max(s for i, s in enumerate(row) if i != k) for row in scores])
    np.testing.assert_array_equal(keep_margin(scores, k), rival - scores[:, k])
    np.testing.assert_array_equal(change_margin(scores, k), scores[:, k] - rival)
    np.testing.assert_array_equal(change_margin(scores, k, t), keep_margin(scores, t))


@given(SCORES, st.data())
def test_valid_means_that_argmax_agrees_and_a_tie_is_not_valid(scores, data):
    k = data.draw(st.integers(0, scores.shape[1] - 1))
    best = scores.argmax(axis=1)
    kept, changed = is_valid(keep_margin(scores, k)), is_valid(change_margin(scores, k))
    tie = keep_margin(scores, k) == 0
    assert np.all(best[kept] == k)
    assert np.all(best[changed] != k)
    np.testing.assert_array_equal(~kept & ~changed, tie)


@given(SCORES, st.data())
def test_one_label_per_row_equals_the_rows_asked_alone(scores, data):
    labels = data.draw(hnp.arrays(np.int64, len(scores), elements=st.integers(0, scores.shape[1] - 1)))
    for margin in (keep_margin, change_margin):
        alone = [margin(row[None], int(k))[0] for row, k in zip(scores, labels, strict=True)]
        np.testing.assert_array_equal(margin(scores, labels), alone)


@pytest.mark.parametrize("classes", [2, 10, 63, 64, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept_and_scores_are_not_written(classes, dtype):
    scores = np.random.default_rng(0).normal(size=(7, classes)).astype(dtype)
    before = scores.copy()
    scores.flags.writeable = False
    for k in (0, classes // 2, classes - 1):
        margin = keep_margin(scores, k)
        assert margin.dtype == dtype
        np.testing.assert_array_equal(margin, np.delete(before, k, axis=1).max(axis=1) - before[:, k])
        for loss in (Hinge(0.5), Softplus(0.5, 0.3)):
            assert loss(margin).dtype == dtype
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize(
    "row", [[np.nan, 1.0, 2.0], [1.0, np.nan, 2.0], [np.inf, np.inf, 0.0], [-np.inf, -np.inf, -np.inf]]
)
@pytest.mark.parametrize("label", [0, 1])
def test_scores_that_are_not_numbers_are_never_valid(row, label):
    scores = np.array([row])
    assert not is_valid(keep_margin(scores, label))[0]
    assert not is_valid(change_margin(scores, label))[0]


def test_infinite_scores_of_a_clear_winner_are_valid():
    assert is_valid(keep_margin(np.array([[0.0, -np.inf, -np.inf]]), 0))[0]
    assert is_valid(change_margin(np.array([[-np.inf, 0.0, -np.inf]]), 0))[0]


MARGINS = hnp.arrays(np.float64, st.integers(1, 9), elements=st.floats(-1e6, 1e6))


@given(MARGINS)
def test_softplus_of_the_paper_code_is_logaddexp(margin):
    np.testing.assert_array_equal(Softplus()(margin), np.logaddexp(0.0, margin))


@given(MARGINS, st.floats(0, 100), st.floats(1e-3, 1e3))
def test_softplus_lies_within_tau_log_2_above_the_hinge(margin, kappa, tau):
    gap = Softplus(kappa, tau)(margin) - Hinge(kappa)(margin)
    room = 1e-12 * (np.abs(margin) + kappa + tau)
    assert np.all(gap >= -room)
    assert np.all(gap <= tau * math.log(2) + room)


def test_the_softplus_gap_is_largest_on_the_kink():
    assert Softplus(kappa=2.0, temperature=0.3)(np.array([-2.0]))[0] == pytest.approx(-2.0 + 0.3 * math.log(2))


def test_the_hinge_is_flat_beyond_kappa_and_the_softplus_nowhere():
    margin = np.array([-5.0, -4.0, -1.0, 0.0, 3.0])
    np.testing.assert_array_equal(Hinge(1.0)(margin), [-1.0, -1.0, -1.0, 0.0, 3.0])
    assert all(a < b for a, b in pairwise(Softplus(1.0)(margin)))


def test_no_overflow_for_huge_margins():
    margin = np.array([-1e300, 1e300], dtype=np.float64)
    np.testing.assert_array_equal(Softplus(0.0, 1.0)(margin), [0.0, 1e300])
    small = np.array([-3e38, 3e38], dtype=np.float32)
    np.testing.assert_array_equal(Softplus(0.0, 1.0)(small), np.maximum(small, 0))


@pytest.mark.parametrize("kappa", [-1.0, math.inf, math.nan])
def test_bad_kappa_is_refused(kappa):
    for loss in (Hinge, Softplus):
        with pytest.raises(ArgumentError, match="expected kappa"):
            loss(kappa)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_bad_temperature_is_refused(temperature):
    with pytest.raises(ArgumentError, match="expected temperature"):
        Softplus(0.0, temperature)
