"""Parts of an array: their numbers, sizes, centres and neighbours."""

from __future__ import annotations

import numpy as np

from zomirror.features.parts import baselines_of, edges_of, part_numbers, positions_of, weights_of

LABELS = np.array([[4, 4, 9], [4, -2, 9], [7, 7, 7]])


def test_parts_are_numbered_in_the_order_of_their_labels() -> None:
    index, labels = part_numbers(LABELS, (3, 3))
    assert labels == [4, 7, 9]
    np.testing.assert_array_equal(index, [[0, 0, 2], [0, 3, 2], [1, 1, 1]])
    np.testing.assert_allclose(weights_of(index, 3), np.array([3, 3, 2]) / 8)
    np.testing.assert_allclose(positions_of(index, 3), np.array([[1 / 3, 1 / 3], [2, 1], [0.5, 2]]))
    np.testing.assert_array_equal(edges_of(index, 3), [[0, 1], [0, 2], [1, 2]])


def test_several_baselines_and_one_that_is_a_list_of_numbers() -> None:
    x0 = np.arange(3.0)
    assert baselines_of([1.0, 1.0, 1.0], x0, {}).shape == (1, 3)
    assert baselines_of([np.ones(3), 0.0, lambda x: x + 1], x0, {}).shape == (3, 3)
    assert baselines_of(("zero", "one"), x0, {"zero": np.zeros_like, "one": np.ones_like}).shape == (2, 3)
