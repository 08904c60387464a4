"""The result of explain() and attack(): the features that must be present (PP) or absent (PN) for a decision."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.explanation_json import dumps, loads
from zomirror.errors import ArgumentError
from zomirror.features.image_axes import image_axes
from zomirror.features.place import Change
from zomirror.features.tabular.frames import row_values
from zomirror.features.vector import as_names
from zomirror.numerics.arrays import Array
from zomirror.result import History, Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """The best valid pertinent positive or negative of one input that was seen.

    Norms, `objective` and `history` are in units of each feature's range (the `scale` of explain()); `x`, `x0`
    and `perturbed` are in input units and in the input's shape.
    """

    kind: str
    """PP or PN."""
    valid: bool
    """PN: the class changed (to the target, if one was given). PP: the class is kept."""
    label: int
    """The class that is explained; -1 if the model failed before it was known."""
    contrast_label: int
    """The class of `perturbed`; -1 if it is not known."""
    x: Array = field(repr=False)
    """The sparse PP or PN itself."""
    x0: Any = field(repr=False)
    """The input: an array, a row of a table or a text."""
    perturbed: Any = field(repr=False)
    """What the model sees, in the type of x0: for arrays x0 + x for a PN, baseline + x for a PP."""
    scores_before: NDArray[np.float64] = field(repr=False)
    """The model's scores at x0."""
    scores_after: NDArray[np.float64] = field(repr=False)
    """The model's scores at `perturbed`."""
    margin: float
    """The margin at `perturbed`, in units of the scores: negative where the class is kept (PP) or changed (PN)."""
    objective: float
    """The paper's F at x: max(margin, -kappa) + l1 |x|_1 + (l2/2) |x|_2^2."""
    l1_norm: float
    l2_norm: float
    nnz: int
    """Features that change (PN) or are present (PP)."""
    nfev: int
    """Model queries used, including the one that found the label."""
    sent: int
    """Model queries ever sent, including retries."""
    seed: int
    status: Status
    message: str
    history: History = field(repr=False)
    scale: Array = field(repr=False)
    """Input units per unit of change, one for each feature or one for all: the norms are those of x / scale."""
    settings: dict[str, Any] = field(repr=False)
    """The options of the call: task, l1, l2, kappa, loss, budget and so on."""
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    class_names: tuple[str, ...] | None = field(default=None, repr=False)
    space: str = "vector"
    """The kind of features: vector, table or parts."""
    listed: tuple[Change, ...] = field(default=(), repr=False)
    """The changes as the feature space names them; empty for a vector."""
    labels: NDArray[Any] | None = field(default=None, repr=False)
    """The part of each entry of x0, where parts of an array are the features."""
    others: tuple[Explanation, ...] = field(default=(), repr=False)
    """Further answers, where several were asked for: explain() returns them as a list."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """The features that change (PN) or are present (PP): (name, before or when absent, after), largest first."""
        if self.space != "vector":
            return self.listed
        x, after, names = self.x.ravel(), self.perturbed.ravel(), self.feature_names
        before = (self.x0 if self.kind == "PN" else self.perturbed - self.x).ravel()
        order = np.argsort(-np.abs((self.x / self.scale).ravel()), kind="stable")[: np.count_nonzero(x)]
        return tuple(Change(names[i] if names else str(i), before[i].item(), after[i].item()) for i in order.tolist())

    @property
    def used(self) -> int:
        """Queries whose answers were used: the same as nfev."""
        return self.nfev

    @property
    def lost(self) -> int:
        """Queries sent whose answers never came, or came in a later attempt."""
        return self.sent - self.nfev

    @property
    def pixels(self) -> int:
        """Changed pixels of an image, all channels together; of other inputs the changed features (l0)."""
        axes = image_axes(self.x.shape)
        channels = () if axes is None or axes.channels is None else axes.channels
        return int(np.count_nonzero(np.any(self.x, axis=channels)))

    @property
    def is_attack(self) -> bool:
        """Whether attack() found it."""
        return self.settings.get("task") == "attack"

    def name_of(self, label: int) -> str:
        """The name of a class, or its number."""
        if label < 0:
            return "an unknown class"
        return self.class_names[label] if self.class_names else str(label)

    def top(self, most: int = 10) -> list[tuple[str, float]]:
        """The features with the largest |x / scale|, largest first: (name or index, value in x)."""
        flat = self.x.ravel()
        order = np.argsort(-np.abs((self.x / self.scale).ravel()), kind="stable")[:most]
        names = self.feature_names
        return [(names[i] if names else str(i), float(flat[i])) for i in order if flat[i] != 0]

    @property
    def frame(self) -> Any:
        """The changes as a pandas DataFrame with the columns column, before and after."""
        from zomirror.contrast.dataframe import changes_frame

        return changes_frame([self])[["column", "before", "after"]]

    @property
    def input_key(self) -> tuple[object, ...]:
        """Equal for explanations of one input."""
        if isinstance(self.x0, np.ndarray) and self.space != "table":
            return (self.x0.shape, self.x0.tobytes())
        return (
            (self.x0,) if isinstance(self.x0, str) else tuple(sorted(row_values(self.x0, self.feature_names).items()))
        )

    def words(self) -> str:
        """The answer in a sentence."""
        from zomirror.contrast.sentence import sentence

        return sentence(self)

    def plot(self, **options: Any) -> Figure:
        """The input, the PP or PN, what the model saw and its scores, as a matplotlib Figure."""
        from zomirror.drawing.plot import plot  # imported late: matplotlib is optional and slow to load

        return plot(self, **({"title": self.words()} if self.is_attack else {}) | options)

    def _repr_html_(self) -> str:
        from zomirror.drawing.marked_parts import is_text, marked_html

        marked = f"<p style='white-space:pre-wrap'>{marked_html(self)}</p>" if is_text(self) else ""
        return as_html(self.plot(), self.words()) + marked

    def to_json(self) -> str:
        """Everything as JSON text; numbers keep every digit."""
        return dumps(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The explanation that `to_json` wrote; DataError says what is wrong with any other text."""
        return loads(cls, text)

    def named(self, feature_names: object = None, class_names: object = None) -> Explanation:
        """The same explanation with names for features and classes."""
        return replace(
            self,
            feature_names=_names_of("feature_names", feature_names, self.x.size) or self.feature_names,
            class_names=_names_of("class_names", class_names, self.scores_before.size) or self.class_names,
        )


def as_html(picture: Figure, words: str) -> str:
    """A picture and its caption, for a notebook."""
    from zomirror.drawing.plot import data_uri

    return f'<figure><img alt="{escape(words)}" src="{data_uri(picture)}"><p>{escape(words)}</p></figure>'


def _names_of(name: str, given: object, count: int) -> tuple[str, ...] | None:
    """`count` names as strings, or None."""
    names = as_names(name, given)
    if names is not None and len(names) != count:
        raise ArgumentError(f"expected {count} {name}, got {len(names)}")
    return names
