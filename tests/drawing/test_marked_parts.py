"""Pictures, curves and texts of parts: what is shown in colour, what is marked, and how it is counted."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zomirror as zm
from zomirror.drawing import marked_parts as parts
from zomirror.drawing.picture import picture_in
from zomirror.drawing.plot import plot, plot_grid
from zomirror.report.page import render

LABELS = np.repeat(np.repeat(np.arange(16).reshape(4, 4), 6, axis=0), 6, axis=1)
IMAGE = np.random.default_rng(0).random((24, 24, 3))


def corner(batch: np.ndarray) -> np.ndarray:
    """Class 1 where the upper left region is as in the image."""
    same = 1.0 * (np.abs(batch[:, :6, :6] - IMAGE[:6, :6]).max(axis=(1, 2, 3)) < 1e-9)
    return np.stack([0.5 - same, same - 0.5], axis=1)


def mood(texts: list[str]) -> np.ndarray:
    return np.array([[0.5, text.count("good")] for text in texts], dtype=float)


def bump(batch: np.ndarray) -> np.ndarray:
    height = batch[:, 8:12].mean(axis=1) - 1
    return np.stack([-height, height], axis=1)


SERIES = np.where((np.arange(24) >= 8) & (np.arange(24) < 12), 3.0, np.sin(np.arange(24)))


def found(what: str, kind: str) -> Any:
    if what == "image":
        return zm.explain(corner, IMAGE, kind=kind, features=zm.Regions(LABELS, baseline="grey"))
    if what == "text":
        return zm.explain(mood, "a <good> film & a bad day", kind=kind)
    if what == "series":
        return zm.explain(bump, SERIES, kind=kind, features=zm.Windows(length=4))
    return zm.explain(bump, SERIES, kind=kind, features=zm.Groups(np.arange(24) // 4))


WORDS = {
    ("image", "PP"): "classified 1 because of 6.2 % of the image (upper left), enough alone",
    ("image", "PN"): "classified 1; with 6.2 % of the image (upper left) replaced it would be 0",
    ("text", "PP"): 'classified 1 because of 1 of 6 words ("good"), enough alone',
    ("text", "PN"): 'classified 1; with 1 of 6 words ("good") left out it would be 0',
    ("series", "PP"): "classified 1 because of 17 % of the series (time 8..11), enough alone",
    ("groups", "PN"): "classified 1; with 1 of 6 groups (group 2) replaced it would be 0",
}


@pytest.mark.parametrize(("what", "kind"), list(WORDS), ids=[f"{what}-{kind}" for what, kind in WORDS])
def test_each_is_said_and_drawn(what: str, kind: str) -> None:
    one = found(what, kind)
    assert one.words() == WORDS[what, kind]
    stream = io.BytesIO()
    plot(one).savefig(stream, format="png")
    assert Image.open(stream).width > 400
    assert "<img" in one._repr_html_()
    assert one.words()[12:30] in render([one]).replace("&#34;", '"')


def test_the_kept_part_is_in_colour_on_a_faded_ground() -> None:
    one = found("image", "PP")
    picture = picture_in(one)
    assert picture is not None
    drawn = picture.overlay(one) / 255
    np.testing.assert_allclose(drawn[1:5, 1:5], IMAGE[1:5, 1:5], atol=1 / 255)  # inside the outline
    outside = drawn[8:, 8:]
    assert (np.ptp(outside, axis=2) < 0.01).all()
    assert outside.min() > 0.7


def test_an_outline_is_the_border_of_a_set() -> None:
    mask = np.zeros((8, 8), bool)
    mask[2:6, 2:6] = True
    inner = np.zeros((8, 8), bool)
    inner[3:5, 3:5] = True
    np.testing.assert_array_equal(parts.outline(mask), mask & ~inner)


def test_words_are_marked_and_everything_is_escaped() -> None:
    one = found("text", "PP")
    assert "".join(words for words, _ in parts.marked(one)) == one.x0
    assert [words for words, mark in parts.marked(one) if mark] == ["good"]
    shown = parts.marked_html(one)
    assert "&lt;<mark" in shown
    assert "&amp; a bad day" in shown
    page = render([one, found("text", "PN")])
    assert '<mark class="PP">good</mark>' in page
    assert "<good>" not in page


def test_a_grid_of_images_in_parts() -> None:
    figure = plot_grid([found("image", "PP"), found("image", "PN")])
    assert len(figure.axes) == 5


def test_a_text_of_a_file_need_not_hold_its_words() -> None:
    one: Any = replace(found("text", "PP"), x0="other", perturbed="other")
    assert parts.marked(one) == [("other", False)]
