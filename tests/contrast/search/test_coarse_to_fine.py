"""From coarse cells to single pixels: cells tile the picture, queries are kept to, and linear slopes are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.contrast_models import Affine
from tests.support.search_driver import CHANGE, GOAL, Model, Rows, begun, drive
from zomirror.contrast.search.coarse_to_fine import Grid, is_picture, look
from zomirror.problem import Box

SHAPES = [(8, 8), (9, 13), (1, 8, 10), (3, 8, 8), (8, 9, 3)]
AMPLE: dict[str, int] = {"first": 10_000, "each": 10_000, "allowed": 100_000}


def looked(model: Model, shape: tuple[int, ...], *, box: Box | None = None, **sizes: int) -> tuple[Any, Rows]:
    d = int(np.prod(shape))
    box = Box(np.full(d, -0.5), np.full(d, 0.5)) if box is None else box
    origin = begun(model, np.zeros(d))
    scores = model(np.zeros((1, d)))[0]
    scores.flags.writeable = False
    return drive(look(origin, scores, shape, GOAL, box, CHANGE, **(AMPLE | sizes)), model, box)


@pytest.mark.parametrize("shape", [(8, 8), (3, 32, 32), (32, 32, 3), (1, 28, 28), (28, 28, 1)])
def test_two_long_axes_make_a_picture(shape: tuple[int, ...]) -> None:
    assert is_picture(shape)


@pytest.mark.parametrize("shape", [(64,), (7, 8), (2, 4, 4), (8, 8, 8), (1, 1, 8, 8)])
def test_anything_else_is_no_picture(shape: tuple[int, ...]) -> None:
    assert not is_picture(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [1, 2, 4, 8, 16])
def test_cells_tile_the_picture_channel_by_channel(shape: tuple[int, ...], side: int) -> None:
    grid = Grid(shape, side)
    cells = grid.cell_of
    assert cells.shape == (np.prod(shape),)
    assert set(cells.tolist()) == set(range(grid.count))
    places = np.array(list(np.ndindex(shape)))
    space = [i for i in range(len(shape)) if len(shape) == 2 or i != int(np.argmin(shape))]
    for cell in range(grid.count):
        inside = places[cells == cell]
        extent = inside.max(axis=0) - inside.min(axis=0) + 1
        assert all(extent[axis] <= side if axis in space else extent[axis] == 1 for axis in range(len(shape)))
        assert len(inside) == np.prod(extent), "a cell is a whole rectangle"


def test_the_finest_cells_are_the_features() -> None:
    assert Grid((3, 8, 8), 1).count == 192


@pytest.mark.parametrize("shape", SHAPES)
def test_with_queries_enough_the_slopes_of_a_linear_model_are_exact(shape: tuple[int, ...]) -> None:
    model = Affine.draw(int(np.prod(shape)), 3, seed=1)
    slopes, _ = looked(model, shape, first=16)
    np.testing.assert_allclose(slopes, model.weights, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("allowed", [0, 1, 3, 4, 12, 13, 17, 30, 50, 100, 1_000])
@pytest.mark.parametrize("first", [1, 16])
@pytest.mark.parametrize("each", [1, 40])
def test_it_asks_no_more_than_is_allowed(shape: tuple[int, ...], allowed: int, first: int, each: int) -> None:
    model = Affine.draw(int(np.prod(shape)), 3, seed=2)
    slopes, asked = looked(model, shape, first=first, each=each, allowed=allowed)
    assert len(asked) <= allowed
    assert slopes.shape == model.weights.shape
    assert np.isfinite(slopes).all()


def test_the_one_pixel_that_counts_is_found_with_few_queries() -> None:
    """256 features, one of which changes the scores: its slope is exact, and all others are zero."""
    weights = np.zeros((2, 256))
    weights[1, 77] = 5.0
    slopes, asked = looked(Affine(weights, np.array([2.0, 0.0])), (16, 16), first=16, each=8, allowed=100)
    assert len(asked) <= 100
    np.testing.assert_allclose(slopes[:, 77], weights[:, 77])
    assert np.argmax(np.abs(slopes[1])) == 77


def test_a_cell_that_is_not_halved_has_the_mean_slope_of_its_features() -> None:
    model = Affine.draw(64, 2, seed=3)
    slopes, asked = looked(model, (8, 8), first=4, allowed=4)
    assert len(asked) == 4
    for row, weights in zip(slopes.reshape(2, 8, 8), model.weights.reshape(2, 8, 8), strict=True):
        for i, j in np.ndindex(2, 2):
            cell = np.s_[4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
            np.testing.assert_allclose(row[cell], weights[cell].mean())


def test_features_that_cannot_move_are_not_moved_and_have_no_slope() -> None:
    lower, upper = np.full(64, -0.5), np.full(64, 0.5)
    lower[:20] = upper[:20] = 0.0
    slopes, asked = looked(Affine.draw(64, 2, seed=4), (8, 8), box=Box(lower, upper))
    assert (asked[:, :20] == 0).all()
    assert (slopes[:, :20] == 0).all()
    assert (slopes[:, 20:] != 0).any()


def test_impossible_classes_have_finite_slopes_and_the_same_points_are_asked_twice() -> None:
    def model(batch: Rows) -> Rows:
        return np.column_stack([Affine.draw(64, 2, seed=5)(batch), np.full(len(batch), -np.inf)])

    (slopes, asked), (_, again) = (looked(model, (8, 8), first=16, each=8, allowed=200) for _ in range(2))
    assert np.isfinite(slopes).all()
    assert np.array_equal(asked, again)
