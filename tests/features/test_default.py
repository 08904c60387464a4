"""The feature space of an input for which none was given."""

from __future__ import annotations

import numpy as np

import zomirror as zm
from zomirror.features.default import default_features

LARGE: list[tuple[int, ...]] = [(3, 224, 224), (224, 224, 3), (1, 3, 224, 224), (100, 80)]
OTHER: list[tuple[int, ...]] = [(784,), (28, 28), (3, 32, 32), (20_000,), (5, 100, 100)]


def test_only_images_of_thousands_of_pixels_are_split_into_regions() -> None:
    for shape in LARGE:
        assert isinstance(default_features(np.zeros(shape), {})["features"], zm.Regions)
    for shape in OTHER:
        assert default_features(np.zeros(shape), {}) == {}


def test_what_the_call_says_is_kept() -> None:
    for given in ({"features": zm.Vector()}, {"bounds": (0, 1)}, {"feature_names": ["a"]}):
        assert default_features(np.zeros((224, 224, 3)), given) == {}
