"""Pictures of explanations, good enough for a paper; matplotlib is loaded by whoever calls this, without pyplot.

Hues are safe for the colour-blind: a PP is blue; a PN is orange where it adds and violet where it takes away.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure

from zomirror.checks import positive_integer
from zomirror.drawing.bars import draw_features, draw_scores, features_height, number, scores_height
from zomirror.drawing.colour import EXPLAINED, PALE, hue_of, ramp_of
from zomirror.drawing.picture import Picture, counted, picture_in
from zomirror.drawing.sheet import DPI, LINE, Sheet, fitted, heading, text
from zomirror.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    from zomirror.contrast.explanation import Explanation

WIDTH = 9.4
MARGIN = 0.1
SIDE = 1.75
"""Inches of a picture."""
BELOW = 0.55
"""Inches for an axis, its label and a legend."""


def plot(explanation: Explanation, *, most: int = 12, title: str | None = None) -> Figure:
    """The input, the PP or PN in it, what the model saw, and its scores before and after.

    Pictures are shown as such, with the input in grey; any other input, and one with feature names, as bars of
    the `most` largest features with their values before and after. Of many classes the `most` important are shown.
    """
    positive_integer("most", most)
    return _stack([explanation], most, [explanation.words() if title is None else title])


def plot_grid(explanations: Iterable[Explanation], *, title: str = "") -> Figure:
    """Explanations of pictures side by side: a column for each input, below it its PPs and PNs and what the model saw.

    Explanations of anything else stand one below the other, as plot() draws them.
    """
    given = list(explanations)
    if not given:
        raise ArgumentError("expected at least one explanation, got none")
    pictures = [picture for one in given if (picture := picture_in(one)) is not None]
    if len(pictures) < len(given):
        return _stack(given, 8, [one.words() for one in given], title)
    columns = _columns(given, pictures)
    kinds = [kind for kind in ("PP", "PN") if any(kind in column for column in columns)]
    side, across, down, left = 0.86, 0.94, 1.08, 0.85
    above = MARGIN + LINE * bool(title) + 0.25
    sheet = Sheet.blank(left + across * len(columns) + MARGIN, above + down * (1 + 2 * len(kinds)) + MARGIN)
    sheet.write(MARGIN, MARGIN, text(title, 110), fontweight="bold")
    rows = [("input", "black"), *[(name, hue_of(k)) for k in kinds for name in (k, f"the model\nsees ({k})")]]
    for i, (name, hue) in enumerate(rows):
        sheet.write(MARGIN, above + down * i + 0.3, name, 8, color=hue)
    for j, column in enumerate(columns):
        x = left + across * j
        one, picture = next(iter(column.values()))
        original = _bare(sheet.axes(x, above, side, side))
        _show(original, picture, one.x0)
        label = fitted(one.name_of(one.label), 9, side, bold=True)
        original.set_title(label, fontsize=9, fontweight="bold", color=EXPLAINED)
        for one, picture in column.values():
            row = 1 + 2 * kinds.index(one.kind)
            places = [_bare(sheet.axes(x, above + down * i, side, side)) for i in (row, row + 1)]
            _overlay(places[0], one, picture)
            places[0].set_xlabel(counted(one) if one.valid else "not found", fontsize=7, labelpad=2)
            _show(places[1], picture, one.perturbed)
            seen = fitted(f"seen as {one.name_of(one.contrast_label)}", 7, side + 0.04)
            places[1].set_xlabel(seen, fontsize=7, labelpad=2, color=hue_of(one.kind))
    return sheet.figure


def _columns(given: list[Explanation], pictures: list[Picture]) -> list[dict[str, tuple[Explanation, Picture]]]:
    """One column for each input and class, or several when it has several explanations of one kind."""
    columns: dict[tuple[object, ...], list[dict[str, tuple[Explanation, Picture]]]] = {}
    for one, picture in zip(given, pictures, strict=True):
        mine = columns.setdefault((one.x0.shape, one.x0.tobytes(), one.label), [])
        free = next((column for column in mine if one.kind not in column), None)
        if free is None:
            mine.append(free := {})
        free[one.kind] = (one, picture)
    return [column for mine in columns.values() for column in mine]


def data_uri(figure: Figure) -> str:
    """The figure as a PNG inside a data: address, for a page that loads nothing."""
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=DPI)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def _stack(given: list[Explanation], most: int, titles: list[str], title: str = "") -> Figure:
    """One explanation below the other."""
    lines = [heading(words, WIDTH) for words in titles]
    heights = [_height(one, most) for one in given]
    y = MARGIN + 0.25 * bool(title)
    sheet = Sheet.blank(WIDTH, y + sum(heights) + sum(LINE * len(part) + 0.3 for part in lines))
    sheet.write(MARGIN, MARGIN, text(title, 110), fontweight="bold")
    for one, height, part in zip(given, heights, lines, strict=True):
        sheet.write(MARGIN, y, "\n".join(part))
        y += LINE * len(part) + 0.3
        picture = picture_in(one)
        if picture is None:
            draw_features(sheet, MARGIN, y, 5.9, one, most)
        else:
            _draw_pictures(sheet, y, one, picture)
        draw_scores(sheet, 6.25, y, WIDTH - 6.25 - 2 * MARGIN, one, most)
        y += height
    return sheet.figure


def _height(one: Explanation, most: int) -> float:
    """Inches from the top of the pictures or bars to the end of what is below them."""
    larger = features_height(one, most) if picture_in(one) is None else SIDE
    return BELOW + max(larger, scores_height(one, most))


def _draw_pictures(sheet: Sheet, y: float, one: Explanation, picture: Picture) -> None:
    original, overlay, seen = (_bare(sheet.axes(MARGIN + i * (SIDE + 0.25), y, SIDE, SIDE)) for i in range(3))
    _show(original, picture, one.x0)
    room = SIDE + 0.2
    label = fitted(f"input: {one.name_of(one.label)}", 9, room)
    original.set_title(label, fontsize=9, color=EXPLAINED)
    shown = _overlay(overlay, one, picture)
    found = f"{one.kind}: {counted(one)}" if one.valid else f"no valid {one.kind}"
    overlay.set_title(found, fontsize=9, color=hue_of(one.kind))
    if one.x.any():
        scale = sheet.axes(MARGIN + SIDE + 0.25 + 0.1 * SIDE, y + SIDE + 0.09, 0.8 * SIDE, 0.07)
        _colour_bar(sheet, scale, shown)
    _show(seen, picture, one.perturbed)
    label = fitted(f"model sees: {one.name_of(one.contrast_label)}", 9, room)
    seen.set_title(label, fontsize=9, color=hue_of(one.kind))


def _colour_bar(sheet: Sheet, scale: Axes, shown: AxesImage) -> None:
    """The scale of the overlay, with its ends and its zero named."""
    bar = sheet.figure.colorbar(shown, cax=scale, orientation="horizontal")
    low, high = shown.get_clim()
    ticks = sorted({low, 0.0, high})
    bar.set_ticks(ticks, labels=[number(tick, digits=2).replace("-", "−") for tick in ticks])
    bar.minorticks_off()
    scale.tick_params(labelsize=7, length=2)
    bar.outline.set_visible(False)


def _bare(axes: Axes) -> Axes:
    """Axes without ticks or frame, for a picture at their top."""
    axes.set_anchor("N")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def _show(axes: Axes, picture: Picture, x: Any) -> None:
    """The input in grey, or in its colours, with a hairline around it."""
    pixels = picture.pixels(x)
    if pixels.ndim == 2:
        axes.imshow(picture.grey(x), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    else:
        axes.imshow(pixels, interpolation="nearest")
    _hairline(axes)


def _overlay(axes: Axes, one: Explanation, picture: Picture) -> AxesImage:
    """The PP or PN in its hue over a pale input."""
    grey = picture.grey(one.x0)
    axes.imshow(1 - PALE * (1 - grey), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    change = picture.change(one.x)
    if one.kind == "PP":
        change = np.abs(change)  # present is present, whether it lies above or below the baseline
    low, high = min(0.0, float(change.min())), max(0.0, float(change.max()))
    shown = np.ma.masked_equal(change, 0.0)
    cmap = LinearSegmentedColormap.from_list(one.kind, ramp_of(one.kind, low, high), N=512)
    if low < 0 < high:
        image = axes.imshow(shown, cmap=cmap, norm=TwoSlopeNorm(0.0, low, high), interpolation="nearest")
    else:
        low, high = (low, high) if low < high else (0.0, 1.0)
        image = axes.imshow(shown, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
    _hairline(axes)
    return image


def _hairline(axes: Axes) -> None:
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="0.6")
