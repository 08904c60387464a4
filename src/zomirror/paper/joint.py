"""One model for several runs at once: each asks from a thread of its own, and the model sees one batch.

Models that like large batches get them, however small those of a run are. Nothing that a run computes depends on who
shares its batch: the rows of a batch are independent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Batch = NDArray[Any]
Model = Callable[[Batch], NDArray[Any]]


class Joint:
    """A model with a seat for each of some runs: it is asked once all that sit there have asked."""

    def __init__(self, model: Model, seats: int) -> None:
        self._model = model
        self._seated = set(range(seats))
        self._asked: dict[int, Batch] = {}
        self._told: dict[int, NDArray[Any] | Exception] = {}
        self._changed = threading.Condition()

    @contextmanager
    def seat(self, i: int) -> Iterator[Model]:
        """What the run on seat i asks in place of the model; when it leaves, nobody waits for it any longer."""
        try:
            yield lambda batch: self._ask(i, batch)
        finally:
            with self._changed:
                self._seated.discard(i)
                self._answer()

    def _ask(self, i: int, batch: Batch) -> NDArray[Any]:
        with self._changed:
            self._asked[i] = batch
            self._answer()
            self._changed.wait_for(lambda: i in self._told)
            told = self._told.pop(i)
        if isinstance(told, Exception):
            raise told
        return told

    def _answer(self) -> None:
        """Tell everybody, if everybody has asked."""
        if self._asked and self._asked.keys() == self._seated:
            order = sorted(self._asked)
            batches = [self._asked.pop(i) for i in order]
            self._told.update(zip(order, together(self._model, batches), strict=True))
            self._changed.notify_all()


def together(model: Model, batches: Sequence[Batch]) -> list[NDArray[Any] | Exception]:
    """What the model says of each batch, asked as one; if that fails each is asked alone, and has its own failure."""
    if len(batches) > 1:
        try:
            scores = model(np.concatenate(batches))
            return list(np.split(scores, np.cumsum([len(batch) for batch in batches[:-1]])))
        except Exception:  # noqa: BLE001, S110  whoever is to blame hears of it below
            pass
    return [_alone(model, batch) for batch in batches]


def _alone(model: Model, batch: Batch) -> NDArray[Any] | Exception:
    try:
        return model(batch)
    except Exception as error:  # noqa: BLE001  raised where it was asked
        return error
