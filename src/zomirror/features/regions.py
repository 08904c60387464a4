"""Regions of an image that are there or replaced: cells of a grid, superpixels, or the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from zomirror.checks import choice, positive_integer
from zomirror.classifiers import Classifier
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.groups import array_place, check_soft
from zomirror.features.image_axes import ImageAxes
from zomirror.features.image_model import LAYOUTS, as_image, image_model, numbers, resized
from zomirror.features.optional import need
from zomirror.features.parts import BUDGET, PartsPlace, part_numbers
from zomirror.features.vector import KINDS

CELLS = 28
"""Cells along the longer side of a grid."""
SUPERPIXELS = 200
"""About as many superpixels."""
BLUR = 8
"""The standard deviation of the blur is the longer side divided by this."""
BASELINES = ("blur", "grey", "mean")


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Regions of an image, each there or replaced by a baseline.

    x0 is a PIL image or an array, (h, w), (h, w, channels) or (channels, h, w), uint8 or float, or a batch of one.

    Parameters
    ----------
    labels : "grid", "superpixels" or array of int
        A grid of cells that is searched from coarse to fine; superpixels (SLIC, needs the extra `images`); or the
        region of each pixel, (h, w), where pixels with a negative label are never replaced.
    baseline : "blur", "grey", "mean", array or function
        What replaces a region: the blurred image, mid-grey, the mean colour, an array like x0, or a function of x0
        that returns one, such as an inpainter. Several in a list: a PP must keep the class over each of
        them; a PN is replaced by the first. The default is all three names.
    count : int, optional
        Cells along the longer side of the grid (28), or about the number of superpixels (200).
    names : sequence or mapping of str, optional
        The names of given regions, by their labels.
    soft : bool
        Whether a region may be there in part, as in the paper.
    layout : "HWC" or "CHW", optional
        What the model takes; by default it is asked of an ONNX file or a torch module, else as x0 is.
    mean, std : float or sequence, optional
        The model gets (pixel - mean) / std, for a uint8 image of pixel / 255.
    size : (height, width), optional
        Resize x0 to this first (needs the extra `images`).
    """

    labels: Any = "grid"
    baseline: Any = BASELINES
    count: int | None = None
    names: Any = None
    soft: bool = False
    layout: str | None = None
    mean: Any = None
    std: Any = None
    size: tuple[int, int] | None = None

    signed = True
    default_budget = BUDGET

    def __post_init__(self) -> None:
        check_soft(self.soft)
        if isinstance(self.labels, str):
            choice("labels", self.labels, ("grid", "superpixels"))
        if self.layout is not None:
            choice("layout", self.layout, LAYOUTS)
        if self.count is not None:
            positive_integer("count", self.count)
        if self.size is not None and (not isinstance(self.size, tuple | list) or len(self.size) != 2):
            raise ArgumentTypeError(f"expected size to be (height, width), got {self.size!r}")

    def place(self, x0: object, kind: str) -> PartsPlace:
        """The regions of this image; ArgumentError if it is none or the labels do not fit."""
        choice("kind", kind, KINDS)
        image, axes = as_image(x0)
        if self.size is not None:
            height, width = (positive_integer("size", side) for side in self.size)
            image = resized(image, axes, (height, width))
        index, numbers_of, noun = self._index(image, axes)
        whole = index if axes.channels is None else np.expand_dims(index, axes.channels)
        named = {
            "blur": lambda x: blurred(x, axes),
            "grey": lambda x: np.full(x.shape, grey_of(x)),
            "mean": lambda x: x.mean(axis=(axes.rows, axes.columns), keepdims=True),
        }
        names = self.names
        if noun == "cell" and names is None:
            across = int(index[0].max()) + 1
            names = [f"row {i // across + 1}, column {i % across + 1}" for i in numbers_of]
        return array_place(
            image, whole, numbers_of, self.baseline, named, kind, names, soft=self.soft, noun=noun, connected=True
        )

    def _index(self, image: NDArray[Any], axes: ImageAxes) -> tuple[NDArray[np.intp], list[int], str]:
        shape = image.shape[axes.rows], image.shape[axes.columns]
        if not isinstance(self.labels, str):
            return *part_numbers(self.labels, shape), "region"
        if self.labels == "grid":
            return *part_numbers(grid(shape, self.count or CELLS), shape), "cell"
        return *part_numbers(superpixels(image, axes, self.count or SUPERPIXELS), shape), "superpixel"

    def classifier(self, model: Any) -> Classifier:
        """The model as a classifier of images as they come."""
        return image_model(model, self.layout, self.mean, self.std)

    @property
    def _baseline_names(self) -> list[str]:
        given = self.baseline if isinstance(self.baseline, list | tuple) else [self.baseline]
        return [one if isinstance(one, str) else "given" for one in given]

    def record(self) -> dict[str, Any]:
        """What the arrays of a run directory do not hold."""
        found: dict[str, Any] = {"features": "regions", "soft": bool(self.soft), "layout": self.layout}
        found["regions"] = self.labels if isinstance(self.labels, str) else "given"
        found["baseline"] = self._baseline_names[:8]
        for name in ("mean", "std"):
            if (given := numbers(name, getattr(self, name))) is not None:
                found[f"model_{name}"] = list(given)
        return found


def grid(shape: tuple[int, int], count: int) -> NDArray[np.int64]:
    """Square cells, about `count` along the longer side."""
    side = max(1, -(-max(shape) // count))
    rows, columns = np.indices(shape) // side
    return np.asarray(rows * (columns.max() + 1) + columns, np.int64)


def superpixels(image: NDArray[Any], axes: ImageAxes, count: int) -> NDArray[np.int64]:
    """SLIC superpixels of scikit-image."""
    segmentation = need("skimage.segmentation", "scikit-image", "images")
    last = image if axes.channels is None else np.moveaxis(image, axes.channels, -1)
    last = last[..., 0] if last.ndim == 3 and last.shape[-1] in (1, 2) else last[..., :3] if last.ndim == 3 else last
    low, high = float(last.min()), float(last.max())
    if low == high:
        raise ArgumentError("expected an image with more than one colour for superpixels, got one: use labels='grid'")
    scaled = (last.astype(np.float64) - low) / (high - low)
    found = segmentation.slic(
        scaled, n_segments=count, compactness=10, sigma=1, start_label=0, channel_axis=None if last.ndim == 2 else -1
    )
    return np.asarray(found, np.int64)


def blurred(image: NDArray[Any], axes: ImageAxes) -> NDArray[Any]:
    """The image under a Gaussian of an eighth of its longer side."""
    side = max(image.shape[axes.rows], image.shape[axes.columns])
    sigma = [side / BLUR if axis in (axes.rows, axes.columns) else 0.0 for axis in range(image.ndim)]
    return np.asarray(ndimage.gaussian_filter(image.astype(np.float64), sigma))


def grey_of(image: NDArray[Any]) -> float:
    """Mid-grey: 1/2 of pixels in 0..1, 127.5 of pixels in 0..255, 0 of normalised pixels."""
    low, high = float(image.min()), float(image.max())
    if image.dtype == np.uint8 or (low >= 0 and 1 < high <= 255):
        return 127.5
    return 0.5 if low >= 0 and high <= 1 else 0.0
