"""Stretches of a series, channels x time, that are there or replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import choice, positive_integer
from zomirror.classifiers import Classifier, as_classifier
from zomirror.errors import ArgumentError
from zomirror.features.groups import array_place, check_soft
from zomirror.features.parts import BUDGET, PartsPlace, part_numbers
from zomirror.features.vector import KINDS, as_names, input_array

Named = dict[str, Callable[[NDArray[Any]], NDArray[Any]]]
STRETCHES = 48
"""Stretches of each channel, if no length is given."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Stretches of time of each channel of a series, each there or replaced by a baseline.

    x0 is (time,) or (channels, time).

    Parameters
    ----------
    length : int, optional
        The length of a stretch; by default 1/48 of the series.
    labels : array of int, optional
        Stretches of your own: the stretch of each entry of x0, or of each time, which then holds all channels.
    baseline : "mean", "line", float, array or function
        What replaces a stretch: the mean of its channel, the line between the ends of the channel, a number, an array
        like x0, or a function of x0 that returns one. Several in a list: a PP must keep the class over each of them.
    names : sequence of str, optional
        The names of the channels, or of your own stretches by their labels.
    soft : bool
        Whether a stretch may be there in part, as in the paper.
    """

    length: int | None = None
    labels: Any = None
    baseline: Any = "mean"
    names: Any = None
    soft: bool = False

    signed = True
    default_budget = BUDGET

    def __post_init__(self) -> None:
        check_soft(self.soft)
        if self.length is not None:
            positive_integer("length", self.length)
            if self.labels is not None:
                raise ArgumentError("expected length or labels, got both: the labels say how long each stretch is")

    def place(self, x0: object, kind: str) -> PartsPlace:
        """The stretches of this series; ArgumentError if x0 is none or the labels do not fit."""
        choice("kind", kind, KINDS)
        array = input_array("x0", x0)
        if array.ndim > 2 or array.shape[-1] < 2:
            raise ArgumentError(f"expected a series of shape (time,) or (channels, time), got {array.shape}")
        named: Named = {"mean": lambda x: x.mean(axis=-1, keepdims=True), "line": line}
        if self.labels is not None:
            index, numbers = self._given(array)
            return array_place(
                array, index, numbers, self.baseline, named, kind, self.names, soft=self.soft, noun="stretch"
            )
        time = array.shape[-1]
        length = self.length or max(1, -(-time // STRETCHES))
        across = -(-time // length)
        channels = 1 if array.ndim == 1 else array.shape[0]
        stretch = np.arange(time) // length
        labels = (np.arange(channels)[:, None] * across + stretch).reshape(array.shape)
        index, numbers = part_numbers(labels, array.shape)
        names = _stretch_names(as_names("names", self.names), channels, time, length, across)
        return array_place(array, index, numbers, self.baseline, named, kind, names, soft=self.soft)

    def _given(self, array: NDArray[Any]) -> tuple[NDArray[np.intp], list[int]]:
        labels: NDArray[Any] = np.asarray(self.labels)
        if array.ndim == 2 and labels.shape == array.shape[1:]:
            labels = np.broadcast_to(labels, array.shape)
        return part_numbers(labels, array.shape)

    def classifier(self, model: Any) -> Classifier:
        """The model as a classifier of series."""
        return as_classifier(model)

    def record(self) -> dict[str, Any]:
        """What the arrays of a run directory do not hold."""
        return {"features": "windows", "soft": bool(self.soft)}


def line(x: NDArray[Any]) -> NDArray[Any]:
    """The line between the first and the last value of each channel."""
    share = np.linspace(0, 1, x.shape[-1])
    return np.asarray(x[..., :1] * (1 - share) + x[..., -1:] * share)


def _stretch_names(names: tuple[str, ...] | None, channels: int, time: int, length: int, across: int) -> list[str]:
    if names is not None and len(names) != channels:
        raise ArgumentError(f"expected {channels} names, one for each channel, got {len(names)}")
    titles = names or [f"channel {i}" for i in range(channels)]
    found = []
    for i in range(channels * across):
        begin = i % across * length
        when = f"time {begin}..{min(begin + length, time) - 1}"
        found.append(when if channels == 1 and names is None else f"{titles[i // across]}, {when}")
    return found
