"""Pictures of explanations: every kind of input is drawn, no text is cut off or runs into another."""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

import zomirror as zm
from tests.support.contrast_models import Affine
from zomirror.drawing.bars import number
from zomirror.drawing.colour import ADDED, PRESENT, REMOVED, hue_of
from zomirror.drawing.picture import picture_of
from zomirror.drawing.plot import data_uri, plot, plot_grid

RNG = np.random.default_rng(0)
LONG = tuple(f"a class with a very long name, which is number {i}" for i in range(3))


def explained(shape: tuple[int, ...], kind: str = "PN", signed: bool = False, **options: Any) -> zm.Explanation:
    size = int(np.prod(shape))
    x0 = np.random.default_rng(size).random(shape) * (np.random.default_rng(1).random(shape) < 0.3)
    model = Affine.draw(size, 3, 1)
    found: zm.Explanation = zm.explain(model, x0, kind=kind, signed=signed, budget=150, rng=0, **options)
    return found


def failed() -> zm.Explanation:
    def model(batch: Any) -> Any:
        raise OSError("gone")

    with pytest.raises(zm.errors.OracleError) as caught:
        zm.explain(model, np.full((8, 8), 0.5), rng=0)
    result: zm.Explanation = caught.value.result
    return result


@cache
def one(name: str) -> zm.Explanation:
    """The explanation of this name, made when it is first asked for."""
    return ALL[name]()


Make = Callable[[], zm.Explanation]
PICTURES: dict[str, Make] = {
    "grey": lambda: explained((8, 8)),
    "one channel first": lambda: explained((1, 8, 8), "PP"),
    "one channel last": lambda: explained((8, 8, 1), signed=True),
    "colour first": lambda: explained((3, 8, 8), signed=True),
    "colour last": lambda: explained((8, 8, 3), "PP"),
    "wide": lambda: explained((5, 17)),
    "tall": lambda: explained((30, 6), "PP"),
    "long names": lambda: explained((8, 8), class_names=LONG),
}
TABLES: dict[str, Make] = {
    "features": lambda: explained((9,)),
    "named": lambda: explained((9,), "PP", feature_names=[f"the length of feature number {i} in mm" for i in range(9)]),
    "long names in a table": lambda: explained(
        (9,), signed=True, feature_names=["$" + "long " * 30] * 9, class_names=LONG
    ),
    "one feature": lambda: explained((1,), signed=True),
    "series": lambda: explained((2, 40), signed=True),
    "pixels with names": lambda: explained((4, 4), feature_names=[str(i) for i in range(16)]),
}
SPECIAL: dict[str, Make] = {
    "nothing known": failed,
    "nothing changed": lambda: replace(one("grey"), x=np.zeros((8, 8)), nnz=0),
    "table without a change": lambda: replace(one("features"), x=np.zeros(9), nnz=0),
    "not found": lambda: replace(one("grey"), valid=False, message="the reason, " * 30),
    "scores not known": lambda: replace(one("grey"), scores_after=np.full(3, np.nan), contrast_label=-1),
    "many classes": lambda: replace(
        one("grey"), scores_before=RNG.normal(size=1000), scores_after=RNG.normal(size=1000), contrast_label=999
    ),
    "huge and tiny values": lambda: replace(
        one("features"),
        x=10.0 ** np.arange(-12, 15, 3),
        perturbed=-(10.0 ** np.arange(-12, 15, 3)),
        scale=10.0 ** np.arange(-12, 15, 3),
    ),
}
ALL = PICTURES | TABLES | SPECIAL


def texts(figure: Figure) -> list[tuple[Text, Any]]:
    """What is written, with the box it takes, in pixels."""
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    figure.draw_without_rendering()
    beyond: set[Text] = set()  # ticks outside of the limits are there, and are not drawn
    for axis in figure.findobj(Axis):
        assert isinstance(axis, Axis)
        drawn: list[Any] = axis._update_ticks() if axis.get_visible() else []  # type: ignore[attr-defined]
        for tick in axis.get_major_ticks():
            beyond |= set() if tick in drawn else {tick.label1, tick.label2}
    found = [text for text in figure.findobj(Text) if isinstance(text, Text) and text not in beyond]
    return [
        (text, text.get_window_extent(renderer)) for text in found if text.get_visible() and text.get_text().strip()
    ]


@cache
def drawn(name: str) -> tuple[Any, list[tuple[Text, Any]]]:
    """The size in pixels and the texts of a figure that several tests look at."""
    figure = plot(one(name))
    return figure.get_size_inches() * figure.dpi, texts(figure)


@pytest.mark.parametrize("name", ALL)
def test_every_explanation_is_drawn_and_no_text_is_cut_off(name: str) -> None:
    (width, height), written = drawn(name)
    for text, box in written:
        assert box.x0 >= 0, text.get_text()
        assert box.y0 >= 0, text.get_text()
        assert box.x1 <= width, text.get_text()
        assert box.y1 <= height, text.get_text()


@pytest.mark.parametrize("name", ALL)
def test_no_text_runs_into_another(name: str) -> None:
    boxes = [(text.get_text(), box) for text, box in drawn(name)[1]]
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
        assert apart, f"{one!r} and {other!r}"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_pixels_in_its_title_as_in_its_panel(name: str) -> None:
    e = one(name)
    assert e.valid
    axis = next((i for i in (0, 2) if e.x.ndim == 3 and e.x.shape[i] in (1, 3)), ())
    count = np.count_nonzero(np.abs(e.x).sum(axis=axis))
    pixels = f"{count} pixel{'' if count == 1 else 's'}"
    assert re.search(rf"\b{pixels}\b", e.words())
    assert f"{e.kind}: {pixels}" in [text.get_text() for text, _ in drawn(name)[1]]
    assert not [text for text, _ in drawn(name)[1] if "feature" in text.get_text()]


def test_nothing_is_left_in_pyplot() -> None:
    import matplotlib.pyplot as plt

    before = plt.get_fignums()  # whatever other tests have left
    plot(one("grey"))
    assert plt.get_fignums() == before


def test_a_formula_in_a_name_is_not_read_as_one() -> None:
    e = replace(one("features"), feature_names=(r"$\undefined{$",) * 9, class_names=("$", "$$", r"\$x\$"))
    assert any(r"undefined" in text.get_text() for text, _ in texts(plot(e)))


def test_a_data_uri_is_a_png_of_the_figure() -> None:
    uri = data_uri(plot(one("grey")))
    head, _, data = uri.partition(",")
    assert head == "data:image/png;base64"
    with Image.open(BytesIO(base64.b64decode(data))) as image:
        assert image.format == "PNG"
        assert image.width > 1000


def colours(figure: Figure) -> set[tuple[int, ...]]:
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.ascontiguousarray(canvas.buffer_rgba()).view("<u4")  # a number a pixel: sorting rows is slow
    return {tuple(int(v) for v in colour) for colour in np.unique(pixels).view(np.uint8).reshape(-1, 4)[:, :3]}


def rgb(hue: str) -> tuple[int, ...]:
    return tuple(round(255 * part) for part in to_rgb(hue))


def test_pp_and_pn_have_hues_of_their_own_and_the_input_is_grey() -> None:
    pn, pp, signed = (colours(plot(one(name))) for name in ("grey", "one channel first", "one channel last"))
    assert rgb(ADDED) in pn
    assert rgb(PRESENT) not in pn
    assert rgb(PRESENT) in pp
    assert rgb(ADDED) not in pp
    assert rgb(REMOVED) in signed
    assert hue_of("PP") != hue_of("PN")


@pytest.mark.parametrize("matrix", ["protan", "deutan", "tritan"])
def test_the_hues_are_told_apart_by_the_colour_blind(matrix: str) -> None:
    """Machado, Oliveira and Fernandes (2009), severity 1, in linear RGB; distances as in CIE Lab."""
    simulate = {
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    }

    def lab(hue: str) -> Any:
        srgb = np.array(to_rgb(hue))
        linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
        seen = np.clip(np.array(simulate[matrix]) @ linear, 0, 1)
        to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
        xyz = np.array(to_xyz) @ seen / [0.95047, 1.0, 1.08883]
        f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    for one, other in ((PRESENT, ADDED), (ADDED, REMOVED)):
        assert np.linalg.norm(lab(one) - lab(other)) > 25, (one, other)


def test_a_picture_is_what_was_normalised() -> None:
    raw = np.random.default_rng(3).random((3, 6, 6))
    mean, std = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
    x0 = (raw - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    e = zm.explain(Affine.draw(108, 3, 1), x0, mean=mean, std=std, signed=True, budget=150, rng=0)
    picture = picture_of(e.x0, e.perturbed, e.settings)
    assert picture is not None
    np.testing.assert_allclose(picture.pixels(e.x0), np.moveaxis(raw, 0, -1), atol=1e-9)
    again = zm.Explanation.from_json(e.to_json())
    np.testing.assert_allclose(picture.pixels(again.x0), picture.pixels(e.x0))
    hostile = picture_of(e.x0, e.perturbed, {"mean": "x", "std": [[1], [2, 3]]})
    assert hostile is not None
    assert hostile.pixels(e.x0).shape == (6, 6, 3)


@pytest.mark.parametrize(
    ("shape", "is_picture"),
    [((8, 8), True), ((1, 2, 3), True), ((4, 4, 3), True), ((3, 40), False), ((40,), False), ((5, 6, 7), False)],
)
def test_what_is_a_picture(shape: tuple[int, ...], is_picture: bool) -> None:
    x = np.zeros(shape)
    assert (picture_of(x, x, {}) is not None) == is_picture


def test_ink_on_paper_is_shown_black_on_white_and_a_photograph_as_it_is() -> None:
    ink = np.zeros((8, 8))
    ink[3:5, 3:5] = 1
    photograph = np.linspace(0.3, 0.9, 64).reshape(8, 8)
    for x, corner in ((ink, 1.0), (photograph, 0.3)):
        picture = picture_of(x, x, {})
        assert picture is not None
        assert picture.grey(x)[0, 0] == pytest.approx(corner)


def test_bytes_are_shown_as_bytes() -> None:
    x = np.linspace(0, 255, 64).reshape(8, 8)
    picture = picture_of(x, x, {})
    assert picture is not None
    assert (picture.low, picture.high) == (0, 255)


@pytest.mark.parametrize("group", [PICTURES, TABLES, ["wide", *SPECIAL, "named"]], ids=["pictures", "tables", "mixed"])
def test_a_grid_of_everything(group: Iterable[str]) -> None:
    figure = plot_grid(map(one, group), title="All of them")
    width, height = figure.get_size_inches() * figure.dpi
    for text, box in texts(figure):
        assert box.x0 >= 0, text.get_text()
        assert box.y0 >= 0, text.get_text()
        assert box.y1 <= height, text.get_text()
        assert box.x1 <= width, text.get_text()


def test_a_grid_has_a_column_for_each_input() -> None:
    first = one("grey")
    pair = [first, replace(first, kind="PP"), explained((6, 6))]
    figure = plot_grid(pair)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(titles) == 2
    assert figure.get_size_inches()[0] < plot_grid([*pair, explained((5, 5))]).get_size_inches()[0]
    with pytest.raises(zm.errors.ArgumentError, match="at least one explanation"):
        plot_grid([])


def test_a_grid_shows_two_explanations_of_one_kind_side_by_side() -> None:
    e = one("long names")
    figure = plot_grid([e, replace(e, valid=False), replace(e, kind="PP")])
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(titles) == 2
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert "not found" in labels
    boxes = [(text.get_text(), box) for text, box in texts(figure)]
    for (first, a), (second, b) in itertools.combinations(boxes, 2):
        apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
        assert apart, f"{first!r} and {second!r}"


def test_the_colour_bar_names_its_ends_and_its_zero() -> None:
    signed = one("one channel last")
    labels = [text.get_text() for text, _ in texts(plot(signed))]
    for end in (float(signed.x.min()), 0.0, float(signed.x.max())):
        assert number(end, digits=2).replace("-", "−") in labels
    before = len(plot(one("grey")).axes)
    assert len(plot(one("nothing changed")).axes) == before - 1, "no scale where there is nothing to measure"


@pytest.mark.parametrize("most", [0, 1.5, True])
def test_how_many_bars_is_a_positive_integer(most: Any) -> None:
    with pytest.raises((zm.errors.ArgumentError, zm.errors.ArgumentTypeError), match="most"):
        plot(one("grey"), most=most)
