"""A figure laid out in inches from the top left corner, with text measured before it is placed.

matplotlib's layout engines fail on images beside long labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import shorten, wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

DPI = 150
LINE = 0.19
"""Inches per line of a heading."""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A white page of `width` times `height` inches."""

    width: float
    height: float
    figure: Figure

    @classmethod
    def blank(cls, width: float, height: float) -> Sheet:
        """An empty sheet."""
        return cls(width, height, Figure(figsize=(width, height), dpi=DPI, facecolor="white"))

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Axes whose top left corner is at (x, y)."""
        bottom = self.height - y - height
        place = (x / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(place)

    def write(self, x: float, y: float, words: str, size: float = 10, **style: Any) -> None:
        """Text whose top left corner is at (x, y)."""
        self.figure.text(x / self.width, 1 - y / self.height, words, fontsize=size, va="top", **style)


def text(words: str, most: int) -> str:
    """`words` printable, in one line of at most `most` characters, with $ escaped so that no formula is read."""
    plain = _printable(words)
    if len(plain) > most:  # the end is kept: names often differ there only
        tail = most // 3
        plain = f"{plain[: most - tail - 1]}…{plain[-tail:]}"
    return plain.replace("$", r"\$")


def fitted(words: str, size: float, width: float, *, bold: bool = False) -> str:
    """`words` shortened to at most `width` inches."""
    whole = width_of([text(words, len(words))], size, bold=bold)
    if whole <= width:
        return text(words, len(words))
    most = int(len(words) * width / whole) + 4  # a guess, rather too long
    while most > 4 and width_of([text(words, most)], size, bold=bold) > width:
        most -= 1
    return text(words, most)


def heading(words: str, width: float) -> list[str]:
    """`words` in at most two lines of `width` inches."""
    characters = int(width * 12)  # per inch at 10 points, on average
    lines = wrap(shorten(_printable(words), 2 * characters - 20, placeholder=" …"), characters)
    return [line.replace("$", r"\$") for line in lines[:2]]


def width_of(texts: Iterable[str], size: float, *, bold: bool = False) -> float:
    """Inches of the longest text."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    # A full stop is added as a margin. Measuring the outlines of the letters would take 50 times as long.
    texts = (words.replace(r"\$", "S") + "." for words in texts)
    return max((text_to_path.get_text_width_height_descent(words, font, False)[0] for words in texts), default=0.0) / 72  # noqa: FBT003


def _printable(words: str) -> str:
    return "".join(c if c.isprintable() else " " for c in words)
