"""Figures of explanations, fit for print: `plot` draws one, `plot_grid` several. pyplot is not used."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm
from matplotlib.figure import Figure

from zomirror.checks import positive_integer
from zomirror.drawing.bars import draw_features, draw_scores, features_height, number, scores_height
from zomirror.drawing.colour import EXPLAINED, hue_of, ramp_of
from zomirror.drawing.marked_parts import (
    counted_of,
    draw_series,
    draw_text,
    in_parts,
    is_series,
    is_text,
    text_lines,
)
from zomirror.drawing.picture import RGB, Picture, as_uri, drawn_change, picture_in
from zomirror.drawing.sheet import DPI, LINE, Sheet, fitted, heading, text
from zomirror.drawing.subject import Drawable
from zomirror.errors import ArgumentError

WIDTH = 9.4
MARGIN = 0.1
SIDE = 1.75
"""Inches per side of an image."""
CHARACTERS, MOST_LINES, TEXT_LINE = 84, 24, 0.16
"""Characters of a line of text, lines of a text that are drawn, and inches per line."""
BELOW = 0.55
"""Inches below a chart, for its axis, label and legend."""


def plot(explanation: Drawable, *, most: int = 12, title: str | None = None) -> Figure:
    """The input, the PP or PN in it, what the model saw, and its scores before and after.

    An image is drawn as an image. Any other input, and any input with feature names, is drawn as a bar chart of its
    largest features with their values before and after.

    Parameters
    ----------
    explanation : Drawable
        What is drawn, such as the result of `zomirror.explain`.
    most : int
        The largest number of features, and of classes, that are shown.
    title : str, optional
        The heading; by default the explanation in a sentence.
    """
    positive_integer("most", most)
    return _stack([explanation], most, [explanation.words() if title is None else title])


def plot_grid(explanations: Iterable[Drawable], *, title: str = "") -> Figure:
    """Explanations of images side by side: a column per input, with its PP, its PN and what the model saw.

    Unless all inputs are images, the explanations are drawn one below the other, as `plot` draws them.

    Parameters
    ----------
    explanations : iterable of Drawable
        At least one.
    title : str
        The heading.
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
        original = _shown(sheet.axes(x, above, side, side), picture.image(one.x0))
        label = fitted(one.name_of(one.label), 9, side, bold=True)
        original.set_title(label, fontsize=9, fontweight="bold", color=EXPLAINED)
        for one, picture in column.values():
            row = 1 + 2 * kinds.index(one.kind)
            overlay, after = (sheet.axes(x, above + down * i, side, side) for i in (row, row + 1))
            _shown(overlay, picture.overlay(one)).set_xlabel(
                counted_of(one) if one.valid else "not found", fontsize=7, labelpad=2
            )
            seen = fitted(f"seen as {one.name_of(one.contrast_label)}", 7, side + 0.04)
            _shown(after, picture.image(one.perturbed)).set_xlabel(seen, fontsize=7, labelpad=2, color=hue_of(one.kind))
    return sheet.figure


def _columns(given: list[Drawable], pictures: list[Picture]) -> list[dict[str, tuple[Drawable, Picture]]]:
    """One column per input and class, or several where an input has several explanations of one kind."""
    columns: dict[tuple[object, ...], list[dict[str, tuple[Drawable, Picture]]]] = {}
    for one, picture in zip(given, pictures, strict=True):
        mine = columns.setdefault((one.input_key, one.label), [])
        free = next((column for column in mine if one.kind not in column), None)
        if free is None:
            mine.append(free := {})
        free[one.kind] = (one, picture)
    return [column for mine in columns.values() for column in mine]


def data_uri(figure: Figure) -> str:
    """The figure as a PNG in a data: URI."""
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=DPI)
    return as_uri("image/png", stream.getvalue())


def _stack(given: list[Drawable], most: int, titles: list[str], title: str = "") -> Figure:
    """The explanations one below the other."""
    lines = [heading(words, WIDTH) for words in titles]
    heights = [_height(one, most) for one in given]
    y = MARGIN + 0.25 * bool(title)
    sheet = Sheet.blank(WIDTH, y + sum(heights) + sum(LINE * len(part) + 0.3 for part in lines))
    sheet.write(MARGIN, MARGIN, text(title, 110), fontweight="bold")
    for one, height, part in zip(given, heights, lines, strict=True):
        sheet.write(MARGIN, y, "\n".join(part))
        y += LINE * len(part) + 0.3
        picture = picture_in(one)
        if is_text(one):
            _draw_text(sheet, y, one)
        elif is_series(one):
            _draw_series(sheet, y, one)
        elif picture is None:
            draw_features(sheet, MARGIN, y, 5.9, one, most)
        else:
            _draw_pictures(sheet, y, one, picture)
        draw_scores(sheet, 6.25, y, WIDTH - 6.25 - 2 * MARGIN, one, most)
        y += height
    return sheet.figure


def _height(one: Drawable, most: int) -> float:
    """Inches of an explanation without its heading."""
    if is_text(one):
        larger = TEXT_LINE * text_lines(one, CHARACTERS, MOST_LINES)
    elif is_series(one):
        larger = SIDE
    else:
        larger = features_height(one, most) if picture_in(one) is None else SIDE
    return BELOW + max(larger, scores_height(one, most))


def _draw_text(sheet: Sheet, y: float, one: Drawable) -> None:
    lines = text_lines(one, CHARACTERS, MOST_LINES)
    sheet.write(MARGIN, y - 0.22, _caption(one), 9, color=hue_of(one.kind))
    draw_text(sheet.axes(MARGIN, y, 5.9, TEXT_LINE * lines), one, CHARACTERS, lines)


def _draw_series(sheet: Sheet, y: float, one: Drawable) -> None:
    sheet.write(MARGIN, y - 0.22, _caption(one), 9, color=hue_of(one.kind))
    draw_series(sheet.axes(MARGIN, y, 5.9, SIDE), one)


def _caption(one: Drawable) -> str:
    if not one.valid:
        return f"no valid {one.kind}"
    return f"{one.kind}: {counted_of(one)} {'kept' if one.kind == 'PP' else 'replaced'}"


def _draw_pictures(sheet: Sheet, y: float, one: Drawable, picture: Picture) -> None:
    images = picture.image(one.x0), picture.overlay(one), picture.image(one.perturbed)
    titles = (
        f"input: {one.name_of(one.label)}",
        f"{one.kind}: {counted_of(one)}" if one.valid else f"no valid {one.kind}",
        f"model sees: {one.name_of(one.contrast_label)}",
    )
    for i, (image, title) in enumerate(zip(images, titles, strict=True)):
        axes = _shown(sheet.axes(MARGIN + i * (SIDE + 0.25), y, SIDE, SIDE), image)
        axes.set_title(fitted(title, 9, SIDE + 0.2), fontsize=9, color=hue_of(one.kind) if i else EXPLAINED)
    if one.x.any() and not in_parts(one):
        scale = sheet.axes(MARGIN + SIDE + 0.25 + 0.1 * SIDE, y + SIDE + 0.09, 0.8 * SIDE, 0.07)
        _colour_bar(sheet, scale, one, picture)


def _colour_bar(sheet: Sheet, scale: Axes, one: Drawable, picture: Picture) -> None:
    """The scale of the overlay, with labels at its ends and at zero."""
    change = drawn_change(one, picture)
    low, high = min(0.0, float(change.min())), max(0.0, float(change.max()))
    norm = TwoSlopeNorm(0.0, low, high) if low < 0 < high else Normalize(low, high)
    cmap = LinearSegmentedColormap.from_list(one.kind, ramp_of(one.kind, low, high), N=512)
    bar = sheet.figure.colorbar(ScalarMappable(norm, cmap), cax=scale, orientation="horizontal")
    ticks = sorted({low, 0.0, high})
    bar.set_ticks(ticks, labels=[number(tick, digits=2).replace("-", "−") for tick in ticks])
    bar.minorticks_off()
    scale.tick_params(labelsize=7, length=2)
    bar.outline.set_visible(False)


def _shown(axes: Axes, image: RGB) -> Axes:
    """An image at the top of the axes, with a thin frame and no ticks."""
    axes.imshow(image, interpolation="nearest")
    axes.set_anchor("N")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(linewidth=0.5, color="0.6")
    return axes
