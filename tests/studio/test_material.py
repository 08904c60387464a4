"""What can be picked: rows, pictures and texts, as the page gets and gives them."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

import zomirror as zm
from tests.support import loan_table
from zomirror.errors import ArgumentError
from zomirror.schema.explainer import Explainer
from zomirror.studio.material import Material, png_of
from zomirror.studio.session import Session


def test_rows_know_their_columns() -> None:
    frame = loan_table.loans()
    material = Material([("first", frame.iloc[[0]])], zm.Table(frame))
    columns = {one["name"]: one for one in material.document()["columns"]}
    assert columns["housing"] == {
        "name": "housing",
        "kind": "categorical",
        "categories": ("free", "own", "rent"),
        "ordered": False,
    }
    assert columns["income"]["ordered"]
    assert material.sample(0)["row"] == frame.iloc[0].to_dict()
    assert material.read({"sample": 0})[1] == frame.iloc[0].to_dict()
    assert not material.pictured


def test_a_picture_goes_to_the_page_and_comes_back() -> None:
    rng = np.random.default_rng(0)
    for shape, drawn in (
        ((1, 8, 9), True),
        ((3, 8, 9), False),
        ((8, 9), True),
        ((8, 9, 3), False),
        ((1, 70, 70), False),
    ):
        x = (rng.integers(0, 256, shape) / 255).astype(np.float32)
        material = Material([("x", x)], None, shape)
        uri = material.sample(0)["picture"]
        name, back = material.read({"picture": uri.split(",")[1]})
        np.testing.assert_array_equal(back, x)
        assert name == "picture"
        assert material.document()["picture"]["drawn"] is drawn


def test_another_size_is_refused() -> None:
    file = io.BytesIO()
    Image.new("L", (5, 5)).save(file, "PNG")
    with pytest.raises(ArgumentError, match="expected an input of shape"):
        Material([], None, (1, 8, 9)).read({"picture": base64.b64encode(file.getvalue()).decode()})
    with pytest.raises(ArgumentError, match="expected a picture, got an array of shape"):
        png_of(np.zeros(3))


def test_an_array_that_is_no_picture_is_watched_by_its_changes() -> None:
    def model(batch: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> object:
        return np.stack([0.5 - batch[:, 0], batch[:, 0] - 0.5], axis=1)

    x0 = np.zeros(5)
    session = Session(Explainer(model, shape=(5,), most=200), Material([("x", x0)], None, (5,)))
    session.start({"input": {"sample": 0}})
    session.wait(30)
    assert session.progress["state"] == "done", session.progress
    assert session.progress["answers"][0]["changes"][0][0] == "0"


def test_a_fault_of_any_kind_is_told() -> None:
    class Odd(Exception):  # noqa: N818 - it is odd
        pass

    def model(batch: object) -> object:
        raise Odd("out of paper")

    session = Session(Explainer(model, shape=(5,)), Material([("x", np.zeros(5))], None, (5,)))
    session.start({"input": {"sample": 0}})
    session.wait(30)
    assert session.progress["state"] == "failed"
    assert "out of paper" in session.progress["error"]
