"""Bar charts: the features of a PP or PN with their values, and the scores of the classes before and after."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from zomirror.drawing.colour import ADDED, BEFORE, EXPLAINED, PRESENT, REMOVED, hue_of
from zomirror.drawing.sheet import Sheet, text, width_of
from zomirror.drawing.subject import Drawable, feature_name, largest_features, shown_classes
from zomirror.features.tabular.value_words import shown_both

FEWEST = 5
"""A chart is as high as one of at least 5 bars, so that no bar is drawn too thick."""
ROW = 0.24
"""Inches per bar."""


def number(value: float, digits: int = 4) -> str:
    """`value` to `digits` significant digits; with an exponent only below 1e-4 and from 1e6 on."""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return np.format_float_positional(value, precision=digits, fractional=False, trim="-")
    return f"{value:.{min(digits, 3) - 1}e}"


def features_height(one: Drawable, most: int) -> float:
    """Inches for the bars of the features."""
    return ROW * min(most, max(one.nnz, FEWEST))


def scores_height(one: Drawable, most: int) -> float:
    """Inches for the bars of the classes."""
    return 0.8 * ROW * min(most, max(one.scores_before.size, FEWEST))


def draw_features(sheet: Sheet, x: float, y: float, width: float, one: Drawable, most: int) -> None:
    """The `most` largest features: a bar in units of the feature's range, and the values before and after."""
    units = (one.x / one.scale).ravel()
    order = largest_features(one)
    shown = order[:most]
    labels = [text(feature_name(one, i), 34) for i in shown]
    # The values stand in a column at the right: beside the bars they would overlap names and margins.
    values = _before_and_after(one, shown)
    left, right = width_of(labels, 8) + 0.12, width_of(values, 8) + 0.12
    axes = sheet.axes(x + left, y, width - left - right, features_height(one, most))
    at = np.arange(shown.size)
    colours = [PRESENT if one.kind == "PP" else ADDED if units[i] > 0 else REMOVED for i in shown]
    axes.barh(at, units[shown], height=0.62, color=colours)
    _rows(axes, labels)
    _rows(axes.twinx(), values)
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    if not shown.size:
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.text(0.5, 0.5, "nothing", transform=axes.transAxes, ha="center", va="center", fontsize=9, color="0.4")
    noun = "column" if one.space == "table" else "feature"
    what = f"present {noun}s: baseline → value kept" if one.kind == "PP" else f"changed {noun}s: from → to"
    rest = f" ({order.size - shown.size} smaller not shown)" if order.size > shown.size else ""
    sheet.write(x, y - 0.22, what + rest, 9, color=hue_of(one.kind))
    units_of = f"in units of the {noun}'s range{'; a category counts as 1' if one.space == 'table' else ''}"
    if one.space not in ("vector", "table"):
        units_of = "share of the input"
    whole = one.space == "table" and one.kind == "PP"  # columns are present or not
    axes.set_xlabel(units_of if shown.size and not whole else "", fontsize=8)
    if whole:
        axes.set_xticks([])


def _before_and_after(one: Drawable, shown: NDArray[np.intp]) -> list[str]:
    """The two values of each feature."""
    if one.space != "vector":
        named = {name: shown_both(before, after) for name, before, after in one.changes}
        pairs = [named.get(feature_name(one, i), ("", "")) for i in shown]  # a file may hold anything
        return ["{} → {}".format(*(text(words, 24) for words in pair)) for pair in pairs]
    change, seen = one.x.ravel(), one.perturbed.ravel()
    return [f"{number(float(seen[i] - change[i]))} → {number(float(seen[i]))}" for i in shown]


def draw_scores(sheet: Sheet, x: float, y: float, width: float, one: Drawable, most: int) -> None:
    """The scores before and after of at most `most` classes; the names of the two labels are bold."""
    before, after = one.scores_before, one.scores_after
    sheet.write(x, y - 0.22, "scores" if before.size else "scores: not known", 9)
    if before.size == 0:
        return
    shown = shown_classes([one], max(most, 2))
    labels = [text(one.name_of(i), 18) for i in shown]
    left = width_of(labels, 8, bold=True) + 0.12
    axes = sheet.axes(x + left, y, width - left, scores_height(one, most))
    at = np.arange(len(shown))
    axes.barh(at - 0.2, _finite(before[shown]), height=0.38, color=BEFORE, label="before")
    axes.barh(at + 0.2, _finite(after[shown]), height=0.38, color=hue_of(one.kind), label="after")
    # The bar of a score near zero would be invisible: it gets a dot.
    reach = float(np.abs(_finite(np.concatenate([before[shown], after[shown]]))).max())
    tiny = np.isfinite(after[shown]) & (np.abs(after[shown]) < 0.01 * reach)
    axes.plot(after[shown][tiny], (at + 0.2)[tiny], "o", markersize=3, color=hue_of(one.kind), clip_on=False)
    _rows(axes, labels)
    for label, i in zip(axes.get_yticklabels(), shown, strict=True):
        if i in (one.label, one.contrast_label):
            label.set(fontweight="bold", color=hue_of(one.kind) if i == one.contrast_label else EXPLAINED)
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    below = ScaledTranslation(0, -0.24, sheet.figure.dpi_scale_trans)
    axes.legend(
        fontsize=7,
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=axes.transAxes + below,
        borderaxespad=0,
        ncols=2,
    )


def _finite(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores with 0, no bar, in place of what is not finite."""
    return np.where(np.isfinite(scores), scores, 0.0)


def _rows(axes: Axes, labels: list[str]) -> None:
    """One row per label from the top down, without ticks or frame."""
    axes.set_yticks(np.arange(len(labels)), labels, fontsize=8)
    axes.set_ylim(max(len(labels), FEWEST) - 0.4, -0.6)
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
