"""What makes a changed row plausible: a term of the objective that costs no query of the model.

It is the distance to the nearest reference row of the class that the model gives the changed row, or any function of
a batch, for instance the error of an autoencoder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.engine.durable import stable_repr
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.tabular.table import Table

MOST_ROWS = 5_000
"""More rows than this are thinned out evenly."""


@dataclass(frozen=True, slots=True, eq=False)
class NearRows:
    """Plausible is what lies near these rows, in codes."""

    codes: NDArray[np.float64]

    def record(self) -> str:
        """A digest of the rows."""
        return sha256(np.nan_to_num(self.codes, nan=-0.5).tobytes()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class BatchCost:
    """A function of what the model takes: one number >= 0 for each row, 0 for the most plausible."""

    function: Callable[[Any], Any]

    def __call__(self, batch: Any, rows: int) -> NDArray[np.float64]:
        """The cost of each row of the batch, whose length need not be their number: a dict has columns."""
        costs = np.asarray(self.function(batch), np.float64)
        if costs.shape != (rows,) or not (costs >= 0).all():
            raise ArgumentError(
                f"expected plausible to return {rows} numbers >= 0, one for each row, got "
                f"{f'shape {costs.shape}' if costs.shape != (rows,) else f'{costs.min():g}'}"
            )
        return costs

    def record(self) -> str:
        """What stands for the function in explanations and run directories: its repr, or its name."""
        try:
            return stable_repr("plausible", self.function)
        except ArgumentError:  # its repr holds an address
            named = self.function if hasattr(self.function, "__qualname__") else type(self.function)
            return f"{named.__module__}.{named.__qualname__}"


def as_plausible(given: Any, table: Table) -> NearRows | BatchCost | None:
    """What the user gave: True for the reference rows of the table, rows, or a function of a batch."""
    if given is None or given is False:
        return None
    if isinstance(given, NearRows | BatchCost):
        return given
    if given is True:
        return NearRows(table.reference)
    if callable(given):
        cost = BatchCost(given)
        cost(table.build(table.reference[:1]), 1)  # what is wrong with it is found before the first query
        return cost
    try:
        codes = table.coded(given, "plausible")
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"expected plausible to be True, rows or a function of a batch: {error}") from None
    kept = np.unique(np.linspace(0, len(codes) - 1, min(MOST_ROWS, len(codes))).astype(np.intp))
    return NearRows(codes[kept])
