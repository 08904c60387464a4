"""A model gets images in its own layout, size and type."""

from __future__ import annotations

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.features.image_axes import ImageAxes
from zomirror.features.image_model import ImageModel, as_image, axes_of, described, image_model, resized

IMAGE = np.random.default_rng(0).integers(0, 256, (12, 10, 3)).astype(np.uint8)


def seen(layout: str | None, x0: np.ndarray, **options: object) -> np.ndarray:
    """What a function gets of a batch of one image."""
    batches = []

    def model(batch: np.ndarray) -> np.ndarray:
        batches.append(batch)
        return np.zeros((len(batch), 2))

    image_model(model, layout, options.get("mean"), options.get("std"))(x0[None])
    image: np.ndarray = batches[0][0]
    return image


def test_a_function_gets_images_as_they_are() -> None:
    np.testing.assert_array_equal(seen(None, IMAGE), IMAGE)


@pytest.mark.parametrize("x0", [IMAGE, np.ascontiguousarray(IMAGE.transpose(2, 0, 1))], ids=["last", "first"])
def test_the_layout_is_what_was_asked_for(x0: np.ndarray) -> None:
    np.testing.assert_array_equal(seen("HWC", x0), IMAGE)
    np.testing.assert_array_equal(seen("CHW", x0), IMAGE.transpose(2, 0, 1))


def test_pixels_are_normalised() -> None:
    got = seen("CHW", IMAGE, mean=(0.4, 0.5, 0.6), std=0.25)
    wanted = (IMAGE / 255 - np.array([0.4, 0.5, 0.6])) / 0.25
    np.testing.assert_allclose(got, wanted.transpose(2, 0, 1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(seen(None, IMAGE, mean=0, std=1 / 255), IMAGE, rtol=1e-5)


def test_a_torch_module_gets_channels_first_floats() -> None:
    torch = pytest.importorskip("torch")
    got = []

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x):
            got.append(x.numpy())
            return torch.zeros(len(x), 2)

    image_model(Net(), None, None, None)(IMAGE[None])
    assert got[0].dtype == np.float32
    np.testing.assert_allclose(got[0][0], IMAGE.transpose(2, 0, 1) / 255, rtol=1e-6)


def test_an_onnx_file_says_its_layout_and_size() -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import helper

    from zomirror.classifiers import Onnx

    value = helper.make_tensor_value_info
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[2, 3], keepdims=0)]
    graph = helper.make_graph(nodes, "means", [value("x", 1, ["n", 3, 12, 10])], [value("m", 1, ["n", 3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    wrapped = image_model(Onnx(model.SerializeToString()), None, None, None)
    assert (wrapped.layout, wrapped.channels, wrapped.size) == ("CHW", 3, (12, 10))
    np.testing.assert_allclose(wrapped(IMAGE[None])[0], IMAGE.mean(axis=(0, 1)) / 255, rtol=1e-5)
    grey = IMAGE[..., 0]
    np.testing.assert_allclose(wrapped(grey[None])[0], np.full(3, grey.mean() / 255), rtol=1e-5)
    with pytest.raises(ArgumentError, match=r"looks like height x width x channel \(20 x 20 x 3\) in 0..255: resize"):
        wrapped(np.full((1, 20, 20, 3), 200, np.uint8))
    assert onnx is not None


def test_batches_are_converted_in_blocks() -> None:
    sizes = []

    def model(batch: np.ndarray) -> np.ndarray:
        sizes.append(len(batch))
        return np.arange(2.0 * len(batch)).reshape(-1, 2)

    assert ImageModel(zm.as_classifier(model))(np.zeros((70, 8, 8))).shape == (70, 2)
    assert sizes == [32, 32, 6]


def test_the_axes_of_images() -> None:
    assert axes_of((28, 28)) == ImageAxes(0, 1, None)
    assert axes_of((28, 28, 3)) == ImageAxes(0, 1, 2)
    assert axes_of((3, 28, 28)) == ImageAxes(1, 2, 0)
    assert axes_of((5, 28, 28)) is axes_of((3,)) is axes_of((4, 3)) is None
    assert described(IMAGE, ImageAxes(0, 1, 2)) == "height x width x channel (12 x 10 x 3) in 0..255"


def test_resizing_keeps_the_type_and_the_mean() -> None:
    pytest.importorskip("PIL")
    smooth = np.repeat(np.repeat(IMAGE, 4, axis=0), 4, axis=1)
    small = resized(smooth, ImageAxes(0, 1, 2), (24, 20))
    assert small.shape == (24, 20, 3)
    assert small.dtype == np.uint8
    assert abs(float(small.mean()) - float(smooth.mean())) < 3


def test_the_input_is_copied_and_read_only() -> None:
    image, _ = as_image(IMAGE)
    assert not image.flags.writeable
    assert image is not IMAGE
