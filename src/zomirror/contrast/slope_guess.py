"""What the caller guesses about the slopes of the scores: those of a surrogate of the model.

A search takes the guess as the mean of the slopes before its first probe, times the factor that the probes bear out
best: 1 for a guess that is right, 0 for one that says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import real_array, shown
from zomirror.classifiers import Classifier, as_classifier, is_model
from zomirror.engine.durable import stable_repr
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.vector import VectorPlace

STEP = 0.1
"""The slopes of a surrogate are differences over a step of 0.1 of each feature's range."""


@dataclass(frozen=True, slots=True, eq=False)
class SlopeGuess:
    """Guessed slopes of all scores at any input."""

    array: NDArray[np.float64] | None = None
    """The same slopes everywhere, (classes, *shape)."""
    function: Callable[[Any], Any] | None = None
    """From an input to such an array."""
    surrogate: Classifier | None = None
    """A model whose scores are differenced."""

    @property
    def local(self) -> bool:
        """Whether the slopes depend on the input."""
        return self.array is None

    def slopes(self, place: VectorPlace, w: NDArray[Any]) -> NDArray[np.float64]:
        """The slopes at w, in units of w: (classes, d)."""
        if self.surrogate is not None:
            return self._differences(place, self.surrogate, w)
        given: Any = self.array if self.function is None else self.function(place.perturbed(w))
        slopes = real_array("prior", given).astype(np.float64)
        if slopes.ndim != 1 + place.x0.ndim or slopes.shape[1:] != place.x0.shape or not np.isfinite(slopes).all():
            raise ArgumentError(
                f"expected prior to be finite slopes (classes, {', '.join(map(str, place.x0.shape))}), "
                f"got {'NaN or inf' if slopes.shape[1:] == place.x0.shape else f'shape {slopes.shape}'}"
            )
        return slopes.reshape(len(slopes), -1) * place.scale

    def check(self, place: VectorPlace) -> None:
        """ArgumentError if the slopes do not fit the input."""
        self.slopes(place, place.start)

    def record(self) -> str:
        """What stands for the prior in a run directory: arrays by a digest, models by their type."""
        if self.array is not None:
            return sha256(np.ascontiguousarray(self.array).tobytes()).hexdigest()
        return type(self.surrogate).__name__ if self.function is None else stable_repr("prior", self.function)

    @staticmethod
    def _differences(place: VectorPlace, surrogate: Classifier, w: NDArray[Any]) -> NDArray[np.float64]:
        lower, upper = (np.broadcast_to(side, w.shape) for side in (place.box.lower, place.box.upper))
        free = np.flatnonzero(lower < upper)
        up = upper[free] - w[free] >= STEP
        steps = np.where(up, STEP, -np.minimum(STEP, w[free] - lower[free])).astype(w.dtype)
        steps[steps == 0] = STEP  # a feature of less room: the surrogate may leave the box, which asks nothing
        points = np.repeat(w[None], 1 + free.size, axis=0)
        points[1 + np.arange(free.size), free] += steps
        scores = np.asarray(surrogate(place.inputs(points)), np.float64)
        slopes = np.zeros((scores.shape[1], w.size))
        slopes[:, free] = (scores[1:] - scores[0]).T / steps
        return np.where(np.isfinite(slopes), slopes, 0.0)


def as_prior(given: Any) -> SlopeGuess | None:
    """What the user gave: an array, a function of an input, or a model."""
    if given is None or isinstance(given, SlopeGuess):
        return given
    if is_model(given):
        return SlopeGuess(surrogate=as_classifier(given))
    if callable(given):
        return SlopeGuess(function=given)
    try:
        return SlopeGuess(array=real_array("prior", given).astype(np.float64))
    except ArgumentTypeError:
        raise ArgumentTypeError(
            f"expected prior to be slopes (classes, *shape), a function of an input or a model, got {shown(given)}"
        ) from None
