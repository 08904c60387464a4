"""The colours of explanations, chosen to be distinguishable to colour-blind readers."""

from __future__ import annotations

PRESENT, ADDED, REMOVED = "#0072b2", "#d55e00", "#5d3a9b"
"""A PP is blue; a PN is orange where it adds and violet where it removes."""
BEFORE = "#a6a6a6"
"""Scores of the input."""
EXPLAINED = "#222222"
"""The class of the input."""
PALE = 0.35
"""The input's darkness beneath a PP or PN is reduced to this fraction."""

_TINTS = {PRESENT: "#a9d3ee", ADDED: "#fbd0ac", REMOVED: "#d3c3ec"}


def hue_of(kind: str) -> str:
    """The hue of a PP or PN."""
    return PRESENT if kind == "PP" else ADDED


def ramp_of(kind: str, low: float, high: float) -> list[tuple[float, str]]:
    """The colours from the most negative change to the most positive one: tint at zero, hue at the ends."""
    hue = hue_of(kind)
    if low < 0 < high:
        return [(0.0, REMOVED), (0.5, _TINTS[REMOVED]), (0.5, _TINTS[hue]), (1.0, hue)]
    return [(0.0, REMOVED), (1.0, _TINTS[REMOVED])] if low < 0 else [(0.0, _TINTS[hue]), (1.0, hue)]
