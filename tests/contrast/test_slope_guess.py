"""A guess of the slopes: taken in three forms, checked before the first query, trusted as far as it is borne out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Affine, Counted, Curved
from zomirror.contrast.slope_guess import as_prior
from zomirror.features.vector import Vector

X0 = np.random.default_rng(0).random((1, 10, 10))
MODEL = Curved.draw(100, classes=4, seed=1)
LINE = Affine.draw(12, 3, seed=2)


def placed(x0: Any, **options: Any) -> Any:
    return Vector(**options).place(x0, "PN")


def test_the_three_forms_say_the_same_of_a_linear_model() -> None:
    x0, W = np.linspace(0.2, 0.8, 12), LINE.weights
    place = placed(x0, signed=True, bounds=(0.0, 2.0))
    for given in (W, lambda x: W if x.shape == (12,) else None, zm.as_classifier(LINE)):
        prior = as_prior(given)
        assert prior is not None
        np.testing.assert_allclose(prior.slopes(place, place.start), W * 2.0, atol=1e-9)
    assert as_prior(None) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((4, 9)), "expected prior to be finite slopes"),
        (lambda x: np.full((4, 1, 10, 10), np.nan), "NaN"),
        ("surrogate.txt", "expected the path of an .onnx file"),
        (object(), "expected prior to be slopes"),
        (np.ones((3, 1, 10, 10)), "expected prior for 4 classes, got 3"),
    ],
)
def test_a_prior_that_does_not_fit_is_refused(given: object, message: str) -> None:
    model = Counted(MODEL)
    with pytest.raises((zm.errors.ArgumentError, zm.errors.ArgumentTypeError), match=message):
        zm.explain(model, X0, prior=given, budget=300)
    assert model.rows == 0 or "classes" in message


def test_a_prior_is_for_arrays() -> None:
    rows = {"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 2.0]}
    with pytest.raises(zm.errors.ArgumentError, match="prior"):
        zm.explain(lambda frame: frame, {"a": 1.0, "b": 1.0}, features=zm.Table(rows), prior=np.ones((2, 2)))


def test_right_slopes_save_queries_and_wrong_ones_do_little_harm() -> None:
    """Few queries: with the model itself as the surrogate F is lower; with noise it is what it is without a prior."""
    model = Curved.draw(256, classes=4, seed=1)
    inputs = list(np.random.default_rng(1).random((5, 1, 16, 16)))
    wrong = np.random.default_rng(5).normal(size=(4, 1, 16, 16))
    F = {}
    for name, prior in (("none", None), ("right", zm.as_classifier(model)), ("wrong", wrong)):
        found = zm.explain_many(model, inputs, kappa=0.0, l1=0.01, l2=0.01, budget=100, prior=prior, rng=0)
        F[name] = float(np.mean([e.objective for e in found]))
    assert F["right"] < 0.9 * F["none"]
    assert F["wrong"] < 1.3 * F["none"]


def test_other_arrays_have_their_search_with_a_prior_too() -> None:
    x0 = np.linspace(0.2, 0.8, 12)
    found = zm.explain(LINE, x0, signed=True, kappa=0.0, budget=300, prior=LINE.weights, rng=0)
    assert found.valid
    assert found.nfev <= 300
    assert found.objective <= 1.02 * zm.explain(LINE, x0, signed=True, kappa=0.0, budget=2_000, rng=0).objective


def test_it_is_part_of_what_a_run_directory_compares(tmp_path: Any) -> None:
    options: dict[str, Any] = {"budget": 150, "run_dir": tmp_path / "run", "rng": 0}
    first = zm.explain(MODEL, X0, prior=np.ones((4, 1, 10, 10)), **options)
    again = zm.explain(MODEL, X0, prior=np.ones((4, 1, 10, 10)), **options)
    assert first.x.tobytes() == again.x.tobytes()
    with pytest.raises(zm.errors.RunError, match="prior"):
        zm.explain(MODEL, X0, prior=np.zeros((4, 1, 10, 10)), **options)
