"""The network and the images of the experiments, read once for each file of tests."""

from __future__ import annotations

import pytest

from zomirror.paper import images as pictures


@pytest.fixture(scope="module")
def lenet() -> pictures.BundledNetwork:
    return pictures.network("mnist")


@pytest.fixture(scope="module")
def images(lenet: pictures.BundledNetwork) -> tuple[tuple[int, ...], ...]:
    return pictures.chosen("mnist", lenet, 2)
