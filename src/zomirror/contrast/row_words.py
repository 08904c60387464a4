"""An answer about a row of a table in a sentence, in the units of its columns."""

from __future__ import annotations

from zomirror.contrast.explanation import Explanation
from zomirror.features.tabular.value_words import shown, shown_both

MOST = 6
"""The columns that are named; the others are counted."""


def row_sentence(one: Explanation) -> str:
    """`refused; granted if housing: rent -> own and income: 28,800 -> 31,000`, without its full stop."""
    label = one.name_of(one.label)
    if not one.valid or not one.changes:
        return f"{'attack on' if one.is_attack else f'{one.kind} of'} {label}: {_reason(one)}"
    return f"{label}{row_part(one)}"


def row_part(one: Explanation) -> str:
    """What one explanation adds to the name of the class."""
    if not one.valid or not one.changes:
        return f"; {one.kind}: {_reason(one)}"
    if one.kind == "PN":
        return f"; {one.name_of(one.contrast_label)} if {_listed(one)}"
    # The status comes first in a message; what follows is about the baseline.
    note = one.message.partition("; ")[2]
    enough = f" because of {_listed(one)}, which alone {'is' if len(one.changes) == 1 else 'are'} enough"
    return f"{enough} ({note})" if note else enough


def _reason(one: Explanation) -> str:
    """Why there is nothing to name: of a valid explanation what follows its status, for instance on the baseline."""
    note = one.message.partition("; ")[2]
    return note if note and one.valid else one.message


def _listed(one: Explanation) -> str:
    words = [_change(one.kind, *change) for change in one.changes[:MOST]]
    if (rest := len(one.changes) - MOST) > 0:
        words.append(f"{rest} more column{'' if rest == 1 else 's'}")
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _change(kind: str, name: str, before: object, after: object) -> str:
    if kind == "PP":
        return f"{name} = {shown(after)}"
    return "{}: {} -> {}".format(name, *shown_both(before, after))
