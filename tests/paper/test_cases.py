"""The problems of the paper: decision sets, starts and objectives as printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from zomirror.contrast.loss import change_margin, keep_margin
from zomirror.paper import images as pictures
from zomirror.paper.cases import case
from zomirror.paper.settings import AUTHORS, PRINTED, SETTINGS

MEAN, STD = pictures.SCALING["cifar"]


def f_of(posed: Any, model: Any) -> Any:
    """The black box of a case."""
    return lambda points: posed.loss(posed.margins(model, points))


def picture(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, 256, shape, dtype=np.uint8)


def test_pertinent_negatives_of_mnist_live_where_the_settings_say() -> None:
    image = picture(np.random.default_rng(0), (28, 28))
    x0 = (image.astype(np.float32) / np.float32(255)).ravel()
    for settings, lower in ((PRINTED, 0 * x0), (AUTHORS, -x0)):
        posed = case(settings, "mnist", "PN", image, 3, mean=(0.0,), std=(1.0,))
        np.testing.assert_allclose(posed.lower, lower, atol=1e-7)
        np.testing.assert_allclose(posed.upper, 1 - x0, atol=1e-7)
        np.testing.assert_allclose(posed.start, (lower + 1 - x0) / 2, atol=1e-6)
        np.testing.assert_array_equal(posed.base, x0)


def test_pertinent_negatives_of_cifar_live_where_the_settings_say() -> None:
    image = picture(np.random.default_rng(1), (32, 32, 3))
    mean, std = (np.array(side).reshape(3, 1, 1) for side in (MEAN, STD))
    for settings in (PRINTED, AUTHORS):
        posed = case(settings, "cifar", "PN", image, 3, mean=MEAN, std=STD)
        low, high = ((side + posed.base).reshape(3, 32, 32) for side in (posed.lower, posed.upper))
        if settings is PRINTED:
            np.testing.assert_allclose(low * std + mean, 0, atol=1e-6)
            np.testing.assert_allclose(high * std + mean, 1, atol=1e-6)
            centre = (posed.start + posed.base).reshape(3, 32, 32) * std + mean
            np.testing.assert_allclose(centre, 0.5, atol=1e-6)
        else:
            np.testing.assert_allclose(low * std, -1, atol=1e-5)
            np.testing.assert_allclose(high * std, 1, atol=1e-5)
            assert not posed.start.any()
        seen = posed.seen(np.zeros((1, 3072), np.float32))[0]
        np.testing.assert_allclose(seen * std + mean, image.transpose(2, 0, 1) / 255, atol=1e-6)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_pertinent_positives_live_between_nothing_and_the_image(settings: Any) -> None:
    rng = np.random.default_rng(2)
    for data, shape in (("mnist", (28, 28)), ("cifar", (32, 32, 3))):
        mean, std = pictures.SCALING[data]
        posed = case(settings, data, "PP", picture(rng, shape), 3, mean=mean, std=std)
        assert (posed.lower <= 0).all()
        assert (posed.upper >= 0).all()
        np.testing.assert_array_equal(np.where(posed.start > 0, posed.upper, posed.lower), posed.start)
        assert not posed.base.any()


def test_f_is_the_margin_under_the_loss(lenet: pictures.BundledNetwork) -> None:
    model = pictures.opened(lenet.path)
    image, label = pictures.image("mnist", 0)
    points = np.random.default_rng(3).random((5, 784), dtype=np.float32)
    x0 = image.ravel().astype(np.float32) / np.float32(255)
    for kind, scores, margin in (
        ("PN", model((points + x0).reshape(-1, 1, 28, 28)), change_margin),
        ("PP", model(points.reshape(-1, 1, 28, 28)), keep_margin),
    ):
        expected = margin(scores, label)
        hinge, soft = (
            f_of(case(settings, "mnist", kind, image, label, mean=(0.0,), std=(1.0,)), model)(points)
            for settings in (PRINTED, AUTHORS)
        )
        np.testing.assert_array_equal(hinge, np.maximum(expected, 0))
        np.testing.assert_allclose(soft, np.log1p(np.exp(expected)), rtol=1e-5)


@pytest.mark.parametrize("scale", [2, 4])
def test_splitting_pixels_changes_nothing_but_the_dimension(lenet: pictures.BundledNetwork, scale: int) -> None:
    model = pictures.opened(lenet.path)
    image, label = pictures.image("mnist", 1)
    plain, fine = (
        case(PRINTED, "mnist", "PN", image, label, mean=(0.0,), std=(1.0,), upscale=s, shared=True) for s in (1, scale)
    )
    assert fine.start.size == 784 * scale**2
    x = np.random.default_rng(4).random((3, 28, 28), dtype=np.float32) * plain.upper.reshape(28, 28)
    split = np.repeat(np.repeat(x, scale, axis=1), scale, axis=2).reshape(3, -1)
    np.testing.assert_allclose(f_of(fine, model)(split), f_of(plain, model)(x.reshape(3, -1)), atol=1e-4)

    def penalty(posed: Any, rows: Any) -> Any:
        return posed.weight * (np.abs(rows).sum(axis=1) + np.square(rows).sum(axis=1) / 2)

    np.testing.assert_allclose(penalty(fine, split), penalty(plain, x.reshape(3, -1)), rtol=1e-4)
