"""A model of which only the class is known: its answers as rows with a 1 at the class and 0 elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.checks import as_array
from zomirror.classifiers.protocol import ask
from zomirror.errors import ArgumentError, OracleError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LabelOnly:
    """Calls `model`, which returns scores (n, classes) or, with a number of `classes`, the class of each row (n,)."""

    model: Callable[[NDArray[Any]], object]
    classes: int | None = None
    batch_rows: int | None = None

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names that the model knows."""
        return getattr(self.model, "class_names", None)

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return a row with one 1 for each row of the batch; NaN where a score is NaN."""
        return ask(self._answer, batch, self.batch_rows)

    def _answer(self, block: NDArray[Any]) -> object:
        shown = block.view()
        shown.flags.writeable = False
        try:
            given = as_array(self.model(shown))
        except TypeError as error:
            raise OracleError(f"expected classes that numpy can read, got {error}: return an array") from error
        if given.ndim == 1 and given.dtype.kind in "iu":
            return self._rows(given)
        if given.ndim != 2 or given.dtype.kind not in "biuf":
            return given  # check_scores says what is wrong with it
        rows = np.zeros(given.shape)
        rows[np.arange(len(given)), given.argmax(axis=1)] = 1.0
        rows[np.isnan(given).any(axis=1)] = np.nan
        return rows

    def _rows(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        if self.classes is None:
            raise ArgumentError(
                "expected class_names with a model that returns one class for each row: they say how many there are"
            )
        if labels.size and not 0 <= labels.min() <= labels.max() < self.classes:
            raise OracleError(f"expected classes in 0..{self.classes - 1}, got {labels.min()}..{labels.max()}")
        rows = np.zeros((labels.size, self.classes))
        rows[np.arange(labels.size), labels] = 1.0
        return rows
