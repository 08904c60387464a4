"""An explanation as a JSON document that a program or a page reads: the changes, the words and the counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from zomirror.contrast import Explanation
from zomirror.contrast.explanation_json import plain
from zomirror.contrast.sentence import answer
from zomirror.features.tabular.frames import row_values

_SAME = (
    *("kind", "valid", "label", "contrast_label", "nnz", "l1_norm", "l2_norm", "objective", "margin"),
    *("nfev", "sent", "seed", "status", "message"),
)


def response(one: Explanation) -> dict[str, Any]:
    """The answer without its history: what changes, in words and in numbers, and what it cost."""
    words = answer([one])
    found: dict[str, Any] = {name: getattr(one, name) for name in _SAME}
    found |= {"label_name": one.name_of(one.label), "contrast_name": one.name_of(one.contrast_label)}
    found |= {"words": f"{words[0].upper()}{words[1:]}."}
    found["changes"] = [{"name": name, "before": before, "after": after} for name, before, after in one.changes]
    found["perturbed"] = perturbed_of(one)
    found |= {name: getattr(one, name).tolist() for name in ("scores_before", "scores_after")}
    document: dict[str, Any] = plain(found)
    return document


def perturbed_of(one: Explanation) -> Any:
    """What the model saw: a row by column, a text, or nested lists of numbers."""
    if isinstance(one.perturbed, str):
        return one.perturbed
    if isinstance(one.perturbed, np.ndarray) and one.space != "table":
        return one.perturbed.tolist()
    return row_values(one.perturbed, one.feature_names)
