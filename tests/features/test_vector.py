"""The decision sets and starting points of explanations."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.extra.numpy import arrays
from scipy.optimize import Bounds

import zomirror as zm
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.vector import Vector, VectorPlace

X0 = np.array([0.0, 0.25, 0.5, 1.0])


def place_of(kind: str, x0: Any, **options: Any) -> VectorPlace:
    return Vector(**options).place(x0, kind)


def sides(place: VectorPlace) -> tuple[Any, Any]:
    """The decision set in input units."""
    return place.box.lower * place.scale, place.box.upper * place.scale


def test_pn_adds_inside_the_bounds_and_starts_at_the_centre() -> None:
    place = place_of("PN", X0)
    lower, upper = sides(place)
    assert lower.tolist() == [0, 0, 0, 0]
    assert upper.tolist() == [1, 0.75, 0.5, 0]
    assert place.start.tolist() == [0.5, 0.375, 0.25, 0]
    assert place.inputs(np.zeros((1, 4)))[0].tolist() == X0.tolist()


def test_signed_pn_goes_both_ways() -> None:
    lower, upper = sides(place_of("PN", X0, signed=True))
    assert (lower + X0).tolist() == [0, 0, 0, 0]
    assert (upper + X0).tolist() == [1, 1, 1, 1]


def test_pp_lies_between_nothing_and_the_input_and_starts_at_the_input() -> None:
    place = place_of("PP", X0)
    lower, upper = sides(place)
    assert lower.tolist() == [0, 0, 0, 0]
    assert upper.tolist() == X0.tolist()
    assert place.inputs(place.start[None])[0].tolist() == X0.tolist()
    assert place.inputs(np.zeros((1, 4)))[0].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("baseline", [0.5, np.array([0.5, 0.5, 0.5, 0.5])])
def test_pp_from_a_baseline_has_both_signs(baseline: Any) -> None:
    place = place_of("PP", X0, baseline=baseline)
    lower, upper = sides(place)
    assert lower.tolist() == [-0.5, -0.25, 0, 0]
    assert upper.tolist() == [0, 0, 0, 0.5]
    assert place.inputs(place.start[None])[0].tolist() == X0.tolist()
    assert place.inputs(np.zeros((1, 4)))[0].tolist() == [0.5] * 4


@pytest.mark.parametrize("fixed", [[0, 2], np.array([True, False, True, False]), (0, 2)])
@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_fixed_features_stay_what_they_are_in_the_input(kind: str, fixed: Any) -> None:
    place = place_of(kind, X0, fixed=fixed, signed=kind == "PN")
    for w in (place.box.lower, place.box.upper, place.start):
        assert place.inputs(np.atleast_2d(w))[0][[0, 2]].tolist() == X0[[0, 2]].tolist()


@pytest.mark.parametrize(
    "bounds",
    [
        ([0, 10, -1], [2, 20, 1]),
        Bounds([0, 10, -1], [2, 20, 1]),
        [(0, 2), (10, 20), (-1, 1)],
    ],
)
def test_bounds_per_feature_are_the_units(bounds: Any) -> None:
    place = place_of("PN", np.array([1.0, 10.0, 0.5]), bounds=bounds, signed=True)
    assert np.asarray(place.scale).tolist() == [2, 10, 2]
    assert np.asarray(place.box.lower).tolist() == [-0.5, 0, -0.75]
    assert np.asarray(place.box.upper).tolist() == [0.5, 1, 0.25]


def test_scale_overrides_the_units() -> None:
    place = place_of("PN", np.array([1.0, 10.0]), bounds=([0, 0], [2, 20]), scale=[1, 5])
    assert np.asarray(place.box.upper).tolist() == [1, 2]


def test_open_bounds_have_units_of_their_own_and_a_finite_start() -> None:
    place = place_of("PN", np.array([3.0, -2.0]), bounds=None, signed=True)
    assert np.asarray(place.scale).tolist() == [1, 1]
    assert np.isfinite(place.start).all()
    assert np.isneginf(place.box.lower).all()


def test_normalised_inputs_have_bounds_in_raw_units() -> None:
    raw = np.linspace(0, 1, 12).reshape(3, 2, 2)
    mean, std = np.array([0.5, 0.4, 0.3]), np.array([0.2, 0.25, 0.5])
    place = place_of("PN", (raw - mean[:, None, None]) / std[:, None, None], mean=mean, std=std, signed=True)
    for side, value in ((place.box.lower, 0), (place.box.upper, 1)):
        seen = place.inputs(np.atleast_2d(side))[0] * std[:, None, None] + mean[:, None, None]
        np.testing.assert_allclose(seen, value, atol=1e-12)


@given(
    arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1)),
    st.sampled_from(["PP", "PN"]),
    st.booleans(),
    st.floats(0, 1),
    st.randoms(use_true_random=False),
)
def test_every_point_of_the_set_is_a_valid_input(
    x0: Any, kind: str, signed: bool, baseline: float, random: Any
) -> None:
    reach = {"PP": np.abs(x0 - baseline), "PN": np.ones_like(x0) if signed else 1 - x0}[kind]
    assume(reach.any())
    place = place_of(kind, x0, signed=signed, baseline=baseline)
    assert np.array_equal(place.box.project(place.start), place.start), "the start is inside"
    lower, upper = (np.broadcast_to(side, x0.shape) for side in (place.box.lower, place.box.upper))
    w = lower + random.random() * (upper - lower)
    seen = place.inputs(w[None])[0]
    assert (seen >= -1e-12).all()
    assert (seen <= 1 + 1e-12).all()
    start = place.inputs(np.zeros((1, x0.size)) if kind == "PN" else place.start[None])[0]
    np.testing.assert_allclose(start, x0, atol=1e-12)


def test_the_input_is_copied_and_float32_stays() -> None:
    x0 = np.full((1, 2, 2), 0.5, np.float32)
    place = place_of("PN", x0)
    x0[:] = 7
    assert place.x0.max() == 0.5
    batch = place.inputs(np.repeat(place.start[None], 3, axis=0))
    assert batch.shape == (3, 1, 2, 2)
    assert batch.dtype == np.float32


@pytest.mark.parametrize(
    ("kind", "x0", "options", "error", "words"),
    [
        ("AB", X0, {}, ArgumentError, "kind"),
        ("PN", [[1, 2], [3]], {}, ArgumentTypeError, "x0"),
        ("PN", ["a"], {}, ArgumentTypeError, "x0"),
        ("PN", [], {}, ArgumentError, "x0"),
        ("PN", 0.5, {}, ArgumentError, "x0"),
        ("PN", [0.5, np.nan], {}, ArgumentError, "x0 to be finite, got nan at feature 1"),
        ("PN", [0.5, 1.5], {}, ArgumentError, r"x0\[1\] = 1.5, bounds \[0, 1\]"),
        ("PP", X0, {"baseline": -1}, ArgumentError, "baseline inside the bounds"),
        ("PP", X0, {"baseline": X0}, ArgumentError, "x0 equals the baseline"),
        ("PN", [1.0, 1.0], {}, ArgumentError, "signed=True"),
        ("PN", X0, {"fixed": range(4)}, ArgumentError, "unfix some"),
        ("PN", X0, {"fixed": [4]}, ArgumentError, "fixed"),
        ("PN", X0, {"fixed": [True, False]}, ArgumentError, "fixed as a mask"),
        ("PN", X0, {"mean": 0.5}, ArgumentError, "both mean and std"),
        ("PN", X0, {"mean": 0, "std": 0}, ArgumentError, "std > 0"),
        ("PN", X0, {"mean": [1, 2, 3], "std": 1}, ArgumentError, "mean as a number"),
        ("PN", X0, {"scale": 0}, ArgumentError, "scale > 0"),
        ("PN", X0, {"scale": "m"}, ArgumentTypeError, "scale"),
    ],
)
def test_what_does_not_fit_is_said(kind: str, x0: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        place_of(kind, x0, **options)


def test_a_complex_scale_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="scale to be real numbers"):
        zm.explain(lambda batch: np.c_[batch[:, 0], 1 - batch[:, 0]], np.array([0.25]), scale=np.array([1j]))


@pytest.mark.parametrize(
    "x0", [{"age": 3}, ("a", 1.5), np.array(["x", 1], dtype=object)], ids=["dict", "tuple", "array"]
)
def test_a_row_of_a_table_is_told_what_it_needs(x0: object) -> None:
    with pytest.raises(ArgumentTypeError, match=r"features=zm\.Table\(reference_rows\)"):
        Vector().place(x0, "PN")
