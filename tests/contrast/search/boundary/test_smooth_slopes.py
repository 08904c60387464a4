"""Slopes as a Gaussian field: the posterior mean of the textbook, and the same bits without the compiler."""

from __future__ import annotations

import numpy as np
import pytest

from zomirror.contrast.search.boundary.smooth_slopes import LENGTH, Neighbours
from zomirror.numerics import kernels

SHAPES = [(8, 9), (1, 8, 8), (3, 6, 5), (6, 7, 3)]
SIDE = 4


def dense(near: Neighbours) -> np.ndarray:
    """K as a matrix."""
    d = int(np.prod(near.shape))
    return near.smooth(np.eye(d))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_covariance_is_an_rbf_of_each_channel_plus_the_identity(shape: tuple[int, ...]) -> None:
    near = Neighbours.of(shape, SIDE)
    places = np.indices(shape).reshape(len(shape), -1).T
    apart = places[:, None] - places[None]
    rows, columns = near.axes
    across = (apart[..., rows] ** 2 + apart[..., columns] ** 2) / (2 * (LENGTH * SIDE) ** 2)
    others = [axis for axis in range(len(shape)) if axis not in near.axes]
    same = np.all(apart[..., others] == 0, axis=-1)
    expected = np.exp(-across) * same + np.eye(len(places))
    cut = 1e-3
    np.testing.assert_allclose(dense(near), expected, atol=cut)
    features = np.array([0, 3, 11, 17])
    np.testing.assert_allclose(near.between(features), dense(near)[np.ix_(features, features)], rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_posterior_mean_is_that_of_the_formula(shape: tuple[int, ...]) -> None:
    near, rng = Neighbours.of(shape, SIDE), np.random.default_rng(0)
    d, noise = int(np.prod(shape)), 0.1
    slopes, truth = rng.normal(size=(2, 3, d))
    K = dense(near)
    moves = rng.normal(size=(5, d)) * (rng.random((5, d)) < 0.3)
    change = moves @ truth.T
    M = moves @ K @ moves.T + np.diag(noise * (moves**2).sum(axis=1))
    expected = slopes + (K @ moves.T @ np.linalg.solve(M, change - moves @ slopes.T)).T
    np.testing.assert_allclose(near.learn_moves(slopes, moves, change, noise)[0], expected, atol=1e-8)
    features, steps = np.array([2, 5, 19]), np.array([0.3, -0.2, 0.05])
    single = np.zeros((3, d))
    single[np.arange(3), features] = steps
    by_feature = near.learn_features(slopes, features, steps, single @ truth.T, noise)
    by_move, predicted = near.learn_moves(slopes, single, single @ truth.T, noise)
    np.testing.assert_allclose(by_feature, by_move, atol=1e-9)
    np.testing.assert_allclose(predicted, single @ by_move.T, atol=1e-9)


def test_slopes_that_are_right_stay_and_slopes_that_cannot_be_learnt_too() -> None:
    near, rng = Neighbours.of((8, 8), SIDE), np.random.default_rng(1)
    slopes, moves = rng.normal(size=(3, 64)), rng.normal(size=(4, 64))
    np.testing.assert_allclose(near.learn_moves(slopes, moves, moves @ slopes.T, 0.1)[0], slopes, atol=1e-9)
    nothing = np.full((4, 3), np.nan)
    np.testing.assert_array_equal(near.learn_moves(slopes, moves, nothing, 0.1)[0], slopes)
    np.testing.assert_array_equal(near.learn_features(slopes, np.arange(4), np.ones(4), nothing, 0.1), slopes)


def test_neighbours_share_what_one_pixel_shows() -> None:
    near = Neighbours.of((9, 9), SIDE)
    learnt = near.learn_features(np.zeros((1, 81)), np.array([40]), np.array([0.3]), np.array([[0.3]]), 0.1)[0]
    assert learnt[40] > learnt[41] > learnt[42] > 0
    assert learnt[0] < 1e-3


def test_the_same_bits_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    near, rng = Neighbours.of((3, 8, 8), SIDE), np.random.default_rng(2)
    slopes, moves, change = rng.normal(size=(4, 192)), rng.normal(size=(6, 192)), rng.normal(size=(6, 4))
    found = []
    for compiled in (kernels.found(), None):
        monkeypatch.setattr(kernels, "compiled", compiled)
        learnt = near.learn_features(slopes, np.arange(6) * 7, np.full(6, 0.3), change, 0.1)
        found.append(np.concatenate(near.learn_moves(learnt, moves, change, 0.1)[0]).tobytes())
    assert found[0] == found[1]
