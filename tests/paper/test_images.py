"""The images and networks of the experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zomirror.errors import ArgumentError
from zomirror.paper import images as pictures


def test_images_are_the_first_correct_ones_of_each_class(lenet: pictures.BundledNetwork, images: Any) -> None:
    assert len(images) == 2
    for row in images:
        found = [pictures.image("mnist", index) for index in row]
        assert [label for _, label in found] == list(range(10))
        said = pictures.predicted("mnist", np.stack([pixels for pixels, _ in found]), lenet)
        assert said.tolist() == list(range(10))
    assert all(first < second for first, second in zip(*images, strict=True))
    assert pictures.chosen("mnist", lenet, 1) == images[:1]
    with pytest.raises(ArgumentError, match="at least one image"):
        pictures.chosen("mnist", lenet, 0)


def test_a_network_is_known_by_its_content(lenet: pictures.BundledNetwork, tmp_path: Path) -> None:
    copy = tmp_path / "mine.onnx"
    copy.write_bytes(lenet.path.read_bytes())
    mine = pictures.network("mnist", copy)
    assert (mine.digest, mine.name, lenet.name) == (lenet.digest, "mine", "")
    with pytest.raises(ArgumentError, match="does not exist"):
        pictures.network("mnist", tmp_path / "none.onnx")
