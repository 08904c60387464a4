"""One self-contained page: the claims of the paper, what was measured, and all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zomirror.drawing.picture import as_uri
from zomirror.paper.claims import Claim
from zomirror.paper.curve_panels import Drawn
from zomirror.paper.dimension import SCALES, SIDE, TARGET, Growth
from zomirror.paper.settings import DATA_TITLES, QUERIES, Algorithm
from zomirror.paper.store import write_whole
from zomirror.paper.summary import Group, Panel
from zomirror.paper.tables import final_rows
from zomirror.report.html import html_page
from zomirror.version import __version__

NOTES = {
    "printed": "The settings printed in the paper.",
    "authors": "The settings of the authors' code: another loss, other weights, another set for PN, another constant "
    "of the adaptive step and another radius.",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure inside the page."""

    source: str
    drawn: Drawn


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page."""

    title: str
    note: str
    claims: Sequence[Claim]
    finals: Sequence[Sequence[str]]
    figures: Sequence[Shown]


def write(
    path: Path,
    figures: Sequence[tuple[Panel, Drawn]],
    claims: Mapping[str, Sequence[Claim]],
    growths: Sequence[Growth] = (),
    growth_figure: Drawn | None = None,
) -> Path:
    """Write the page; `claims` are by section."""
    names = dict.fromkeys(section(panel.group) for panel, _ in figures)
    parts = [_part([pair for pair in figures if section(pair[0].group) == name], claims[name]) for name in names]
    if growth_figure is not None:
        parts.append(_growth_part(growths, growth_figure))
    title = "The paper's experiments, reproduced"
    text = html_page("zomirror.paper", title=title, parts=parts, queries=QUERIES, version=__version__)
    write_whole(path, text)
    return path


def section(group: Group) -> str:
    """The section of a group: its settings, and its network unless that is a bundled one."""
    return f"{group.settings}-{group.network}" if group.network else group.settings


def _part(figures: Sequence[tuple[Panel, Drawn]], claims: Sequence[Claim]) -> Part:
    groups: list[Group] = list(dict.fromkeys(panel.group for panel, _ in figures))
    settings, network = groups[0].settings, groups[0].network
    own = f", network {network}" if network else ""
    note = NOTES[settings] + (f" The network is {network}.onnx." if network else " The networks are the bundled ones.")
    counts = ", ".join(f"{one.title}: {one.compared()[0].images}" for one in groups)
    return Part(
        title=f"Settings: {settings}{own}",
        note=f"{note} Images: {counts}.",
        claims=claims,
        finals=[_final(row) for row in final_rows(groups)],
        figures=[_shown(drawn) for _, drawn in figures],
    )


def _final(row: Sequence[Any]) -> list[str]:
    data, kind, _, _, algorithm, *numbers = row
    return [DATA_TITLES[data], kind, Algorithm.named(algorithm).title, *map(str, numbers)]


def _growth_part(growths: Sequence[Growth], drawn: Drawn) -> Part:
    dimensions = ", ".join(f"{(SIDE * scale) ** 2:,}" for scale in SCALES)
    note = (
        f"PN of MNIST digits, every pixel split into s x s variables that the network sees averaged: d = {dimensions}. "
        f"Queries until F(x) / F(start) is {TARGET:g}, medians over {growths[0].images} images. "
    )
    told = ". ".join(one.words for one in growths)
    return Part("The dimension", f"{note}{told}.", (), (), (_shown(drawn),))


def _shown(drawn: Drawn) -> Shown:
    return Shown(as_uri("image/svg+xml", drawn.svg.read_bytes()), drawn)
