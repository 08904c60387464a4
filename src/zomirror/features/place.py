"""What every feature space provides: for one input a `Place`, and for a model the classifier that takes its batches.

A batch is always an array whose first axis counts inputs, so the engine, joint batches, workers and journals need not
know the space: a table's batch is an array of codes, which its classifier decodes into a frame; texts are an array of
strings.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

from zomirror.classifiers import Classifier
from zomirror.numerics.arrays import Array
from zomirror.problem import Box


class Change(NamedTuple):
    """One feature before and after, in the user's units."""

    name: str
    before: Any
    after: Any


class Place(Protocol):
    """One input, ready to be searched. The variable w has one entry for each feature."""

    @property
    def kind(self) -> str:
        """PP or PN."""

    @property
    def space(self) -> str:
        """Which search is used: vector, table or parts."""

    @property
    def x0(self) -> Any:
        """The input, as the user gave it."""

    @property
    def box(self) -> Box:
        """The decision set of w."""

    @property
    def start(self) -> Array:
        """The first iterate of a descent."""

    @property
    def as_it_is(self) -> Array:
        """The w that stands for x0 itself."""

    @property
    def absent(self) -> Array:
        """The w of a PP without any feature: the baseline."""

    @property
    def scale(self) -> Array | float:
        """Input units per unit of change."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features."""

    @property
    def labels(self) -> NDArray[Any] | None:
        """For parts of an array: the part of each entry, for drawing."""

    @property
    def d(self) -> int:
        """The number of features."""

    @property
    def free(self) -> int:
        """The number of features that can change."""

    def inputs(self, w: Array) -> NDArray[Any]:
        """The classifier's inputs at the rows of w."""

    def sizes(self, w: Array) -> Array:
        """The change of each feature in units of its range, which the penalty and the norms are taken of."""

    def legal(self, w: Array) -> Array:
        """The nearest point that exists."""

    def change(self, w: Array) -> Array:
        """What the explanation calls x."""

    def perturbed(self, w: Array) -> Any:
        """The input at w, in the type of x0."""

    def changes(self, w: Array) -> tuple[Change, ...]:
        """What a person reads: the features that change (PN) or are present (PP).

        None of a vector, whose arrays say them.
        """

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What determines the search besides the options: stored in the run directory, compared on resumption."""


@runtime_checkable
class Features(Protocol):
    """What may change, and what it may become."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, where they do not depend on the input."""

    @property
    def signed(self) -> bool:
        """Whether a PN may change features in both directions."""

    def place(self, x0: object, kind: str) -> Place:
        """One input, ready to be searched; ArgumentError if x0 and the features do not fit."""

    def classifier(self, model: Any) -> Classifier:
        """The model as a classifier of the batches that `Place.inputs` makes."""

    def record(self) -> dict[str, Any]:
        """The settings as JSON: what run directories compare and explanations carry."""
