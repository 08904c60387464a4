"""The changes of explanations as a pandas DataFrame."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from zomirror.contrast.explanation import Explanation
from zomirror.errors import ArgumentError, ArgumentTypeError


def changes_frame(explanations: Iterable[Explanation]) -> Any:
    """The changes of several explanations as a pandas DataFrame: one row for each changed (PN) or present (PP) feature.

    Parameters
    ----------
    explanations : iterable of Explanation
        What explain_many() returns, or the answers of explain(answers=...).

    Returns
    -------
    pandas.DataFrame
        With the columns answer (the place in `explanations`, from 0), kind, valid, label, contrast, column, before and
        after.
    """
    rows: list[dict[str, Any]] = []
    for i, one in enumerate(explanations):
        if not isinstance(one, Explanation):
            raise ArgumentTypeError(f"expected explanations, got {type(one).__name__} at place {i}")
        about = {"answer": i, "kind": one.kind, "valid": one.valid}
        about |= {"label": one.name_of(one.label), "contrast": one.name_of(one.contrast_label)}
        rows += [about | {"column": name, "before": before, "after": after} for name, before, after in one.changes]
    head = ("answer", "kind", "valid", "label", "contrast", "column", "before", "after")
    # Values of several columns share one column here, so that they keep their types only as objects.
    data = {name: [row[name] for row in rows] for name in head}
    pandas = _pandas()
    objects = {name: pandas.Series(data[name], dtype=object) for name in ("before", "after")}
    return pandas.DataFrame(data | objects)


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise ArgumentError("expected pandas for a DataFrame: pip install 'zomirror[tables]'") from None
