"""An answer in a sentence: which part of an input is enough for its class, and which change would alter it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zomirror.contrast.explanation import Explanation
from zomirror.contrast.row_words import row_part, row_sentence
from zomirror.drawing.marked_parts import counted_of, in_parts, is_text, pixels_of
from zomirror.drawing.picture import Pixels, picture_in
from zomirror.drawing.subject import feature_name, largest_features

_ROWS, _COLUMNS = ("upper", "middle", "lower"), ("left", "centre", "right")
_PLACES = {"middle centre": "centre", "upper centre": "top", "lower centre": "bottom"}
_PLACES |= {"middle left": "left", "middle right": "right"}
_MOST_WORDS = 6
"""The words or stretches that are named; the others are counted."""
_MOST = 3
"""The features of a table that are named; the others are counted."""


def sentence(one: Explanation) -> str:
    """One explanation or attack in a sentence, without its full stop."""
    if one.space == "table":
        return row_sentence(one)
    label, other = one.name_of(one.label), one.name_of(one.contrast_label)
    if not one.valid:
        return f"{'attack on' if one.is_attack else f'{one.kind} of'} {label}: {one.message}"
    if in_parts(one):
        return f"classified {label}{_part(one)}"
    count = counted_of(one)
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
    name = first.name_of(first.label)
    return f"{name if first.space == 'table' else f'classified {name}'}{''.join(parts)}"


def _part(one: Explanation) -> str:
    """What one explanation adds to the sentence."""
    if one.space == "table":
        return row_part(one)
    if not one.valid or not one.x.any():
        return f"; {one.kind}: {one.message}"
    if in_parts(one):
        return _part_of_parts(one)
    if one.kind == "PP":
        return f" because of {_features(one)}, which alone {'is' if one.nnz == 1 else 'are'} enough"
    return f"; with {_features(one)} it would be {one.name_of(one.contrast_label)}"


def _part_of_parts(one: Explanation) -> str:
    """What the parts of an image, a text or a series add to the sentence."""
    which = counted_of(one)
    if picture_in(one) is not None:
        which += f" ({place(pixels_of(one).astype(np.float64))})"
    elif not is_text(one) or one.nnz <= _MOST_WORDS:
        names = [f'"{change.name}"' if is_text(one) else change.name for change in one.changes]
        more = len(names) - _MOST_WORDS
        which += f" ({listed(names if more <= 0 else [*names[:_MOST_WORDS], f'{more} more'])})"
    if one.kind == "PP":
        return f" because of {which}, enough alone"
    gone = "left out" if is_text(one) and all(not change.after for change in one.changes) else "replaced"
    return f"; with {which} {gone} it would be {one.name_of(one.contrast_label)}"


def _features(one: Explanation) -> str:
    """`6 pixels (top and centre)`, or for a table `petal width = 0.2 and petal length = 1.4`."""
    picture = picture_in(one)
    change = None if picture is None else picture.change(one.x)
    if change is not None and change.any():
        done = "" if one.kind == "PP" else " changed" if (change < 0).any() else " added"
        return f"{counted_of(one)}{done} ({place(change)})"
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
