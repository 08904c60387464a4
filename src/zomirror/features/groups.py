"""Any grouping: entries of an array that are there or replaced together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import choice
from zomirror.classifiers import Classifier, as_classifier
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.parts import (
    BUDGET,
    ArrayParts,
    PartsPlace,
    baselines_of,
    edges_of,
    part_numbers,
    positions_of,
    weights_of,
)
from zomirror.features.vector import KINDS, input_array


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of entries of an array, each there as a whole or replaced by a baseline.

    Parameters
    ----------
    labels : array of int
        The group of each entry, in the shape of x0. Entries with a negative label are never replaced.
    baseline : float, array, function or "mean"
        What replaces an absent group: a number, an array like x0, a function of x0 that returns one, or the mean of
        x0. Several in a list: a PP must keep the class over each of them; a PN is replaced by the first.
    names : sequence or mapping of str, optional
        The names of the groups, by their labels.
    soft : bool
        Whether a group may be there in part, as in the paper.
    """

    labels: Any
    baseline: Any = 0.0
    names: Any = None
    soft: bool = False

    signed = True
    default_budget = BUDGET

    def __post_init__(self) -> None:
        check_soft(self.soft)

    def place(self, x0: object, kind: str) -> PartsPlace:
        """The groups of this input; ArgumentError if x0 and the labels do not fit."""
        choice("kind", kind, KINDS)
        array = input_array("x0", x0)
        index, numbers = part_numbers(self.labels, array.shape)
        named = {"mean": lambda x: np.full(x.shape, x.mean())}
        return array_place(array, index, numbers, self.baseline, named, kind, self.names, soft=self.soft)

    def classifier(self, model: Any) -> Classifier:
        """The model as a classifier of arrays."""
        return as_classifier(model)

    def record(self) -> dict[str, Any]:
        """What the arrays of a run directory do not hold."""
        return {"features": "groups", "soft": bool(self.soft)}


def array_place(
    x0: NDArray[Any],
    index: NDArray[np.intp],
    numbers: Sequence[int],
    baseline: Any,
    named: dict[str, Callable[[NDArray[Any]], NDArray[Any]]],
    kind: str,
    names: Any = None,
    *,
    soft: bool = False,
    noun: str = "group",
    connected: bool = False,
) -> PartsPlace:
    """The place of an array in parts; `index` has the axes of x0, those of length 1 being shared."""
    count, bases = len(numbers), baselines_of(baseline, x0, named)
    titles = part_names(names, numbers, noun)
    squeezed = index.reshape([side for side in index.shape if side > 1] or [1])
    material = ArrayParts(x0, bases, index)
    labels = np.broadcast_to(np.where(index < count, index, -1), index.shape).astype(np.int64)
    where = positions_of(squeezed, count)
    weights, edges = weights_of(index, count), edges_of(squeezed, count)
    return PartsPlace(kind, material, weights, where, edges, titles, labels, bool(soft), connected)


def part_names(names: Any, numbers: Sequence[int], noun: str) -> tuple[str, ...]:
    """The name of each part, by its label; ArgumentError for a name without a part."""
    if names is None:
        return tuple(f"{noun} {number}" for number in numbers)
    if isinstance(names, str) or not isinstance(names, Mapping | Sequence):
        raise ArgumentTypeError(f"expected names to be a sequence or a mapping from label to name, got {names!r}")
    titles = dict(names) if isinstance(names, Mapping) else dict(enumerate(names))
    if empty := sorted(set(titles) - set(numbers)):
        raise ArgumentError(
            f"expected every named {noun} to hold an entry, got none with label {empty[0]} ({titles[empty[0]]!r})"
        )
    return tuple(str(titles.get(number, f"{noun} {number}")) for number in numbers)


def check_soft(soft: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(soft, bool | np.bool_):
        raise ArgumentTypeError(f"expected soft to be True or False, got {soft!r}")
