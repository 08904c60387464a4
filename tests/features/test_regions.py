"""Regions of images: grids, superpixels, baselines, and images as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.contrast.search.presence_search.part_sets import components
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.regions import grid

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 256, (96, 72, 3)).astype(np.uint8)


def spot(batch: np.ndarray) -> np.ndarray:
    """Class 0 where the pixels in rows 40..47 and columns 20..27 are bright; batches are (n, h, w, 3)."""
    bright = batch[:, 40:48, 20:28].reshape(len(batch), -1).mean(axis=1) / 255
    return np.stack([bright - 0.7, 0.7 - bright], axis=1)


def spotted() -> np.ndarray:
    image = np.full((96, 72, 3), 60, np.uint8)
    image[36:52, 16:32] = 250
    return image


@pytest.mark.parametrize("labels", ["grid", "superpixels"])
@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_the_regions_that_decide_are_found(labels: str, kind: str) -> None:
    found = zm.explain(spot, spotted(), kind=kind, features=zm.Regions(labels))
    assert found.valid
    assert found.space == "parts"
    assert found.labels is not None
    kept = np.isin(found.labels, np.flatnonzero(found.x))[..., 0]
    assert kept[40:48, 20:28].any()
    assert found.l1_norm < 0.08
    assert found.perturbed.shape == (96, 72, 3)
    assert found.perturbed.dtype == np.uint8


def test_the_regions_of_a_pp_hang_together() -> None:
    """Two bright spots are needed; what lies between them is kept too, so that a person sees one part."""

    def both(batch: np.ndarray) -> np.ndarray:
        left, right = (batch[:, 40:56, c : c + 8].reshape(len(batch), -1).mean(axis=1) for c in (16, 48))
        least = np.minimum(left, right) / 255
        return np.stack([least - 0.7, 0.7 - least], axis=1)

    image = np.full((96, 72, 3), 60, np.uint8)
    image[40:56, 16:24] = image[40:56, 48:56] = 250
    features = zm.Regions(baseline="grey")
    found = zm.explain(both, image, kind="PP", features=features)
    assert found.valid
    assert components(found.x > 0, features.place(image, "PP").edges) == 1
    assert found.l1_norm < 0.25


def test_large_images_are_explained_by_regions_without_being_told() -> None:
    assert zm.explain(spot, spotted(), kind="PP").space == "parts"
    small = zm.explain(lambda batch: batch.reshape(len(batch), -1)[:, :2], RNG.random((28, 28)), budget=200)
    assert small.space == "vector"


def test_every_form_of_an_image_gives_the_same_answer() -> None:
    image_module = pytest.importorskip("PIL.Image")
    first = spotted()
    as_floats = first.astype(np.float32) / 255
    forms: list[tuple[Any, Any]] = [
        (first, spot),
        (image_module.fromarray(first), spot),
        (first[None], spot),
        (first.transpose(2, 0, 1), lambda batch: spot(batch.transpose(0, 2, 3, 1))),
        (as_floats, lambda batch: spot(batch * 255)),
    ]
    answers = [zm.explain(model, x0, kind="PP", features=zm.Regions(baseline="grey")) for x0, model in forms]
    for one in answers[1:]:
        np.testing.assert_array_equal(one.x, answers[0].x)


def test_a_grid_has_square_cells() -> None:
    cells = grid((100, 60), 10)
    assert cells.max() + 1 == 10 * 6
    assert (np.bincount(cells.ravel()) == 100).all()


def test_the_named_baselines() -> None:
    for name, at in (("grey", 127.5), ("mean", IMAGE.mean())):
        place = zm.Regions(baseline=name).place(IMAGE, "PP")
        seen = place.perturbed(place.absent)
        assert abs(float(seen.mean()) - at) <= 1
    place = zm.Regions(baseline="blur").place(IMAGE, "PP")
    assert place.perturbed(place.absent).std() < 0.2 * IMAGE.std()
    float_place = zm.Regions(baseline="grey").place(IMAGE / 255, "PP")
    assert (float_place.perturbed(float_place.absent) == 0.5).all()
    painted = zm.Regions(baseline=lambda x: x[::-1]).place(IMAGE, "PP")
    np.testing.assert_array_equal(painted.perturbed(painted.absent), IMAGE[::-1])


@pytest.mark.parametrize(
    ("x0", "given", "error", "says"),
    [
        (np.zeros((2, 3)), {}, ArgumentError, r"image of height x width.*got \(2, 3\)"),
        (np.zeros((2, 3, 20, 20)), {}, ArgumentError, "give one image"),
        (np.full((20, 20), np.nan), {}, ArgumentError, "finite image"),
        (IMAGE, {"labels": np.zeros((72, 96), int)}, ArgumentError, r"labels of shape \(96, 72\).*got \(72, 96\)"),
        (IMAGE, {"labels": "cubes"}, ArgumentError, "labels to be one of 'grid', 'superpixels'"),
        (IMAGE, {"baseline": "black"}, ArgumentError, "baseline to be one of 'blur', 'grey', 'mean'"),
        (IMAGE, {"layout": "WHC"}, ArgumentError, "layout to be one of 'HWC', 'CHW'"),
        (IMAGE, {"mean": 0.5}, ArgumentError, "both mean and std"),
        (IMAGE, {"size": 224}, ArgumentTypeError, r"size to be \(height, width\)"),
        (np.full((20, 20), 0.5), {"labels": "superpixels"}, ArgumentError, "more than one colour"),
        (np.full((20, 20), 0.5), {}, ArgumentError, "baseline that differs from x0"),
    ],
    ids=["small", "batch", "nan", "labels", "word", "baseline", "layout", "mean", "size", "plain", "grey"],
)
def test_what_is_no_image_is_refused_before_any_query(x0: Any, given: dict[str, Any], error: type, says: str) -> None:
    def never(batch: Any) -> Any:
        raise AssertionError("asked")

    with pytest.raises(error, match=says):
        zm.explain(never, x0, features=zm.Regions(**given))
