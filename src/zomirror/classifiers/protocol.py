"""The Classifier protocol, and the checks of a model's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from zomirror.checks import as_array, positive_integer, reading
from zomirror.errors import ArgumentError, OracleError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class Classifier(Protocol):
    """Maps a batch (n, *shape) to scores (n, classes); the class of a row is that of its largest score.

    Scores may be logits, log-probabilities or probabilities. Rows are independent of one another, so a batch may be
    split.
    """

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of every row of `batch`."""
        ...


@runtime_checkable
class Stepped(Protocol):
    """A classifier with piecewise constant scores (trees), whose slopes are 0 at small radii."""

    def radius_hint(self, x0: NDArray[Any], /) -> NDArray[np.float64] | None:
        """Return a radius for each feature, in the shape of x0, that crosses its steps; None without steps."""
        ...


def radius_hint(classifier: Classifier, x0: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return a smoothing radius per feature that crosses the steps of `classifier` near x0; None if none are known."""
    return classifier.radius_hint(x0) if isinstance(classifier, Stepped) else None


class MalformedError(Exception):
    """An answer violates its protocol; callers turn it into an OracleError."""


def ask(
    answer: Callable[[NDArray[Any]], object], batch: NDArray[Any], batch_rows: int | None
) -> NDArray[np.floating[Any]]:
    """Return the checked scores of `batch`, computed in blocks of at most `batch_rows` rows."""
    batch = check_batch(batch)
    rows = batch.shape[0]
    if batch_rows is None or rows <= batch_rows:
        return check_scores(answer(batch), rows)
    starts = range(0, rows, batch_rows)
    return join([check_scores(answer(batch[i : i + batch_rows]), min(batch_rows, rows - i)) for i in starts])


def check_batch(batch: object) -> NDArray[Any]:
    """Return `batch` as an array (n, *shape) with n >= 1, or refuse it."""
    with reading("the batch", batch):
        given = as_array(batch)
    if given.ndim < 2 or given.shape[0] == 0:
        raise ArgumentError(
            f"expected a batch of shape (n, *shape) with n >= 1, got {given.shape}: "
            "put the inputs along the first axis (x[None] makes a batch of one)"
        )
    return given


def join(parts: list[NDArray[np.floating[Any]]]) -> NDArray[np.floating[Any]]:
    """Stack the scores of successive blocks, which must agree on the number of classes."""
    classes = sorted({part.shape[1] for part in parts})
    if len(classes) > 1:
        raise OracleError(f"expected the same number of classes for every block, got {classes}: score all classes")
    return np.concatenate(parts)


def check_scores(values: object, rows: int) -> NDArray[np.floating[Any]]:
    """Return `values` as float scores (rows, classes), without a copy where possible; NaN is allowed."""
    try:
        scores = as_array(values)
    except TypeError as error:
        raise OracleError(
            f"expected scores that numpy can read, got {type(values).__name__} ({error}): return an array"
        ) from error.__cause__
    if scores.ndim != 2 or scores.shape[0] != rows or scores.shape[1] < 2:
        single = scores.shape in ((rows,), (rows, 1))
        remedy = (
            "turn one score s per row into two columns (-s, s); a single class has nothing to contrast, and "
            "a regressor needs zm.above(model, value)"
            if single
            else "return one row per input"
        )
        raise OracleError(f"expected scores of shape ({rows}, classes >= 2), got {scores.shape}: {remedy}")
    if scores.dtype == np.float32 or scores.dtype == np.float64:
        return scores
    if scores.dtype.kind not in "biuf":
        raise OracleError(f"expected real scores, got dtype {scores.dtype}: return floats")
    return scores.astype(np.float32 if scores.dtype == np.float16 else np.float64)


def check_batch_rows(batch_rows: int | None) -> None:
    """Refuse a `batch_rows` that is neither None nor a positive integer."""
    if batch_rows is not None:
        positive_integer("batch_rows", batch_rows)
