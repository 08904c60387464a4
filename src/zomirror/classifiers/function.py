"""A plain function as a classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zomirror.checks import shown
from zomirror.classifiers.protocol import ask, check_batch_rows
from zomirror.errors import ArgumentTypeError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Function:
    """Calls `predict`, which maps (n, *shape) to (n, classes), with read-only input."""

    predict: Callable[[NDArray[Any]], object]
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        if not callable(self.predict):
            raise ArgumentTypeError(f"expected predict to be a function of a batch, got {shown(self.predict)}")
        check_batch_rows(self.batch_rows)

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of `batch`."""
        return ask(self._answer, batch, self.batch_rows)

    def _answer(self, block: NDArray[Any]) -> object:
        if block.flags.writeable:  # a function that writes into its input would change the optimiser's points
            block = block.view()
            block.flags.writeable = False
        return self.predict(block)
