"""Draws panels; everything in them was computed before."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zomirror.experiments.settings import ETAS, Algorithm
from zomirror.experiments.summary import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from zomirror.experiments.dimension import Growth

# Told apart by people who do not tell red from green; lines differ in their strokes as well.
COLOURS = {"adaexpmd": "#0072B2", "expmd": "#009E73", "psgd": "#D55E00", "recommended": "#AA4499"}
STROKES = {"adaexpmd": "-", "expmd": "--", "psgd": "-.", "recommended": ":"}
ETA_COLOURS = ("#440154", "#414487", "#2A788E", "#22A884", "#7AD151", "#D8B400")
ETA_STROKES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
AXES = ("iterations", "queries")


def draw(panel: Panel, axis: str = "iterations") -> Figure:
    """One panel against iterations or queries."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.9), layout="constrained")
    _panel(figure.subplots(), panel, axis)
    return figure


def sheet(panels: Sequence[Panel], axis: str = "iterations", *, columns: int = 3) -> Figure:
    """Many panels on one page."""
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.5 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _panel(axes, panel, axis)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    return figure


def save(panels: Iterable[Panel], folder: Path) -> list[Path]:
    """Every panel against both axes, as PNG and SVG; gives the files."""
    written = []
    for panel in panels:
        for axis in AXES:
            name = panel.name if axis == "iterations" else f"{panel.name}-{axis}"
            written += save_figure(draw(panel, axis), folder / name)
    return written


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """A figure as PNG and SVG."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    files = [stem.with_name(f"{stem.name}{suffix}") for suffix in (".png", ".svg")]
    figure.savefig(files[0], dpi=120, metadata={"Software": None})
    files[1].write_bytes(svg(figure))
    return files


def svg(figure: Figure) -> bytes:
    """A figure as SVG; the same figure gives the same bytes."""
    from matplotlib import rc_context

    file = io.BytesIO()
    with rc_context({"svg.hashsalt": "zomirror"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _panel(axes: Axes, panel: Panel, axis: str) -> None:
    group = panel.group
    across = list(group.steps) if axis == "iterations" else group.queries.tolist()
    for curve in panel.curves:
        look = _look(curve.algorithm, panel.topic)
        low, high = curve.band
        axes.fill_between(across, low, high, color=look["color"], alpha=0.13, linewidth=0)
        axes.plot(across, curve.mean, label=curve.algorithm.title, linewidth=1.8, **look)
    for mark in panel.marks:
        at = mark.step if axis == "iterations" else group.queries[group.at(mark.step)]
        colour = _look(mark.algorithm, panel.topic)["color"]
        label = "published" if mark is panel.marks[0] else None
        axes.plot([at], [mark.value], "*", color=colour, markersize=13, markeredgecolor="black", label=label, zorder=5)
    axes.set(yscale="log", ylabel="F(x) / F(start), mean over images", title=panel.title)
    axes.title.set_fontsize(10)
    if axis == "queries":
        # The first steps are where methods differ; the start itself has no place on a logarithmic axis.
        axes.set(xscale="log", xlim=(across[1] if len(across) > 1 else 1, across[-1] * 1.05), xlabel="queries")
    else:
        axes.set(xlabel=f"iterations ({group.queries[1]:.0f} queries each)" if len(across) > 1 else "iterations")
    axes.grid(visible=True, which="major", color="0.9")
    axes.legend(fontsize=8, frameon=False)


def _look(algorithm: Algorithm, topic: str) -> dict[str, Any]:
    """Colour and stroke: by method, or by step size where only that differs."""
    if topic == "convergence" or algorithm.eta not in ETAS:
        return {"color": COLOURS[algorithm.family], "linestyle": STROKES[algorithm.family]}
    i = ETAS.index(algorithm.eta)
    return {"color": ETA_COLOURS[i], "linestyle": ETA_STROKES[i]}


def draw_growth(growths: Sequence[Growth]) -> Figure:
    """Queries to a fixed loss against the dimension."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.9), layout="constrained")
    axes = figure.subplots()
    for growth in growths:
        family = growth.algorithm.family
        reached = [(d, q) for d, q in zip(growth.dimensions, growth.queries, strict=True) if q is not None]
        axes.plot(
            [d for d, _ in reached],
            [q for _, q in reached],
            marker="o",
            color=COLOURS[family],
            linestyle=STROKES[family],
            label=growth.title,
        )
    axes.set(xscale="log", yscale="log", xlabel="dimension d", ylabel="queries, median over images")
    dimensions = sorted({d for growth in growths for d in growth.dimensions})
    axes.set_xticks(dimensions, [f"{d:,}" for d in dimensions])
    axes.minorticks_off()
    axes.grid(visible=True, which="major", color="0.9")
    axes.legend(fontsize=8, frameon=False)
    return figure
