"""The studies of `zomirror reproduce`: their runs, and the report of what is finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zomirror.errors import ArgumentError
from zomirror.paper import dimension
from zomirror.paper import reference as check
from zomirror.paper.claims import Claim, claims
from zomirror.paper.curve_panels import AXES, draw_growth, save, save_figure, sheet
from zomirror.paper.grid import Task, grid
from zomirror.paper.images import chosen, network
from zomirror.paper.outcome import RunOutcome
from zomirror.paper.settings import ALGORITHMS, ITERATIONS, Algorithm
from zomirror.paper.store import Store, read_study
from zomirror.paper.study_page import section, write
from zomirror.paper.summary import Group, group, panels
from zomirror.paper.tables import write_tables

STUDIES = {
    "mnist": "PN and PP of MNIST digits, LeNet: thirteen settings of the paper and the recommended method",
    "cifar": "PN and PP of CIFAR-10 photographs, ResNet20: the same methods",
    "all": "mnist and cifar",
    "dimension": "PN of MNIST digits of 28 x 28, 56 x 56 and 112 x 112 pixels: queries against the dimension",
    "check": "the authors' models (`check PATH`): comparison with their solvers and a second implementation",
    "report": "no runs: figures, tables and page of the finished runs in --out",
}
PARTS = {"mnist": ("mnist",), "cifar": ("cifar",), "all": ("mnist", "cifar")}


@dataclass(frozen=True, slots=True)
class Report:
    """The files that were written, and the claims and growths in them."""

    page: Path
    files: tuple[Path, ...]
    claims: dict[str, list[Claim]]
    growths: tuple[dimension.Growth, ...]


def plan(
    study: str,
    settings: str,
    per_class: int,
    *,
    model: Path | None = None,
    iterations: int = ITERATIONS,
    algorithms: Sequence[Algorithm] = ALGORITHMS,
) -> list[Task]:
    """The runs of a study, the most informative first."""
    if study == "dimension":
        of = network("mnist", model)
        return dimension.tasks(of, chosen("mnist", of, per_class), iterations=iterations)
    if study not in PARTS:
        raise ArgumentError(f"expected one of {', '.join(STUDIES)}, got {study!r}")
    if model is not None and len(PARTS[study]) > 1:
        raise ArgumentError("expected --model with one data set, got it with all: run mnist and cifar one by one")
    tasks = []
    for data in PARTS[study]:
        of = network(data, model)
        images = chosen(data, of, per_class)
        tasks += grid(data, settings, of, images, algorithms=algorithms, iterations=iterations)
    return tasks


def report(folder: Path, *, iterations: int = ITERATIONS) -> Report:
    """Write figures, tables and page of all finished runs in the folder."""
    runs = [one for path in sorted(folder.glob("*.json")) if path.name != "claims.json" for one in read_study(path)]
    groups = sorted(group(runs, iterations=iterations), key=_order)
    if not groups and not any(one.upscale != 1 for one in runs):
        raise ArgumentError(f"expected finished runs of {iterations} iterations in {folder}, found none")
    names = dict.fromkeys(section(one) for one in groups)
    made = {name: claims([one for one in groups if section(one) == name]) for name in names}
    files = write_tables(folder, groups, made)
    figures = folder / "figures"
    shown = panels(groups)
    drawn = [(panel, save(panel, axis, figures)) for panel in shown for axis in AXES]
    for name in made:
        mine = [panel for panel in shown if section(panel.group) == name]
        sheet(mine).savefig(figures / f"all-{name}.png", dpi=120, metadata={"Software": None})
    growths = dimension.growths(runs, iterations=iterations)
    words = ". ".join(one.words for one in growths)
    last = save_figure(draw_growth(growths), figures / "dimension", words) if growths else None
    page = write(folder / "reproduction.html", drawn, made, growths, last)
    return Report(page, tuple(files), made, tuple(growths))


def _order(one: Group) -> tuple[bool, str, bool, bool]:
    """The printed settings and the bundled networks first, MNIST before CIFAR-10, PN before PP."""
    return (one.settings != "printed", one.network, one.data != "mnist", one.kind != "PN")


def checked(folder: Path, out: Path, references: Sequence[check.Reference] = check.REFERENCES) -> list[check.Compared]:
    """The comparison of the finished runs in `out`, on the authors' models in `folder`, with the references."""
    store = Store(out)
    tasks = check.tasks(folder, references)
    found: dict[str, RunOutcome] = {task.key: one for task in tasks if (one := store.find(task)) is not None}
    return check.compare(found, folder, references)
