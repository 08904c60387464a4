"""An input in parts that are there or replaced: the place that Groups, Regions, Words and Windows share.

The variable w has one entry per part. For a PP, w = 1 keeps the part and w = 0 replaces it; for a PN, w = 1 replaces
it. An input may have several baselines. The first is the one that is shown and that a PN is replaced by; a PP is valid
only if it keeps the class over all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.place import Change
from zomirror.numerics.arrays import Array, Indices
from zomirror.problem import Box

BUDGET = 300
"""The default budget of a search over parts."""
ADJACENT_ENTRIES = 1 << 26
"""Label arrays with more entries are refused: their borders would take gigabytes."""


class Material(Protocol):
    """An input that can be put together from parts of its own and parts of a baseline."""

    @property
    def x0(self) -> Any:
        """The input, as a person gets it."""

    @property
    def baselines(self) -> int:
        """How many baselines there are."""

    def batch(self, present: Array, which: Indices) -> NDArray[Any]:
        """Inputs with the parts `present` (n, d), the others replaced by the baseline of each row."""

    def person(self, present: Array) -> Any:
        """The input with the parts `present` (d,), over the first baseline, in the type of x0."""

    def values(self, part: int) -> tuple[Any, Any]:
        """What a part is when it is there and when it is not, as a person reads them."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The input and its baselines, for the run directory."""


@dataclass(frozen=True, slots=True, eq=False)
class PartsPlace:
    """The parts of one input, their sizes and where they lie."""

    kind: str
    material: Material
    weights: Array
    """The share of the input that each part is."""
    positions: Array
    """The centre of each part, (d, axes)."""
    edges: Indices
    """Pairs of parts that touch, (m, 2)."""
    names: tuple[str, ...]
    labels: NDArray[Any] | None = None
    soft: bool = False
    """Whether a part may be there in part."""
    connected: bool = False
    """Whether a set of parts should hang together, where there are many parts."""

    @property
    def space(self) -> str:
        """The search on presence, or for graded presence a descent."""
        return "graded" if self.soft else "parts"

    @property
    def x0(self) -> Any:
        """The input."""
        return self.material.x0

    @property
    def box(self) -> Box:
        """[0, 1] for each part."""
        return Box(np.zeros(self.d), np.ones(self.d))

    @property
    def start(self) -> Array:
        """All parts there for a PP; for a PN all parts replaced, or by half where presence is graded."""
        return np.full(self.d, 0.5) if self.kind == "PN" and self.soft else np.ones(self.d)

    @property
    def as_it_is(self) -> Array:
        """The input itself."""
        return np.ones(self.d) if self.kind == "PP" else np.zeros(self.d)

    @property
    def absent(self) -> Array:
        """The baseline alone."""
        return np.zeros(self.d)

    scale = 1.0

    @property
    def d(self) -> int:
        """The number of parts."""
        return self.weights.size

    @property
    def free(self) -> int:
        """Every part can be replaced."""
        return self.d

    def present(self, w: Array) -> Array:
        """How far each part is there."""
        return w if self.kind == "PP" else 1.0 - w

    def inputs(self, w: Array) -> NDArray[Any]:
        """The inputs at the rows of w, over the first baseline."""
        return self.material.batch(self.present(w), np.zeros(len(w), np.intp))

    def inputs_over(self, points: Array) -> NDArray[Any]:
        """The inputs at the rows (w, number of the baseline)."""
        return self.material.batch(self.present(points[:, :-1]), points[:, -1].astype(np.intp))

    def sizes(self, w: Array) -> Array:
        """The share of the input that is kept (PP) or replaced (PN), part by part."""
        return np.asarray(w * self.weights)

    def legal(self, w: Array) -> Array:
        """Each part there or not; with `soft`, w itself."""
        return w if self.soft else (np.asarray(w) >= 0.5).astype(np.float64)

    def change(self, w: Array) -> Array:
        """The same as `sizes`."""
        return self.sizes(w)

    def perturbed(self, w: Array) -> Any:
        """The input at w, over the first baseline."""
        return self.material.person(self.present(w))

    def changes(self, w: Array) -> tuple[Change, ...]:
        """The parts that are kept (PP) or replaced (PN), largest first."""
        order = np.argsort(-self.sizes(w), kind="stable")[: np.count_nonzero(w)]
        found = []
        for i in order.tolist():
            there, gone = self.material.values(i)
            found.append(
                Change(self.names[i], gone, there) if self.kind == "PP" else Change(self.names[i], there, gone)
            )
        return tuple(found)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The input, its baselines and its parts."""
        found = {"weights": self.weights, "positions": self.positions}
        return self.material.arrays() | found | ({} if self.labels is None else {"labels": self.labels})


@dataclass(frozen=True, slots=True, eq=False)
class ArrayParts:
    """An array whose entries belong to parts."""

    x0: NDArray[Any]
    bases: NDArray[Any]
    """The baselines, (k, *shape)."""
    index: Indices
    """The part of each entry; the number of parts stands for no part. It broadcasts to the shape of x0."""

    @property
    def baselines(self) -> int:
        """How many baselines there are."""
        return len(self.bases)

    def batch(self, present: Array, which: Indices) -> NDArray[Any]:
        """Inputs with the parts `present`, the others taken from the baseline of each row."""
        share = np.concatenate([present, np.ones((len(present), 1))], axis=1)[:, self.index]
        base = self.bases[which]
        if ((present == 0) | (present == 1)).all():
            return np.where(share > 0, self.x0, base)
        mixed = base + share * (self.x0.astype(np.float64) - base)
        return np.asarray((mixed.round() if self.x0.dtype.kind in "iu" else mixed).astype(self.x0.dtype))

    def person(self, present: Array) -> NDArray[Any]:
        """The input with the parts `present` over the first baseline."""
        return np.asarray(self.batch(present[None], np.zeros(1, np.intp))[0])

    def values(self, part: int) -> tuple[str, str]:
        """In words: the numbers are in the arrays."""
        return "there", "replaced"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The input and its baselines."""
        return {"x0": self.x0, "bases": self.bases}


def part_numbers(labels: object, shape: tuple[int, ...], what: str = "labels") -> tuple[NDArray[np.intp], list[int]]:
    """Label numbers as 0..d-1 (d: no part), and the labels that they stand for; negative labels are no part."""
    given: NDArray[Any] = np.asarray(labels)
    if given.dtype == bool or given.dtype.kind not in "iu":
        raise ArgumentTypeError(f"expected {what} to be integers, got dtype {given.dtype}: number the parts 0, 1, ...")
    if given.shape != shape:
        raise ArgumentError(
            f"expected {what} of shape {shape}, one for each entry of x0, got {given.shape}: label x0 as it is given"
        )
    if given.size > ADJACENT_ENTRIES:
        raise ArgumentError(f"expected at most {ADJACENT_ENTRIES} {what}, got {given.size}: use a smaller x0")
    kept = np.unique(given[given >= 0])
    if kept.size < 2:
        raise ArgumentError(f"expected {what} of at least two parts, got {kept.size}: a single part explains nothing")
    index = np.where(given >= 0, np.searchsorted(kept, given), kept.size)
    return index.astype(np.intp), [int(label) for label in kept]


def weights_of(index: Indices, count: int) -> Array:
    """The share of the entries that each part holds."""
    found = np.bincount(index.ravel(), minlength=count + 1)[:count].astype(np.float64)
    return np.asarray(found / found.sum())


def positions_of(index: Indices, count: int) -> Array:
    """The centre of each part, (count, axes)."""
    entries, flat = np.bincount(index.ravel(), minlength=count + 1)[:count], index.ravel()
    places = np.indices(index.shape).reshape(index.ndim, -1)
    centres = [np.bincount(flat, weights=axis, minlength=count + 1)[:count] / entries for axis in places]
    return np.stack(centres, axis=1)


def edges_of(index: Indices, count: int) -> Indices:
    """Pairs of parts with neighbouring entries."""
    pairs = []
    for axis in range(index.ndim):
        low = index.take(np.arange(index.shape[axis] - 1), axis).ravel()
        high = index.take(np.arange(1, index.shape[axis]), axis).ravel()
        differ = (low != high) & (low < count) & (high < count)
        pairs.append(np.stack([np.minimum(low, high)[differ], np.maximum(low, high)[differ]], axis=1))
    return np.unique(np.concatenate(pairs), axis=0).astype(np.intp)


def baselines_of(
    given: Any, x0: NDArray[Any], named: dict[str, Callable[[NDArray[Any]], NDArray[Any]]]
) -> NDArray[Any]:
    """The baselines (k, *shape): names, numbers, arrays and functions of x0; several in a list or tuple."""
    several = isinstance(given, list | tuple) and any(
        isinstance(one, str) or callable(one) or np.shape(one) == x0.shape for one in given
    )
    found = [_baseline_of(one, x0, named) for one in (given if several else [given])]
    if all(np.allclose(base, x0, rtol=1e-6, atol=0) for base in found):
        raise ArgumentError("expected a baseline that differs from x0, got x0 itself: nothing would be replaced")
    return np.stack(found)


def _baseline_of(
    given: Any, x0: NDArray[Any], named: dict[str, Callable[[NDArray[Any]], NDArray[Any]]]
) -> NDArray[Any]:
    if isinstance(given, str):
        if given not in named:
            known = ", ".join(map(repr, named))
            raise ArgumentError(f"expected baseline to be one of {known}, an array or a function, got {given!r}")
        value: Any = named[given](x0)
    else:
        value = given(x0) if callable(given) else given
    try:
        base = np.asarray(value, dtype=np.float64)
        base = np.broadcast_to(base, x0.shape)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"expected a baseline of shape {x0.shape} or one number, got {np.shape(value)}: make it like x0"
        ) from None
    if not np.isfinite(base).all():
        raise ArgumentError("expected a finite baseline, got one that is not")
    if x0.dtype.kind in "iu":
        limits = np.iinfo(x0.dtype)
        base = np.clip(base.round(), limits.min, limits.max)
    return base.astype(x0.dtype)
