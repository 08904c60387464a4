"""The model of the margin: what it must say at rows it has seen, between them, and of sums of columns."""

from __future__ import annotations

import numpy as np

from zomirror.contrast.search.table_search.column_model import ColumnModel, Places


def known(count: int, columns: int, seed: int) -> tuple[Places, np.ndarray]:
    """Random rows, the first of which is x0, and the values of a function with interactions."""
    rng = np.random.default_rng(seed)
    side = rng.integers(-1, 2, (count, columns))
    tau = rng.uniform(0.1, 1.0, side.shape) * (side != 0)
    side[0], tau[0] = 0, 0.0
    for j in range(columns):  # each column alone, too
        side[1 + j], tau[1 + j] = np.eye(columns)[j], np.eye(columns)[j]
    signed = side * tau
    return Places(side, tau), 2.0 + signed @ np.arange(1.0, columns + 1) + 0.3 * signed[:, 0] * signed[:, 1]


def test_it_passes_through_what_it_has_seen() -> None:
    places, values = known(30, 4, seed=0)
    mean, deviation = ColumnModel(places, values, float(values[0]))(places)
    np.testing.assert_allclose(mean, values, atol=0.02)
    assert deviation.max() < 0.05 * np.std(values)


def test_the_effect_of_a_number_is_linear_between_two_values() -> None:
    """One column known at 0, 0.5 and 1: halfway between two of them the mean is halfway between their values."""
    side, tau = np.array([[0], [1], [1]]), np.array([[0.0], [0.5], [1.0]])
    model = ColumnModel(Places(side, tau), np.array([3.0, 1.0, 2.0]), 3.0)
    halfway = Places(np.array([[1], [1]]), np.array([[0.25], [0.75]]))
    mean, deviation = model(halfway)
    np.testing.assert_allclose(mean, [2.0, 1.5], atol=1e-2)
    _, there = model(Places(side[1:], tau[1:]))
    assert deviation.min() > 10 * there.max()


def test_effects_of_two_columns_add_up_where_nothing_says_otherwise() -> None:
    """The columns are known alone only; their interaction is as likely up as down."""
    side, tau = np.array([[0, 0], [1, 0], [0, 1]]), np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = ColumnModel(Places(side, tau), np.array([5.0, 3.0, 4.0]), 5.0)
    both = Places(np.array([[1, 1]]), np.array([[1.0, 1.0]]))
    np.testing.assert_allclose(model.mean(both), [2.0], atol=1e-2)


def test_swaps_are_the_rows_that_they_stand_for() -> None:
    places, values = known(40, 5, seed=1)
    model = ColumnModel(places, values, float(values[0]))
    rng = np.random.default_rng(2)
    owner = rng.integers(0, 5, 12)
    side, tau = np.zeros((12, 5), int), np.zeros((12, 5))
    side[np.arange(12), owner], tau[np.arange(12), owner] = rng.choice([-1, 1], 12), rng.uniform(0.1, 1.0, 12)
    alone, rows = Places(side, tau), places[np.arange(6, 13)]
    swapped = Places(np.repeat(rows.side, 12, axis=0), np.repeat(rows.tau, 12, axis=0))
    place = np.arange(len(swapped.side)), np.tile(owner, 7)
    swapped.side[place], swapped.tau[place] = np.tile(side[np.arange(12), owner], 7), np.tile(tau.sum(axis=1), 7)
    np.testing.assert_allclose(
        model.mean_of_swaps(rows, alone, owner).ravel(), model.mean(swapped), rtol=1e-9, atol=1e-9
    )
