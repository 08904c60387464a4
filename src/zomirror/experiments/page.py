"""One self-contained page: each claim of the paper beside what was measured, and every figure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zomirror.experiments.claims import Claim
from zomirror.experiments.dimension import SCALES, SIDE, TARGET, Growth
from zomirror.experiments.figures import AXES, draw, draw_growth, svg
from zomirror.experiments.settings import QUERIES, Algorithm
from zomirror.experiments.store import write_whole
from zomirror.experiments.summary import Group, Panel
from zomirror.experiments.tables import final_rows
from zomirror.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTES = {
    "printed": "The settings that the paper prints.",
    "authors": "The settings of the authors' code: another loss, other weights, another set for PN, another constant "
    "of the adaptive step and another radius.",
}
DATA = {"mnist": "MNIST", "cifar": "CIFAR-10"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure inside the page."""

    source: str
    words: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page."""

    title: str
    note: str
    last: int
    claims: Sequence[Claim]
    finals: Sequence[Sequence[str]]
    figures: Sequence[Shown]


def write(
    path: Path,
    panels: Sequence[Panel],
    claims: Mapping[str, Sequence[Claim]],
    growths: Sequence[Growth] = (),
) -> Path:
    """Write the page of these panels; `claims` are by settings."""
    from markupsafe import Markup

    style = Markup(resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8"))  # noqa: S704
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    parts = [_part(panels, settings, network, claims) for settings, network in _sections(panels)]
    parts += [_growth_part(growths)] if growths else []
    text: str = _template().render(
        title="The paper's experiments, reproduced",
        parts=parts,
        queries=QUERIES,
        version=__version__,
        style=style,
        policy=policy,
    )
    write_whole(path, text)
    return path


def _sections(panels: Sequence[Panel]) -> list[tuple[str, str]]:
    """Settings and networks, in the order in which they come."""
    return list(dict.fromkeys((panel.group.settings, panel.group.network) for panel in panels))


def _part(panels: Sequence[Panel], settings: str, network: str, claims: Mapping[str, Sequence[Claim]]) -> Part:
    mine = [panel for panel in panels if (panel.group.settings, panel.group.network) == (settings, network)]
    groups: list[Group] = list(dict.fromkeys(panel.group for panel in mine))
    own = f", network {network}" if network else ""
    note = NOTES[settings] + (f" The network is {network}.onnx." if network else " The networks are the bundled ones.")
    counts = ", ".join(f"{DATA[one.data]} {one.kind}: {one.compared()[0].images}" for one in groups)
    return Part(
        title=f"Settings: {settings}{own}",
        note=f"{note} Images: {counts}.",
        last=groups[0].iterations,
        claims=claims.get(f"{settings}-{network}" if network else settings, ()),
        finals=[_final(row) for row in final_rows(groups)],
        figures=[_shown(draw(panel, axis), _words(panel, axis)) for panel in mine for axis in AXES],
    )


def _final(row: Sequence[Any]) -> list[str]:
    data, kind, _, _, algorithm, *numbers = row
    return [DATA[data], kind, Algorithm.named(algorithm).title, *map(str, numbers)]


def _words(panel: Panel, axis: str) -> str:
    """What the picture says, for those who do not see it."""
    ends = ", ".join(f"{curve.algorithm.title} ends at {curve.mean[-1]:.3g}" for curve in panel.curves)
    return f"{panel.title}, against {axis}: {ends}"


def _growth_part(growths: Sequence[Growth]) -> Part:
    dimensions = ", ".join(f"{(SIDE * scale) ** 2:,}" for scale in SCALES)
    told = "; ".join(
        f"{one.title}: "
        + ", ".join(f"{q:,}" if q is not None else "not reached" for q in one.queries)
        + (f" (η = {', '.join(f'{eta:g}' for eta in one.chosen if eta is not None)})" if one.algorithm.eta else "")
        for one in growths
    )
    note = (
        f"PN of MNIST digits, every pixel split into a square, the network behind an average pool: d = {dimensions}. "
        f"Queries until F(x) / F(start) is {TARGET:g}, medians over {growths[0].images} images. {told}."
    )
    figure = _shown(draw_growth(growths), f"Queries against the dimension. {told}")
    return Part("The dimension", note, 0, (), (), (figure,))


def _shown(figure: Figure, words: str) -> Shown:
    source = "data:image/svg+xml;base64," + base64.b64encode(svg(figure)).decode()
    width, height = (int(96 * side) for side in figure.get_size_inches())
    return Shown(source, words, width, height)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # loaded only by those who make a page

    loader = PackageLoader("zomirror.experiments", ".")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("page.html.j2")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
