"""Draws the figures of the paper from computed curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zomirror.paper.settings import ETAS, ITERATIONS, QUERIES, Algorithm
from zomirror.paper.summary import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from zomirror.paper.dimension import Growth

# Distinguishable to colour-blind readers; lines differ in their dashes too.
COLOURS = {"adaexpmd": "#0072B2", "expmd": "#009E73", "psgd": "#D55E00", "recommended": "#AA4499"}
STROKES = {"adaexpmd": "-", "expmd": "--", "psgd": "-.", "recommended": ":"}
ETA_COLOURS = ("#440154", "#414487", "#2A788E", "#22A884", "#7AD151", "#D8B400")
ETA_STROKES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
AXES = ("iterations", "queries")
NOT_REACHED = QUERIES * ITERATIONS
"""The queries of a whole run: where runs that did not reach the target are drawn."""


def draw(panel: Panel, axis: str = "iterations") -> Figure:
    """One panel against iterations or queries."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.9))
    figure.subplots_adjust(left=0.15, right=0.98, bottom=0.13, top=0.93)  # a layout engine would draw the figure twice
    _panel(figure.subplots(), panel, axis)
    return figure


def sheet(panels: Sequence[Panel], axis: str = "iterations", *, columns: int = 3) -> Figure:
    """Many panels on one page."""
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.7 * rows))
    edge = 0.12 / rows
    figure.subplots_adjust(left=0.05, right=0.99, bottom=edge, top=1 - edge / 2, wspace=0.2, hspace=0.28)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _panel(axes, panel, axis)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    return figure


@dataclass(frozen=True, slots=True)
class Drawn:
    """The files of a figure, and its text for readers who cannot see it."""

    name: str
    words: str
    width: int
    height: int
    png: Path
    svg: Path


def save(panel: Panel, axis: str, folder: Path) -> Drawn:
    """A panel against an axis, as PNG and SVG."""
    name = panel.name if axis == "iterations" else f"{panel.name}-{axis}"
    ends = ", ".join(f"{curve.algorithm.title} ends at {curve.mean[-1]:.3g}" for curve in panel.curves)
    return save_figure(draw(panel, axis), folder / name, f"{panel.title}, against {axis}: {ends}")


def save_figure(figure: Figure, stem: Path, words: str) -> Drawn:
    """A figure as PNG and SVG; the same figure gives the same files."""
    from matplotlib import rc_context

    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = (stem.with_name(f"{stem.name}{suffix}") for suffix in (".png", ".svg"))
    figure.savefig(png, dpi=120, metadata={"Software": None})
    with rc_context({"svg.hashsalt": "zomirror"}):
        figure.savefig(svg, metadata={"Date": None})
    width, height = (int(96 * side) for side in figure.get_size_inches())
    return Drawn(stem.name, words, width, height, png, svg)


def _panel(axes: Axes, panel: Panel, axis: str) -> None:
    group = panel.group
    across = list(group.steps) if axis == "iterations" else group.queries.tolist()
    for curve in panel.curves:
        look = _look(curve.algorithm, panel.topic)
        low, high = curve.band
        axes.fill_between(across, low, high, color=look["color"], alpha=0.13, linewidth=0)
        name = curve.algorithm.title if panel.topic == "convergence" else f"η = {curve.algorithm.eta:,.0f}"
        axes.plot(across, curve.mean, label=name, linewidth=1.8, **look)
    for mark in panel.marks:
        at = mark.step if axis == "iterations" else group.queries[group.at(mark.step)]
        colour = _look(mark.algorithm, panel.topic)["color"]
        label = "published" if mark is panel.marks[0] else None
        axes.plot([at], [mark.value], "*", color=colour, markersize=13, markeredgecolor="black", label=label, zorder=5)
    axes.set(yscale="log", ylabel="F(x) / F(start), mean over images", title=panel.title)
    axes.title.set_fontsize(10)
    if axis == "queries":
        # Methods differ in the first steps; the start, at 0 queries, cannot be on a logarithmic axis.
        axes.set(xscale="log", xlim=(across[1] if len(across) > 1 else 1, across[-1] * 1.05), xlabel="queries")
    else:
        axes.set(xlabel=f"iterations ({group.queries[1]:.0f} queries each)" if len(across) > 1 else "iterations")
    axes.grid(visible=True, which="major", color="0.9")
    if panel.topic == "convergence":
        axes.legend(fontsize=8, framealpha=0.7, edgecolor="none", handlelength=2.6)
    else:  # six curves leave no corner free: the legend goes below them
        axes.set_ylim(bottom=axes.get_ylim()[0] / 3)
        axes.legend(fontsize=8, loc="lower center", ncols=3, frameon=False, handlelength=2.6)


def _look(algorithm: Algorithm, topic: str) -> dict[str, Any]:
    """Colour and dashes: by method, or by step size where only that differs."""
    if topic == "convergence" or algorithm.eta not in ETAS:
        return {"color": COLOURS[algorithm.family], "linestyle": STROKES[algorithm.family]}
    i = ETAS.index(algorithm.eta)
    return {"color": ETA_COLOURS[i], "linestyle": ETA_STROKES[i]}


def draw_growth(growths: Sequence[Growth]) -> Figure:
    """Queries to a fixed loss against the dimension, for each choice of the weights."""
    from matplotlib.figure import Figure

    versions = [shared for shared in (True, False) if any(one.shared == shared for one in growths)]
    figure = Figure(figsize=(5.2 * len(versions), 3.9), layout="constrained")
    row = figure.subplots(1, len(versions), squeeze=False, sharey=True)[0]
    for axes, shared in zip(row, versions, strict=True):
        _growth(axes, [one for one in growths if one.shared == shared])
        axes.set_title("weights shared by the parts of a pixel" if shared else "weights as printed", fontsize=10)
    row[0].set_ylabel("queries, median over images")
    row[0].legend(fontsize=8, frameon=False)
    return figure


def _growth(axes: Axes, growths: Sequence[Growth]) -> None:
    for place, one in enumerate(growths):
        reached = [(d, q) for d, q in zip(one.dimensions, one.queries, strict=True) if q is not None]
        missed = [d for d, q in zip(one.dimensions, one.queries, strict=True) if q is None]
        colour, stroke = COLOURS[one.family], STROKES[one.family]
        axes.plot(
            [d for d, _ in reached],
            [q for _, q in reached],
            marker="o",
            color=colour,
            linestyle=stroke,
            label=one.title,
        )
        if missed:
            beside = [d * 0.92**place for d in missed]  # so that the triangles of two methods do not coincide
            axes.plot(beside, [NOT_REACHED] * len(missed), "^", color=colour)
    axes.axhline(NOT_REACHED, color="0.6", linewidth=1)
    whole = f"all {NOT_REACHED:,} queries; triangles: not reached"
    axes.annotate(whole, (growths[0].dimensions[0], NOT_REACHED), (0, 3), textcoords="offset points", fontsize=7)
    axes.set(xscale="log", yscale="log", xlabel="dimension d")
    dimensions = growths[0].dimensions
    axes.set_xticks(dimensions, [f"{d:,}" for d in dimensions])
    axes.minorticks_off()
    axes.grid(visible=True, which="major", color="0.9")
