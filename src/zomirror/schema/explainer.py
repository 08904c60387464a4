"""A model and what its operator decided, ready to explain inputs that arrive as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import shown
from zomirror.contrast import Explanation, explain
from zomirror.contrast.options import BUDGET, budget_of
from zomirror.contrast.progress import Callback
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features import Table
from zomirror.features.image_axes import image_axes
from zomirror.schema.feature_space import features_of, normalised, space_of
from zomirror.schema.parameter import REGIONS, SPACES, TABLE, VECTOR, WORDS, parsed

MOST_CHARACTERS = 1 << 20
"""Longer texts are refused."""
MOST_ENTRIES = 1 << 24
"""Arrays with more numbers are refused."""


@dataclass(frozen=True, slots=True, eq=False)
class Explainer:
    """Explains inputs of one model in one feature space."""

    model: Any
    space: str = VECTOR
    frame: Any = None
    """The reference rows of a table."""
    shape: tuple[int, ...] | None = None
    """The shape of one array, if the model says it."""
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    class_names: tuple[str, ...] | None = None
    most: int = BUDGET
    """The largest budget that may be asked for."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of every explanation, where a request says nothing else."""

    def __post_init__(self) -> None:
        if self.space not in SPACES:
            raise ArgumentError(f"expected features among {', '.join(SPACES)}, got {shown(self.space, 60)}")
        if self.space == TABLE and self.frame is None:
            raise ArgumentError("expected reference rows for features of a table, got none: give a .csv as DATA")
        parsed(self.defaults, self.space)

    @property
    def is_normalised(self) -> bool:
        """Whether the model takes (input - mean) / std."""
        return self.mean is not None and self.std is not None and (any(self.mean) or set(self.std) != {1.0})

    @property
    def table(self) -> Table | None:
        """The columns of a table, with the rules that hold for every request."""
        if self.space != TABLE:
            return None
        found = features_of(TABLE, parsed(self.defaults, TABLE)[1], frame=self.frame)
        return found if isinstance(found, Table) else None

    def explain(self, given: object, parameters: object, callback: Callback | None = None) -> list[Explanation]:
        """Explain one input in JSON types; a list of answers, best first."""
        if not isinstance(parameters, Mapping):
            raise ArgumentTypeError(
                f"expected parameters as an object of names and values, got {type(parameters).__name__}"
            )
        options, rules = parsed({**self.defaults, **parameters}, self.space)
        x0, space = self.x0(given), space_of(rules, self.space)
        if space == REGIONS:
            rules = {name: value for name, value in rules.items() if name in ("regions", "fixed")}
        mean, std = (self.mean, self.std) if self.is_normalised else (None, None)
        if space == VECTOR:
            x0 = normalised(x0, mean, std)
        features = features_of(space, rules, x0=x0, frame=self.frame, mean=mean, std=std)
        options["budget"] = self._budget(options.get("budget"), budget_of("explain", features))
        options["rng"] = options.pop("seed", 0)
        if options.get("kind") == "PP":
            options["answers"] = 1
        found = explain(self.model, x0, features=features, class_names=self.class_names, callback=callback, **options)
        return found if isinstance(found, list) else [found]

    def x0(self, given: object) -> Any:
        """The input from JSON types: a row, a text or an array of numbers."""
        if self.space == WORDS:
            if not isinstance(given, str):
                raise ArgumentTypeError(f"expected a text, got {shown(given, 60)}")
            if len(given) > MOST_CHARACTERS:
                raise ArgumentError(f"expected a text of at most {MOST_CHARACTERS:,} characters, got {len(given):,}")
            return given
        if self.space == TABLE:
            return _row(given)
        return self._array(given)

    def _array(self, given: object) -> NDArray[Any]:
        try:
            array: NDArray[Any] = np.asarray(given)
        except ValueError as error:
            raise ArgumentError(f"expected an array of numbers as nested lists, got {error}") from None
        if array.dtype.kind not in "iuf" or not 1 <= array.size <= MOST_ENTRIES:
            raise ArgumentError(f"expected an array of numbers as nested lists, got {shown(given, 60)}")
        if self.shape is not None and array.shape != self.shape:
            raise ArgumentError(f"expected an input of shape {self.shape}, got {array.shape}")
        single = self.shape is not None or image_axes(array.shape) is not None
        with np.errstate(over="ignore"):
            found = array.astype(np.float32 if single else np.float64)
        if not np.isfinite(found).all():
            raise ArgumentError("expected finite numbers, got an input with others")
        return found

    def _budget(self, asked: int | None, default: int) -> int:
        if asked is None:
            return min(default, self.most)
        if asked > self.most:
            raise ArgumentError(f"expected budget <= {self.most}, which is the most here, got {shown(asked, 40)}")
        return asked


def _row(given: object) -> Any:
    """A row of plain values: by column, or in the order of the columns."""
    values = list(given.values()) if isinstance(given, Mapping) else given
    if not isinstance(values, list | tuple):
        raise ArgumentTypeError(f"expected a row as an object of columns, or as a list, got {shown(given, 60)}")
    for value in values:
        if value is not None and not isinstance(value, bool | int | float | str):
            raise ArgumentTypeError(f"expected plain values in a row, got {shown(value, 60)}")
    return given
