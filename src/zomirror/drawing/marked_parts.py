"""Parts in pictures, curves and texts: which pixels, times and words are kept or replaced."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import ndimage

from zomirror.drawing.colour import PALE, hue_of
from zomirror.drawing.sheet import text
from zomirror.drawing.subject import Drawable
from zomirror.features.image_axes import counted, shown_axes

FADED = 0.25
"""The contrast of what is not kept."""
Mask = NDArray[np.bool_]


def in_parts(one: Drawable) -> bool:
    """Whether the features are parts of an image, a text or a series."""
    return one.space in ("parts", "graded")


def is_text(one: Drawable) -> bool:
    """Whether the features are words."""
    return in_parts(one) and isinstance(one.x0, str)


def is_series(one: Drawable) -> bool:
    """Whether the features are stretches of a series."""
    return in_parts(one) and one.labels is not None and one.settings.get("features") == "windows"


def entries_of(one: Drawable) -> Mask:
    """Which entries of x0 belong to the parts of the PP or PN."""
    if one.labels is None:
        raise AssertionError("a text has no labels")
    chosen = np.isin(one.labels, np.flatnonzero(one.x))
    return np.broadcast_to(chosen, one.x0.shape)


def pixels_of(one: Drawable) -> Mask:
    """Which pixels (h, w) belong to the parts of the PP or PN."""
    axes = shown_axes(one.x0.shape)
    entries = entries_of(one)
    return entries if axes is None or axes.channels is None else np.asarray(entries.any(axis=axes.channels))


def outline(mask: Mask) -> Mask:
    """The pixels of a set that touch pixels outside it; two pixels wide in large images."""
    width = max(1, round(max(mask.shape) / 200))
    inner = ndimage.binary_erosion(mask, iterations=width, border_value=0)
    return mask & ~inner


def overlay(one: Drawable, image: NDArray[np.float64]) -> NDArray[np.float64]:
    """The kept (PP) or replaced (PN) part in colour on a faded ground, with its outline; image is (h, w, 3) in 0..1."""
    mask = pixels_of(one)
    grey = image @ np.array([0.299, 0.587, 0.114])
    shown = 1 - FADED * (1 - np.repeat(grey[..., None], 3, axis=2))
    shown[mask] = image[mask]
    shown[outline(mask)] = [int(hue_of(one.kind)[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return shown


def counted_parts(one: Drawable) -> str:
    """The size of the PP or PN: `3 of 12 words`, `4.2 % of the image`, `8 % of the series` or `2 of 9 groups`."""
    if is_text(one):
        return f"{one.nnz} of {one.x.size} words"
    share = 100 * float(np.abs(one.x).sum())
    if is_series(one):
        return f"{share:.2g} % of the series"
    if shown_axes(one.x0.shape) is not None and one.settings.get("features") == "regions":
        return f"{share:.2g} % of the image"
    return f"{one.nnz} of {one.x.size} groups"


def counted_of(one: Drawable) -> str:
    """The size of any PP or PN in words, as in `6 pixels`, `3 features`, `3 of 12 words`."""
    return counted_parts(one) if in_parts(one) else counted(one.x, one.nnz, one.feature_names)


def marked(one: Drawable) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each is a word of the PP or PN."""
    pieces, end = [], 0
    for name, size in zip(one.feature_names or (), one.x.tolist(), strict=True):
        begin = one.x0.find(name, end)
        if begin < 0:  # a file may hold anything
            continue
        pieces += [(one.x0[end:begin], False), (name, size != 0)]
        end = begin + len(name)
    return [(words, mark) for words, mark in [*pieces, (one.x0[end:], False)] if words]


def marked_html(one: Drawable) -> str:
    """The text with the words of the PP or PN in <mark> elements; everything else is escaped."""
    hue = hue_of(one.kind)
    style = f"background:none;color:{hue};font-weight:bold;text-decoration:underline"
    return "".join(
        f'<mark style="{style}">{escape(words)}</mark>' if mark else escape(words) for words, mark in marked(one)
    )


def draw_text(axes: Axes, one: Drawable, width: int, most: int) -> None:
    """The text in lines of `width` characters, the words of the PP or PN in their hue; at most `most` lines."""
    axes.axis("off")
    axes.set_xlim(0, width)
    axes.set_ylim(most, 0)
    column = line = 0
    for words, mark in marked(one):
        for token in words.split(" ") if not mark else [words]:
            if column + len(token) > width:
                column, line = 0, line + 1
            if line >= most - 1 and column + len(token) > width - 2:
                axes.text(column, line, "…", fontsize=8, family="monospace", va="top")
                return
            style: dict[str, Any] = {"color": hue_of(one.kind), "fontweight": "bold"} if mark else {"color": "0.35"}
            axes.text(column, line, text(token, width), fontsize=8, family="monospace", va="top", **style)
            column += len(token) + (0 if mark else 1)
        if not mark:
            column -= 1


def text_lines(one: Drawable, width: int, most: int) -> int:
    """How many lines `draw_text` takes."""
    return min(most, 2 + len(one.x0) // max(1, width - 8))


def draw_series(axes: Axes, one: Drawable) -> None:
    """Each channel as a curve, grey, with the stretches of the PP or PN in their hue."""
    curves, kept = np.atleast_2d(one.x0), np.atleast_2d(entries_of(one))
    span = float(np.ptp(curves)) or 1.0
    time = np.arange(curves.shape[1])
    for i, (curve, mask) in enumerate(zip(curves, kept, strict=True)):
        shift = -i * 1.1 * span
        axes.plot(time, curve + shift, color=str(1 - PALE), linewidth=0.8)
        axes.plot(time, np.where(mask, curve, np.nan) + shift, color=hue_of(one.kind), linewidth=1.8)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
        for begin, end in edges.reshape(-1, 2):
            axes.axvspan(begin - 0.5, end - 0.5, color=hue_of(one.kind), alpha=0.12, linewidth=0)
    axes.set_yticks([])
    axes.tick_params(labelsize=7)
    axes.set_xlabel("time", fontsize=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
