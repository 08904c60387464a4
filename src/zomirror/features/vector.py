"""The optimisation problem of one input: what may change, in which units, and the start.

The variable w is flat and in units of each feature's range; the model gets base + scale w. For a pertinent negative,
base = x0 and x0 + x stays inside the bounds. For a pertinent positive, base = the baseline and x lies between 0 and
x0 - baseline.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import as_array, choice, float_dtype, items, nonnegative, reading, real_array, shown, some
from zomirror.classifiers import Classifier, as_classifier
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.place import Change
from zomirror.numerics.arrays import Array, Indices
from zomirror.problem import Box

KINDS = ("PP", "PN")
ON_GRID = 1e-3
"""Values closer than this to a step of their grid are on it."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorPlace:
    """The decision set, units and start of the search for a PP or PN of x0."""

    kind: str
    x0: Array
    """The input, in its own shape."""
    base: Array
    """The model's input at w = 0, flat."""
    scale: Array | float
    """Input units per unit of w, flat."""
    box: Box
    """The decision set of w."""
    start: Array
    """The first iterate."""
    fixed: Indices | None = None
    """Fixed features of a PP. They are copied from x0, because base + scale w equals it only up to rounding."""
    names: tuple[str, ...] | None = None
    grid: tuple[Array, Array] | None = None
    """Values that exist: offset + step k for every integer k; None: all."""
    within: tuple[Array, Array] | None = None
    """The w of all inputs inside the bounds of the features, if these are finite."""

    space = "vector"
    labels = None

    @property
    def as_it_is(self) -> Array:
        """x0 itself: the full presence of every feature of a PP, no change of a PN."""
        return self.start if self.kind == "PP" else np.zeros_like(self.start)

    @property
    def absent(self) -> Array:
        """The baseline, with the fixed features of a PP."""
        return self.box.project(np.zeros_like(self.start))

    @property
    def d(self) -> int:
        """The number of features."""
        return self.base.size

    @property
    def free(self) -> int:
        """The number of features that can change."""
        return int(np.count_nonzero(np.broadcast_to(self.box.lower < self.box.upper, self.base.shape)))

    def inputs(self, w: Array) -> Array:
        """The model's inputs at the rows of w: (n, *shape)."""
        points = w * self.scale
        points += self.base
        if self.fixed is not None:
            points[:, self.fixed] = self.x0.ravel()[self.fixed]
        batch: Array = points.reshape(-1, *self.x0.shape).astype(self.x0.dtype, copy=False)
        return batch

    def change(self, w: Array) -> Array:
        """The PP or PN x = scale w, in input units and in the shape of x0."""
        change: Array = (w * self.scale).reshape(self.x0.shape).astype(self.x0.dtype, copy=False)
        return change

    def sizes(self, w: Array) -> Array:
        """w itself: it is in units of each feature's range."""
        return w

    def legal(self, w: Array) -> Array:
        """w with each changed feature moved on, away from its value at w = 0, to the next value that exists."""
        if self.grid is None:
            return w
        offset, step = self.grid
        at = (w * np.float64(1.0) * self.scale + self.base - offset) / step
        # What is a value of the grid up to rounding stays there.
        k = np.where(w > 0, np.ceil(at - ON_GRID), np.floor(at + ON_GRID))
        moved = ((k * step + offset - self.base) / self.scale).astype(w.dtype)
        return np.where(w == 0, w, self.box.project(moved))

    def perturbed(self, w: Array) -> Array:
        """The model's input at w."""
        point: Array = self.inputs(w[None])[0]
        return point

    def changes(self, w: Array) -> tuple[Change, ...]:
        """None: the arrays of the explanation say them."""
        return ()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The input, the decision set and the start."""
        found = {"x0": self.x0, "base": self.base, "scale": self.scale, "start": self.start}
        found |= {"lower": self.box.lower, "upper": self.box.upper}
        return {name: np.asarray(array) for name, array in found.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """Every entry of an array is a feature of its own.

    Parameters
    ----------
    bounds : pair or Bounds
        The least and the largest value of each feature: two numbers, d pairs, two arrays, or scipy.optimize.Bounds.
    baseline : float or array
        The value of an absent feature of a PP: a number, one per channel, or an array like x0.
    fixed : mask or indices, optional
        Features that must not change: a boolean mask like x0, or flat indices.
    signed : bool
        Whether a PN may also lower features; otherwise it only raises them.
    scale : float or array, optional
        The unit in which a feature's change is penalised; by default its range.
    mean, std : float or array, optional
        x0 is normalised as (raw - mean) / std; the bounds are those of the raw values.
    step : float, optional
        Features take multiples of `step` only, in raw units: 1/255 for images of 8 bits. By default that of an image
        whose values lie on such a grid; 0 for none.
    names : sequence of str, optional
        One name for each feature, in the order of x0.ravel().
    """

    bounds: object = (0.0, 1.0)
    baseline: object = 0.0
    fixed: object = None
    signed: bool = False
    scale: object = None
    mean: object = None
    std: object = None
    step: float | None = None
    names: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", as_names("feature_names", self.names))
        if not isinstance(self.signed, bool | np.bool_):
            raise ArgumentTypeError(f"expected signed to be True or False, got {shown(self.signed)}")
        if self.step is not None:
            object.__setattr__(self, "step", nonnegative("step", self.step))

    def place(self, x0: object, kind: str) -> VectorPlace:
        """The decision set and start for this input; ArgumentError if x0 and the features do not fit."""
        with reading("features", self):
            found = _place_of(self, x0, kind)
        if self.names is not None and len(self.names) != found.d:
            raise ArgumentError(f"expected {found.d} feature_names, got {len(self.names)}")
        return found

    def classifier(self, model: Any) -> Classifier:
        """The model as a classifier of arrays."""
        return as_classifier(model)

    def record(self) -> dict[str, Any]:
        """What the arrays of a run directory do not hold."""
        normalised = {name: np.asarray(getattr(self, name)).tolist() for name in ("mean", "std")}
        return {"signed": bool(self.signed)} | (normalised if self.mean is not None else {})


def as_names(name: str, given: object) -> tuple[str, ...] | None:
    """Names as strings, or None."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ArgumentTypeError(f"expected {name} to be a sequence of names, got {shown(given)}")
    with reading(name, given):
        return tuple(str.__str__(str(item)) for item in items(name, given))


def _place_of(features: Vector, x0: object, kind: str) -> VectorPlace:
    """The decision set and start of the paper, for these features."""
    signed = features.signed
    choice("kind", kind, KINDS)
    image = input_array("x0", x0)
    dtype, shape = image.dtype, image.shape
    lower, upper = _bounds_of(features.bounds, image, features.mean, features.std)
    x = image.ravel()
    _refuse_outside(x, lower, upper)
    unit = _unit_of(features.scale, lower, upper, shape)
    frozen = _mask_of(features.fixed, shape)
    if kind == "PN":
        base = x
        low = (lower - x) if signed else np.zeros_like(x)
        high = upper - x
    else:
        base = np.broadcast_to(_spread("baseline", features.baseline, shape), x.shape).astype(dtype)
        _refuse_outside(base, lower, upper, "baseline")
        low, high = np.minimum(x - base, 0), np.maximum(x - base, 0)
    # A fixed feature has its value in x0: unchanged for a PN, fully present for a PP.
    kept = np.zeros_like(x) if kind == "PN" else x - base
    low, high = np.where(frozen, kept, low), np.where(frozen, kept, high)
    if not (low < high).any():
        remedy = "unfix some or widen the bounds" if signed else "unfix some, widen the bounds or use signed=True"
        raise ArgumentError(
            f"expected a feature that can change, got no free feature for {kind}: "
            + (remedy if kind == "PN" else "x0 equals the baseline")
        )
    low, high = (low / unit).astype(dtype), (high / unit).astype(dtype)
    box = Box(_inside(low, unit, base, lower, high), _inside(high, unit, base, upper, low))
    start = np.asarray(kept / unit, dtype) if kind == "PP" else _centre(low, high).astype(dtype)
    exact = np.flatnonzero(frozen) if kind == "PP" and frozen.any() else None
    within = ((lower - base) / unit, (upper - base) / unit) if np.isfinite(upper - lower).all() else None
    flat = np.ascontiguousarray(base)
    grid = _grid_of(features, image)
    return VectorPlace(kind, image, flat, unit, box, box.project(start), exact, features.names, grid, within)


def input_array(name: str, value: object) -> Array:
    """A finite array of real numbers; float32 stays, everything else becomes float64; a copy, read-only."""
    try:
        given = real_array(name, value)
    except ArgumentTypeError as error:
        if isinstance(value, str) or "real numbers" not in str(error) or "complex" in str(error):
            raise
        raise ArgumentTypeError(f"{error}: a row of a table needs features=zm.Table(reference_rows)") from None
    if given.ndim == 0 or given.size == 0:
        raise ArgumentError(f"expected {name} to be one input with at least one feature, got shape {given.shape}")
    array: Array = np.array(given, dtype=float_dtype(given.dtype), order="C", copy=True)
    if not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array.ravel()))
        raise ArgumentError(f"expected {name} to be finite, got {array.ravel()[bad[0]]} at {some(bad, 'feature')}")
    array.flags.writeable = False
    return array


def _bounds_of(bounds: object, x0: Array, mean: object, std: object) -> tuple[Array, Array]:
    """Lower and upper, flat, in the units of x0; with mean and std, `bounds` are those of x0 * std + mean."""
    if isinstance(bounds, tuple | list) and len(bounds) == 2 and not np.ndim(bounds[0]) == np.ndim(bounds[1]) == 0:
        sides = tuple(_spread(f"bounds[{i}]", side, x0.shape) for i, side in enumerate(bounds))
        box = Box(np.broadcast_to(sides[0], (x0.size,)), np.broadcast_to(sides[1], (x0.size,)))
    else:
        box = Box.of(bounds, x0.size)
    lower, upper = (np.broadcast_to(side, (x0.size,)).astype(np.float64) for side in (box.lower, box.upper))
    if (mean is None) != (std is None):
        raise ArgumentError("expected both mean and std, or neither: x0 is normalised as (raw - mean) / std")
    if mean is not None:
        shift, spread = _spread("mean", mean, x0.shape), _spread("std", std, x0.shape)
        if not (spread > 0).all():
            raise ArgumentError("expected std > 0 everywhere")
        lower, upper = (lower - shift) / spread, (upper - shift) / spread
    return lower.astype(x0.dtype), upper.astype(x0.dtype)


def _spread(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """`value` for every feature, flat: a number, one per channel (first axis of an image), or an array like x0."""
    try:
        read = as_array(value)
        if read.dtype.kind == "c":
            raise TypeError
        given = read.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"expected {name} to be real numbers, got {shown(value)}") from None
    if given.ndim == 1 and len(shape) > 1 and given.size == shape[0]:
        given = given.reshape(-1, *(1,) * (len(shape) - 1))
    if given.ndim == 1 and given.size == np.prod(shape):
        given = given.reshape(shape)
    try:
        return np.broadcast_to(given, shape).ravel()
    except ValueError:
        raise ArgumentError(
            f"expected {name} as a number, one per channel, or an array of shape {shape}, got shape {given.shape}"
        ) from None


def _refuse_outside(x: Array, lower: Array, upper: Array, name: str = "x0") -> None:
    # Normalised inputs respect their bounds only up to rounding.
    slack = 4 * np.finfo(x.dtype).eps * np.maximum(1, np.abs(x))
    outside = np.flatnonzero((x < lower - slack) | (x > upper + slack))
    if outside.size:
        i = int(outside[0])
        raise ArgumentError(
            f"expected {name} inside the bounds, got {some(outside, 'feature')} outside ({name}[{i}] = {x[i]:g}, "
            f"bounds [{lower[i]:g}, {upper[i]:g}]): give the bounds of your data as bounds=(lower, upper)"
        )


def _unit_of(scale: object, lower: Array, upper: Array, shape: tuple[int, ...]) -> Array:
    """Input units per unit of w: the given ones, or the range of each feature where it is finite and positive."""
    if scale is None:
        width = upper - lower
        unit: Array = np.where(np.isfinite(width) & (width > 0), width, 1).astype(lower.dtype)
        return unit
    unit = _spread("scale", scale, shape).astype(lower.dtype)
    if not ((unit > 0) & np.isfinite(unit)).all():
        raise ArgumentError("expected scale > 0 everywhere: it is the unit in which a feature's change is penalised")
    return unit


def _mask_of(fixed: object, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """The fixed features as a flat mask, from a boolean mask like x0 or a sequence of flat indices."""
    size = int(np.prod(shape))
    frozen = np.zeros(size, dtype=bool)
    if fixed is None:
        return frozen
    given: NDArray[Any] = real_array("fixed", fixed)
    if given.dtype == bool:
        if given.size != size:
            raise ArgumentError(f"expected fixed as a mask of shape {shape}, got shape {given.shape}")
        return given.ravel().copy()
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= size):
        raise ArgumentError(f"expected fixed as a boolean mask or as indices in 0..{size - 1}, got {shown(fixed)}")
    frozen[given.astype(np.intp).ravel()] = True
    return frozen


def _inside(side: Array, unit: Array, base: Array, bound: Array, other: Array) -> Array:
    """`side` of the box of w, moved inwards by up to 8 ulps until base + unit w does not exceed `bound`."""
    sign = np.where(side < other, -1, 1)
    for _ in range(8):
        beyond = (side != other) & (sign * (side * unit + base) > sign * bound)
        if not beyond.any():
            break
        side = np.where(beyond, np.nextafter(side, other), side)
    return side


def _grid_of(features: Vector, x0: Array) -> tuple[Array, Array] | None:
    """Offset and step of the values that exist, in the units of x0; None if all do."""
    mean, std = np.zeros(1), np.ones(1)
    if features.mean is not None:
        mean, std = _spread("mean", features.mean, x0.shape), _spread("std", features.std, x0.shape)
    raw = x0.ravel().astype(np.float64) * std + mean
    step = _eight_bits(raw) if features.step is None and x0.ndim > 1 else features.step
    if not step:
        return None
    shape = (x0.size,)
    return np.broadcast_to(-mean / std, shape), np.broadcast_to(step / std, shape)


def _eight_bits(raw: Array) -> float | None:
    """The step of an image of 8 bits, as fractions or as integers; None if it is none."""
    if raw.min() < -ON_GRID or raw.max() > 255 + ON_GRID:
        return None
    step = 1 / 255 if raw.max() <= 1 + ON_GRID else 1.0
    return step if np.abs(raw / step - np.rint(raw / step)).max() < ON_GRID else None


def _centre(low: Array, high: Array) -> Array:
    """(low + high) / 2; where a side is infinite, the point of [low, high] nearest to 0."""
    with np.errstate(invalid="ignore"):
        middle = (low + high) / 2
    open_ = ~np.isfinite(middle)
    middle[open_] = np.clip(0.0, low, high)[open_]
    return middle
