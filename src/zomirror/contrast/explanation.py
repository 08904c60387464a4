"""The answer: which features must be present (PP) or whose absence holds the decision up (PN)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from zomirror.arrays import Array
from zomirror.errors import ArgumentError, DataError
from zomirror.result import History, Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "zomirror explanation 1"
MAX_JSON_CHARACTERS = 1 << 28


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """A pertinent positive or negative of one input, the best valid one that was seen.

    Norms, `objective` and `history` are in units of each feature's range (the `scale` of explain()); `x`, `x0`
    and `perturbed` are in input units and in the input's shape.
    """

    kind: str
    """PP or PN."""
    valid: bool
    """PN: the class changed (to the target, if one was given). PP: the class is kept."""
    label: int
    """The class that is explained."""
    contrast_label: int
    """The class of `perturbed`."""
    x: Array = field(repr=False)
    """The sparse PP or PN itself."""
    x0: Array = field(repr=False)
    """The input."""
    perturbed: Array = field(repr=False)
    """What the model sees: x0 + x for a PN, baseline + x for a PP."""
    scores_before: NDArray[np.float64] = field(repr=False)
    """The model's scores at x0."""
    scores_after: NDArray[np.float64] = field(repr=False)
    """The model's scores at `perturbed`."""
    margin: float
    """How far from valid (> 0) or beyond (< 0) the best point is, in units of the scores."""
    objective: float
    """The paper's F at x: the hinge of the margin + l1 |x|_1 + (l2/2) |x|_2^2."""
    l1_norm: float
    l2_norm: float
    nnz: int
    """Features that change (PN) or are present (PP)."""
    nfev: int
    """Model queries used, the one that found the label included."""
    sent: int
    """Model queries ever sent, retries included."""
    seed: int
    status: Status
    message: str
    history: History = field(repr=False)
    settings: dict[str, Any] = field(repr=False)
    """What it was asked with: l1, l2, kappa, loss, budget and the like."""
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    class_names: tuple[str, ...] | None = field(default=None, repr=False)

    def name_of(self, label: int) -> str:
        """The class in words."""
        return self.class_names[label] if self.class_names else str(label)

    def top(self, most: int = 10) -> list[tuple[str, float]]:
        """The features with the largest part in x: (name or index, value), largest first."""
        flat = self.x.ravel()
        order = np.argsort(-np.abs(flat), kind="stable")[:most]
        names = self.feature_names
        return [(names[i] if names else str(i), float(flat[i])) for i in order if flat[i] != 0]

    def words(self) -> str:
        """The answer in a sentence."""
        label, other = self.name_of(self.label), self.name_of(self.contrast_label)
        features = f"{self.nnz} feature{'s' if self.nnz != 1 else ''}"
        if not self.valid:
            return f"no valid {self.kind} of {label} was found: {self.message}"
        if self.kind == "PP":
            return f"classified {label} because of {features}, which alone are enough"
        return f"classified {label} because {features} are as they are: changed, the class would be {other}"

    def plot(self, **options: Any) -> Figure:
        """The input, the PP or PN, what the model saw and its scores, as a matplotlib Figure."""
        from zomirror.contrast.plot import plot  # matplotlib is loaded only by those who draw

        return plot(self, **options)

    def _repr_html_(self) -> str:
        from zomirror.contrast.plot import data_uri, plot

        picture = data_uri(plot(self))
        return f'<figure><img alt="{escape(self.words())}" src="{picture}"><p>{escape(self.words())}</p></figure>'

    def to_json(self) -> str:
        """Everything as JSON text; numbers keep every digit."""
        document: dict[str, Any] = {"format": FORMAT}
        for item in fields(self):
            document[item.name] = _plain(getattr(self, item.name))
        return json.dumps(document, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The explanation that `to_json` wrote; DataError says what is wrong with any other text."""
        document = _document(text)
        try:
            values = {item.name: _restored(item.name, document[item.name]) for item in fields(cls)}
            explanation = cls(**values)
            _refuse_unfit(explanation)
        except DataError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"expected an explanation as to_json writes it, got one with {type(error).__name__}: {error}"
            ) from None
        return explanation

    def named(self, feature_names: object = None, class_names: object = None) -> Explanation:
        """The same explanation with names for features and classes."""
        return replace(
            self,
            feature_names=names_of("feature_names", feature_names, self.x0.size) or self.feature_names,
            class_names=names_of("class_names", class_names, self.scores_before.size) or self.class_names,
        )


def names_of(name: str, given: object, count: int) -> tuple[str, ...] | None:
    """`count` names as strings, or None."""
    if given is None:
        return None
    names = tuple(str(item) for item in given)  # type: ignore[attr-defined]
    if len(names) != count:
        raise ArgumentError(f"expected {count} {name}, got {len(names)}")
    return names


_ARRAYS = ("x", "x0", "perturbed", "scores_before", "scores_after")


def _plain(value: Any) -> Any:
    """`value` in JSON's own types; NaN and infinities as strings, which JSON has no numbers for."""
    if isinstance(value, np.ndarray):
        flat = value.ravel().tolist()
        return {"dtype": value.dtype.name, "shape": list(value.shape), "data": [_plain(item) for item in flat]}
    if isinstance(value, History):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Status):
        return value.name
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def _document(text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        raise DataError(f"expected JSON text, got {type(text).__name__}")
    if len(text) > MAX_JSON_CHARACTERS:
        raise DataError(f"expected at most {MAX_JSON_CHARACTERS} characters, got {len(text)}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"expected JSON text, got something else: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise DataError(f"expected the format {FORMAT!r}, got {found!r}")
    return document


def _array(value: Any) -> NDArray[Any]:
    dtype, shape, data = value["dtype"], tuple(value["shape"]), value["data"]
    if dtype not in ("float32", "float64", "int64"):
        raise DataError(f"expected arrays of float32, float64 or int64, got {dtype!r}")
    if not all(isinstance(n, int) and n >= 0 for n in shape) or len(shape) > 32 or int(np.prod(shape)) != len(data):
        raise DataError(f"expected as many numbers as the shape says, got {len(data)} for shape {list(shape)}")
    array: NDArray[Any] = np.array([float(item) for item in data]).astype(dtype).reshape(shape)
    array.flags.writeable = False
    return array


def _restored(name: str, value: Any) -> Any:
    if name in _ARRAYS:
        return _array(value)
    if name == "history":
        return History(**{item.name: _array(value[item.name]) for item in fields(History)})
    if name == "status":
        return Status[value]
    if name in ("margin", "objective", "l1_norm", "l2_norm"):
        return float(value)
    if name in ("label", "contrast_label", "nnz", "nfev", "sent", "seed"):
        return int(value)
    if name in ("feature_names", "class_names"):
        return None if value is None else tuple(str(item) for item in value)
    return value


def _refuse_unfit(explanation: Explanation) -> None:
    shapes = {explanation.x.shape, explanation.x0.shape, explanation.perturbed.shape}
    classes = explanation.scores_before.size
    if len(shapes) > 1 or explanation.scores_after.size != classes:
        raise DataError(f"expected x, x0 and perturbed of one shape and scores of one length, got {shapes}")
    for name in ("label", "contrast_label"):
        if not 0 <= getattr(explanation, name) < classes:
            raise DataError(f"expected {name} in 0..{classes - 1}, got {getattr(explanation, name)}")
    if explanation.kind not in ("PP", "PN") or not isinstance(explanation.valid, bool):
        raise DataError("expected kind PP or PN and valid true or false")
    names_of("feature_names", explanation.feature_names, explanation.x0.size)
    names_of("class_names", explanation.class_names, classes)
