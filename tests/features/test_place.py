"""Every feature space keeps the protocol: one input ready to be searched, and a classifier of its batches."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from zomirror.features import Features, Groups, Regions, Vector

SPACES: list[tuple[str, Features, Any]] = [
    ("vector", Vector(signed=True), np.linspace(0.1, 0.9, 6)),
    ("parts", Groups(np.arange(6) // 2), np.linspace(0.1, 0.9, 6)),
    ("parts", Regions(), np.linspace(0, 1, 400).reshape(20, 20)),
    ("graded", Groups(np.arange(6) // 2, soft=True), np.linspace(0.1, 0.9, 6)),
]
"""Each feature space with an input of it."""


@pytest.mark.parametrize("kind", ["PP", "PN"])
@pytest.mark.parametrize(
    ("space", "features", "x0"), SPACES, ids=[f"{name}-{type(one).__name__}" for name, one, _ in SPACES]
)
def test_a_place_knows_the_input_itself(space: str, features: Features, x0: Any, kind: str) -> None:
    assert isinstance(features, Features)
    place = features.place(x0, kind)
    assert (place.kind, place.space) == (kind, space)
    for w in (place.as_it_is, place.absent):
        assert w.shape == (place.d,)
        assert place.inputs(w[None]).shape[0] == 1
        np.testing.assert_array_equal(place.legal(w), w)
    if kind == "PN":
        assert not place.sizes(place.as_it_is).any()
        assert place.changes(place.as_it_is) == ()
    else:
        assert not place.sizes(place.absent).any()
    assert 0 < place.free <= place.d
    json.dumps(features.record())
    assert all(isinstance(array, np.ndarray) for array in place.arrays().values())
