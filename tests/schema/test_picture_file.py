"""Pictures become arrays of the shape that a model takes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from zomirror.errors import ArgumentError, DataError
from zomirror.schema import picture_file
from zomirror.schema.picture_file import read_picture


def png(pixels: Any) -> io.BytesIO:
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file, "PNG")
    file.seek(0)
    return file


GREY, RED = np.arange(20).reshape(5, 4) * 12, np.full((5, 4, 3), [255, 0, 51])


def test_channels_are_where_the_shape_has_them() -> None:
    for shape in ((1, 5, 4), (5, 4), (5, 4, 1)):
        found = read_picture(png(GREY), shape, "x")
        assert found.shape == shape
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found.reshape(5, 4), (GREY / np.float32(255)).astype(np.float32))
    assert read_picture(png(RED), None, "x").shape == (3, 5, 4)
    np.testing.assert_allclose(read_picture(png(RED), (5, 4, 3), "x")[0, 0], [1, 0, 0.2], rtol=1e-6)
    assert read_picture(png(RED), (1, 5, 4), "x").shape == (1, 5, 4)


def test_a_picture_for_a_model_of_photographs_is_resized() -> None:
    assert read_picture(png(RED), (3, 80, 90), "x").shape == (3, 80, 90)
    with pytest.raises(ArgumentError, match=r"expected an input of shape \(1, 6, 6\)"):
        read_picture(png(GREY), (1, 6, 6), "x")


def test_what_is_no_picture_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="expected a picture, got 'x', which cannot be read"):
        read_picture(io.BytesIO(b"GIF89a"), None, "x")
    jpeg = io.BytesIO()
    Image.new("L", (4, 4)).save(jpeg, "JPEG")
    with pytest.raises(DataError, match="expected a picture"):
        read_picture(jpeg, None, "x", ("PNG",))
    monkeypatch.setattr(picture_file, "MAX_PIXELS", 19)
    with pytest.raises(DataError, match="expected at most 19 pixels, got 4 x 5"):
        read_picture(png(GREY), None, "x")
