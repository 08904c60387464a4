"""Photographs and texts on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.command import call, here

__all__ = ["here"]

MODELS = """
import numpy as np

def spot(batch):
    bright = batch[:, :, 40:56, 24:40].reshape(len(batch), -1).mean(axis=1)
    return np.stack([bright - 0.7, 0.7 - bright], axis=1)

def mood(texts):
    return np.array([[float("good" in text), 0.5] for text in texts])
"""


@pytest.fixture
def photo(here: Path) -> Path:
    """A photograph of 96 x 72 pixels with a bright spot, and two models."""
    Path("seen.py").write_text(MODELS)
    image = np.full((96, 72, 3), 60, np.uint8)
    image[40:56, 24:40] = 250
    Image.fromarray(image).save("photo.png")
    return Path("photo.png")


@pytest.mark.parametrize("words", [(), ("--regions", "superpixels")], ids=["grid", "superpixels"])
def test_a_photograph_is_explained_by_regions(photo: Path, words: tuple[str, ...]) -> None:
    said = call("explain", "seen:spot", photo, "--kind", "PP", "--shape", "3,96,72", *words).stdout
    assert " % of the image" in said.splitlines()[0]
    stored = json.loads(Path("explanations/photo-PP.json").read_text())
    assert stored["valid"]
    assert stored["nfev"] <= 300
    assert Path("explanations/photo-PP.png").stat().st_size > 1_000


def test_the_words_of_a_text_are_marked(photo: Path) -> None:
    Path("review.txt").write_text("the room was good\n")
    said = call("explain", "seen:mood", "review.txt", "--kind", "both").stdout
    assert "  PP  the room was «good»" in said
    assert "  PN  the room was «good»" in said


def test_regions_of_a_text_are_refused(photo: Path) -> None:
    Path("review.txt").write_text("the room was good\n")
    said = call("explain", "seen:mood", "review.txt", "--regions", "grid", code=2)
    assert "expected pictures with --regions, got review.txt" in " ".join(said.output.split())
