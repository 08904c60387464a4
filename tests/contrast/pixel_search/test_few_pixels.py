"""attack(l0=...): at most that many pixels, or as few as possible, on the grid of 8 bits, within the budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Affine, Counted, Curved, label_of
from zomirror import datasets, models

DIGIT = datasets.digits().images[6, None].astype(np.float32) / 255
COLOURS = np.random.default_rng(0).integers(0, 256, (3, 10, 10)) / 255
BENT: Any = Curved.draw(300, classes=3, seed=1)


def pixels_of(a: zm.Explanation) -> int:
    return int(np.count_nonzero(np.any(a.x, axis=0)))


@pytest.mark.parametrize("l0", [4, 30, "least"])
@pytest.mark.parametrize("budget", [100, 700])
def test_pixels_are_counted_with_their_channels(l0: Any, budget: int) -> None:
    model = Counted(BENT)
    a = zm.attack(model, COLOURS, l0=l0, budget=budget, rng=0)
    assert model.rows == a.nfev <= budget
    assert a.settings["l0"] == l0
    if a.valid:
        assert label_of(BENT, a.perturbed) == a.contrast_label != a.label
        assert l0 == "least" or pixels_of(a) <= l0
        np.testing.assert_allclose(a.perturbed * 255, np.rint(a.perturbed * 255), atol=1e-9)
    else:
        assert budget == 100 or l0 == 4
        assert "no adversarial input was found" in a.message


def test_the_fewest_pixels_of_a_linear_model_are_found() -> None:
    """Greedily the largest gains are the fewest: each pixel goes to the bound that helps most, and all add up."""
    rng = np.random.default_rng(3)
    model, x0 = Affine(rng.normal(size=(2, 64)) ** 3, np.array([12.0, 0.0])), rng.uniform(0.3, 0.7, (1, 8, 8))
    label = label_of(model, x0)
    slope = model.weights[1 - label] - model.weights[label]
    gains = np.sort(np.where(slope > 0, slope * (1 - x0.ravel()), -slope * x0.ravel()))[::-1]
    scores = model(x0[None])[0]
    fewest = 1 + int(np.searchsorted(np.cumsum(gains), scores[label] - scores[1 - label]))
    a = zm.attack(model, x0, l0="least", kappa=0.0, budget=1_500, rng=0)
    assert a.valid
    assert pixels_of(a) <= fewest + 1


@pytest.mark.parametrize("target", [None, 8])
def test_a_digit_changes_with_few_pixels(target: int | None) -> None:
    few = zm.attack(models.path("lenet"), DIGIT, l0="least", target=target, budget=800, rng=0)
    near = zm.attack(models.path("lenet"), DIGIT, target=target, budget=800, rng=0)
    assert few.valid
    assert pixels_of(few) <= min(25, pixels_of(near))
    limited = zm.attack(models.path("lenet"), DIGIT, l0=pixels_of(few) + 4, target=target, budget=800, rng=0)
    assert limited.valid
    assert pixels_of(limited) <= pixels_of(few) + 4
    if target is not None:
        assert few.contrast_label == limited.contrast_label == target


def test_a_limit_that_is_too_low_is_said() -> None:
    flat = Affine(np.stack([np.zeros(100), np.full(100, 1.0)]), np.array([80.0, 0.0]))
    a = zm.attack(flat, np.full((1, 10, 10), 0.5), l0=3, kappa=0.0, budget=200, rng=0)
    assert not a.valid
    assert "the class changed with more than l0 = 3 pixels only; try a larger l0" in a.message


def test_rows_that_are_no_images_have_features_for_pixels() -> None:
    a = zm.attack(Curved.draw(24), np.full(24, 0.5), l0="least", budget=400, rng=0)
    assert a.valid
    assert a.nnz <= zm.attack(Curved.draw(24), np.full(24, 0.5), budget=400, rng=0).nnz


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"l0": 0}, "l0"),
        ({"l0": "fewest"}, 'l0 to be a number of pixels or "least"'),
        ({"l0": 3, "method": zm.methods.zo_ada_expmd()}, "no method with l0"),
        ({"l0": 3, "bounds": (-np.inf, np.inf), "scale": 1.0}, "finite bounds"),
    ],
)
def test_wrong_limits_are_refused_before_anything_is_asked(options: Any, says: str) -> None:
    model = Counted(BENT)
    with pytest.raises(zm.errors.ArgumentError, match=says):
        zm.attack(model, COLOURS, **options)
    assert model.rows == 0
