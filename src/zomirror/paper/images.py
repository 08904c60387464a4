"""The images and the networks of the experiments."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zomirror import datasets, models
from zomirror.classifiers import Classifier, onnx_classifier
from zomirror.errors import ArgumentError, DataError

NETWORKS = {"mnist": "lenet", "cifar": "resnet20"}
CLASSES = 10
SCALING = {
    "mnist": ((0.0,), (1.0,)),
    "cifar": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
}
"""Mean and std of the inputs, of the authors' networks as of the bundled ones."""


@dataclass(frozen=True, slots=True)
class BundledNetwork:
    """A model in a file, identified by its SHA-256; `name` is empty for the bundled one."""

    path: Path
    digest: str
    name: str = ""


def network(data: str, path: Path | None = None) -> BundledNetwork:
    """The bundled network of a data set, or the one in the file."""
    if path is not None:
        if not path.is_file():
            raise ArgumentError(f"expected the model in an .onnx file, got {str(path)!r}, which does not exist")
        return BundledNetwork(path.resolve(), _digest(path), path.stem)
    name = NETWORKS[data]
    if name not in models.names():
        raise ArgumentError(
            f"the network {name} is not installed: give a file with --model, or train it with `zomirror train`"
        )
    card = models.card(name)
    if not np.allclose([card.mean, card.std], SCALING[data], atol=1e-4):
        raise DataError(f"the network {name} reads inputs scaled by {card.mean}, {card.std}, not {SCALING[data]}")
    return BundledNetwork(models.path(name), card.sha256)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def opened(path: Path) -> Classifier:
    """The model, on one thread: runs are spread over processes."""
    return onnx_classifier(path, threads=1)


@cache
def _bundled() -> datasets.Dataset:
    return datasets.digits()


@cache
def _tests(data: str) -> datasets.Dataset:
    return datasets.mnist("test") if data == "mnist" else datasets.cifar10("test")


def image(data: str, index: int) -> tuple[NDArray[np.uint8], int]:
    """A test image and its class; the bundled digits need no download."""
    if data == "mnist" and index in _bundled().index:
        at = int(np.flatnonzero(_bundled().index == index)[0])
        return _bundled().images[at], int(_bundled().labels[at])
    return _tests(data).images[index], int(_tests(data).labels[index])


def chosen(data: str, of: BundledNetwork, per_class: int) -> tuple[tuple[int, ...], ...]:
    """Row k holds the k-th correctly classified test image of each class, in the order of the test set."""
    if per_class < 1:
        raise ArgumentError(f"expected at least one image per class, got {per_class}")
    if data == "mnist" and per_class <= 2:
        # The bundled digits are the first two of each class, so that nothing is downloaded.
        found = _first_correct(data, _bundled(), of, per_class)
        if found is not None:
            return found
    found = _first_correct(data, _tests(data), of, per_class)
    if found is None:
        raise ArgumentError(f"the test set has no {per_class} correctly classified images of every class")
    return found


def _first_correct(
    data: str, images: datasets.Dataset, of: BundledNetwork, per_class: int
) -> tuple[tuple[int, ...], ...] | None:
    columns = []
    for label in range(CLASSES):
        places = np.flatnonzero(images.labels == label)
        places = places[np.argsort(images.index[places])]
        right: list[int] = []
        for start in range(0, len(places), 2 * per_class):
            part = places[start : start + 2 * per_class]
            said = predicted(data, images.images[part], of)
            right += images.index[part[said == label]].tolist()
            if len(right) >= per_class:
                break
        columns.append(right[:per_class])
    if any(len(column) < per_class for column in columns):
        return None
    return tuple(tuple(column[k] for column in columns) for k in range(per_class))


def predicted(data: str, images: NDArray[np.uint8], of: BundledNetwork) -> NDArray[np.intp]:
    """The class that the network predicts for each image."""
    mean, std = (np.array(side, np.float32).reshape(-1, 1, 1) for side in SCALING[data])
    pixels = images.astype(np.float32) / np.float32(255)
    planes = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
    scores = opened(of.path)((planes - mean) / std)
    return np.asarray(np.argmax(scores, axis=1), np.intp)
