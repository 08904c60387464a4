"""Bars: the features of a PP or PN with their values, and the scores of the classes before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from zomirror.drawing.colour import ADDED, BEFORE, EXPLAINED, PRESENT, REMOVED, hue_of
from zomirror.drawing.sheet import Sheet, text, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from zomirror.contrast.explanation import Explanation


FEWEST = 5
"""Room for so many bars even when there are fewer, which would grow fat."""
ROW = 0.24
"""Inches for a bar."""


def number(value: float, digits: int = 4) -> str:
    """So many digits, without an exponent where that can be read."""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return np.format_float_positional(value, precision=digits, fractional=False, trim="-")
    return f"{value:.{min(digits, 3) - 1}e}"


def features_height(one: Explanation, most: int) -> float:
    """Inches for the bars of the features."""
    return ROW * min(most, max(one.nnz, FEWEST))


def scores_height(one: Explanation, most: int) -> float:
    """Inches for the bars of the classes."""
    return 0.8 * ROW * min(most, max(one.scores_before.size, FEWEST))


def draw_features(sheet: Sheet, x: float, y: float, width: float, one: Explanation, most: int) -> None:
    """The largest features of x: a bar in units of the feature's range, and the value before and after."""
    units = (one.x / one.scale).ravel()
    change, seen = one.x.ravel(), one.perturbed.ravel()
    order = np.argsort(-np.abs(units), kind="stable")
    order = order[units[order] != 0]
    shown = order[:most]
    names = one.feature_names
    labels = [text(names[i] if names else f"feature {i}", 34) for i in shown]
    # A column of values at the right: beside the bars they would run into names and margins.
    values = [f"{number(float(seen[i] - change[i]))} → {number(float(seen[i]))}" for i in shown]
    left, right = width_of(labels, 8) + 0.12, width_of(values, 8) + 0.12
    axes = sheet.axes(x + left, y, width - left - right, features_height(one, most))
    at = np.arange(shown.size)
    colours = [PRESENT if one.kind == "PP" else ADDED if units[i] > 0 else REMOVED for i in shown]
    axes.barh(at, units[shown], height=0.62, color=colours)
    axes.set_yticks(at, labels, fontsize=8)
    axes.set_ylim(max(shown.size, FEWEST) - 0.4, -0.6)
    column = axes.twinx()
    column.set_yticks(at, values, fontsize=8)
    column.set_ylim(axes.get_ylim())
    for one_axes in (axes, column):
        _plain(one_axes)
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    if not shown.size:
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.text(0.5, 0.5, "nothing", transform=axes.transAxes, ha="center", va="center", fontsize=9, color="0.4")
    what = "present features: baseline → value kept" if one.kind == "PP" else "changed features: from → to"
    rest = f" ({order.size - shown.size} smaller not shown)" if order.size > shown.size else ""
    sheet.write(x, y - 0.22, what + rest, 9, color=hue_of(one.kind))
    axes.set_xlabel("in units of the feature's range" if shown.size else "", fontsize=8)


def draw_scores(sheet: Sheet, x: float, y: float, width: float, one: Explanation, most: int) -> None:
    """The model's scores before and after, the class that is explained and the class seen in the end marked."""
    before, after = one.scores_before, one.scores_after
    sheet.write(x, y - 0.22, "scores" if before.size else "scores: not known", 9)
    if before.size == 0:
        return
    shown = _classes(one, most)
    labels = [text(one.name_of(int(i)), 18) for i in shown]
    left = width_of(labels, 8, bold=True) + 0.12
    axes = sheet.axes(x + left, y, width - left, scores_height(one, most))
    at = np.arange(shown.size)
    axes.barh(at - 0.2, _drawable(before[shown]), height=0.38, color=BEFORE, label="before")
    axes.barh(at + 0.2, _drawable(after[shown]), height=0.38, color=hue_of(one.kind), label="after")
    # Near the boundary scores may be nearly zero: a dot can be seen where no bar can.
    reach = float(np.abs(_drawable(np.concatenate([before[shown], after[shown]]))).max())
    tiny = np.isfinite(after[shown]) & (np.abs(after[shown]) < 0.01 * reach)
    axes.plot(after[shown][tiny], (at + 0.2)[tiny], "o", markersize=3, color=hue_of(one.kind), clip_on=False)
    axes.set_yticks(at, labels, fontsize=8)
    axes.set_ylim(max(shown.size, FEWEST) - 0.4, -0.6)
    for label, i in zip(axes.get_yticklabels(), shown, strict=True):
        if i in (one.label, one.contrast_label):
            label.set(fontweight="bold", color=hue_of(one.kind) if i == one.contrast_label else EXPLAINED)
    _plain(axes)
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


def _classes(one: Explanation, most: int) -> NDArray[np.intp]:
    """The classes to show, in order: all, or of many the two marked ones and those with the highest scores."""
    count = one.scores_before.size
    if count <= most:
        return np.arange(count)
    height = np.fmax(_drawable(one.scores_before), _drawable(one.scores_after))
    height[[i for i in (one.label, one.contrast_label) if i >= 0]] = np.inf
    return np.sort(np.argsort(-height, kind="stable")[: max(most, 2)])


def _drawable(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores with 0 for what is not finite, which has no bar."""
    return np.where(np.isfinite(scores), scores, 0.0)


def _plain(axes: Axes) -> None:
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
