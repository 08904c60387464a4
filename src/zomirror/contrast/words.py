"""An answer in a sentence: which part of an input is enough for its class, and which change would alter it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zomirror.contrast.explanation import Explanation
from zomirror.drawing.picture import Pixels, picture_in
from zomirror.drawing.subject import feature_name, largest_features
from zomirror.features.image_axes import counted

_ROWS, _COLUMNS = ("upper", "middle", "lower"), ("left", "centre", "right")
_PLACES = {"middle centre": "centre", "upper centre": "top", "lower centre": "bottom"}
_PLACES |= {"middle left": "left", "middle right": "right"}
_MOST = 3
"""The features of a table that are named; the others are counted."""


def sentence(one: Explanation) -> str:
    """One explanation or attack in a sentence, without its full stop."""
    label, other = one.name_of(one.label), one.name_of(one.contrast_label)
    if not one.valid:
        return f"{'attack on' if one.is_attack else f'{one.kind} of'} {label}: {one.message}"
    count = counted(one.x, one.nnz, one.feature_names)
    single = count.startswith("1 ")
    if one.is_attack:
        return f"{label} is taken for {other} with {count} changed"
    if one.kind == "PP":
        return f"classified {label} because of {count}, which alone {'is' if single else 'are'} enough"
    holds = "is as it is" if single else "are as they are"
    return f"classified {label} because {count} {holds}: changed, the class would be {other}"


def answer(explanations: Sequence[Explanation]) -> str:
    """The PP and the PN of one input in one sentence, without its full stop."""
    first = explanations[0]
    parts = [_part(one) for one in sorted(explanations, key=lambda one: one.kind == "PN")]
    return f"classified {first.name_of(first.label)}{''.join(parts)}"


def _part(one: Explanation) -> str:
    """What one explanation adds to the sentence."""
    if not one.valid or not one.x.any():
        return f"; {one.kind}: {one.message}"
    if one.kind == "PP":
        return f" because of {_features(one)}, which alone {'is' if one.nnz == 1 else 'are'} enough"
    return f"; with {_features(one)} it would be {one.name_of(one.contrast_label)}"


def _features(one: Explanation) -> str:
    """`6 pixels (top and centre)`, or for a table `petal width = 0.2 and petal length = 1.4`."""
    picture = picture_in(one)
    change = None if picture is None else picture.change(one.x)
    if change is not None and change.any():
        done = "" if one.kind == "PP" else " changed" if (change < 0).any() else " added"
        return f"{counted(one.x, one.nnz, one.feature_names)}{done} ({place(change)})"
    shown = [_feature(one, i) for i in largest_features(one)[:_MOST]]
    if (rest := one.nnz - _MOST) > 0:
        shown.append(f"{rest} more feature{'' if rest == 1 else 's'}")
    return listed(shown)


def _feature(one: Explanation, i: int) -> str:
    name, to = feature_name(one, i), one.perturbed.ravel()[i]
    return f"{name} = {to:.3g}" if one.kind == "PP" else f"{name} {one.x.ravel()[i]:+.3g} (to {to:.3g})"


def place(change: Pixels) -> str:
    """Where in the image most of the change lies: one or two of nine fields, or `all over it`."""
    shares, total = {}, float(np.abs(change).sum())
    for row, band in zip(_ROWS, np.array_split(np.abs(change), 3, axis=0), strict=True):
        for column, cell in zip(_COLUMNS, np.array_split(band, 3, axis=1), strict=True):
            shares[f"{row} {column}"] = float(cell.sum()) / total
    most, next_ = sorted(shares, key=lambda name: -shares[name])[:2]
    if shares[most] > 2 / 3:
        return _PLACES.get(most, most)
    both = [_PLACES.get(name, name) for name in (most, next_)]
    return listed(both) if shares[most] + shares[next_] > 1 / 2 else "all over it"


def listed(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else items[0]
