"""kappa=None: answers that survive rounding to 8 bits and a little noise; kappa=0 stays the paper's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Affine, Counted
from zomirror import datasets, models

DIGITS = datasets.digits().images[:4, None].astype(np.float32) / 255
LENET = models.path("lenet")


def still_holds(one: zm.Explanation, batch: Any) -> Any:
    same = np.argmax(zm.onnx_classifier(LENET)(batch.astype(np.float32)), axis=1) == one.label
    return same if one.kind == "PP" else ~same


@pytest.mark.parametrize("task", ["PP", "PN", "attack"])
def test_answers_survive_eight_bits_and_noise(task: str) -> None:
    rng = np.random.default_rng(0)
    for x0 in DIGITS[:2]:
        one = zm.attack(LENET, x0, budget=800) if task == "attack" else zm.explain(LENET, x0, kind=task, budget=800)
        assert one.valid
        on_grid = np.rint(one.perturbed * 255)
        np.testing.assert_allclose(one.perturbed * 255, on_grid, atol=1e-3)
        assert still_holds(one, on_grid[None] / 255).all()
        noise = 0.001 * rng.normal(size=(100, *x0.shape))
        assert still_holds(one, np.clip(one.perturbed + noise, 0, 1)).mean() >= 0.98


def test_the_margin_is_a_part_of_the_slope() -> None:
    """On an affine model the margin has one slope a: the answer wins by about 0.0035 |a|."""
    model, x0 = Affine.draw(40, 2, seed=1), np.full(40, 0.5)
    one = zm.explain(model, x0, signed=True, budget=1_500)
    slope = float(np.linalg.norm(model.weights[0] - model.weights[1]))
    assert 0.0035 * slope / 2 < -one.margin < 0.0035 * slope * 2


def test_a_kappa_of_ones_own_is_kept_and_nothing_is_rounded() -> None:
    one = zm.explain(LENET, DIGITS[0], kappa=0.0, budget=500)
    assert one.valid
    assert one.settings["kappa"] == 0.0
    assert (np.abs(one.perturbed * 255 - np.rint(one.perturbed * 255)) > 1e-3).any()
    given = zm.explain(LENET, DIGITS[0], kappa=0.0, features=zm.Vector(step=1 / 17), budget=500)
    changed = given.x != 0
    np.testing.assert_allclose(given.perturbed[changed] * 17, np.rint(given.perturbed[changed] * 17), atol=1e-3)


def test_a_class_that_wins_by_little_is_an_answer_all_the_same() -> None:
    """Steep slopes lead up to an edge behind which another class wins by 1: the margin asked for is out of reach."""

    def edge(batch: Any) -> Any:
        total = batch.sum(axis=1)
        return np.stack([np.where(total < 15, 1_000 * (total + 1), 0.0), np.where(total < 15, 0.0, 1.0)], axis=1)

    counted = Counted(edge)
    one = zm.explain(counted, np.full(20, 0.5), budget=600)
    assert one.valid
    assert "less than" in one.message
    assert counted.rows == one.nfev <= 600
