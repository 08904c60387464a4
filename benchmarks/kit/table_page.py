"""The sections of docs/benchmarks.md on tables (tables.py) and on margins of images (margins.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Markdown = Callable[[list[str], list[list[str]]], str]
SHOWN = ("NICE sparsity", "NICE proximity", "growing spheres", "DiCE random", "DiCE genetic", "DiCE kdtree")


def tables(data: dict[str, Any], markdown: Markdown) -> Iterator[str]:
    """Pertinent negatives of rows beside those of others."""
    yield "## Rows of tables\n"
    yield (
        "Rows that a model refuses, explained by `explain(model, row, features=zm.Table(frame))` with default settings "
        "and by three peers on the same models and rows (`tables.py` says how). A cell has the mean number of changed "
        "columns and the median distance (HEOM: 1 for a category, the part of the range for a number); of a peer, on "
        "the rows that it explained, and in brackets ours on the same rows. `covered` is the part of the rows with an "
        "answer that, as returned, exists and has another class. NICE also asks for all training rows once. To save "
        "time `fewest`, and all of the second table, are of the first 6 rows only.\n"
    )
    head = ["table, model", "rows", "covered", "asked", "s", "zomirror", "zomirror, `fewest`", *SHOWN]
    rows = []
    for name, one in data["summary"].items():
        mine, fewest = one["lines"]["zomirror"], one["lines"].get("zomirror, fewest")
        cells = [name, f"{mine['count']}", f"{mine['covered']:.0%}", f"{mine['rows']:.0f}", f"{mine['seconds']:.2f}"]
        cells += [_size(mine), "" if fewest is None else _size(fewest)]
        for method in SHOWN:
            pair = one["pairs"].get(method)
            cells.append("" if pair is None else f"{_size(pair['theirs'])} ({_size(pair['ours'])})")
        rows.append(cells)
    yield markdown(head, rows) + "\n"
    yield (
        "`plausible=True` adds the distance to the nearest row of the new class (`near`) to the objective: the ratio "
        "is the mean of (HEOM + near) / (distance of that class from the row), at least 1. `answers=5` asks for five "
        "answers at once: the mean number of different sets of columns among them. A PP is compared with all sets of "
        "columns, where there are at most 13.\n"
    )
    head = ["table, model", "plausible: ratio", "asked", "NICE: ratio", "answers=5: sets", "asked"]
    head += ["PP: the fewest columns", "asked", "short of the aim"]
    rows = []
    for name, one in data["summary"].items():
        lines, several, pp = one["lines"], one.get("several"), one.get("positives")
        near, nice = lines.get("zomirror, plausible"), lines.get("NICE proximity")
        rows.append(
            [name]
            + (["", ""] if near is None else [f"{near['sum']:.3f}", f"{near['rows']:.0f}"])
            + ["" if nice is None else f"{nice['sum']:.3f}"]
            + (["", ""] if several is None else [f"{several['sets']:.1f}", f"{several['rows']:.0f}"])
            + (["", ""] if pp is None else [f"{pp['equal']} of {pp['compared']}", f"{pp['rows']:.0f}"])
            + ["; ".join(one["falls_short"])]
        )
    yield markdown(head, rows) + "\n"
    published = "; ".join(
        f"{name}: {one['coverage']:.1%} covered, {one['columns']} columns, l1 {one['distance']}"
        for name, one in data["published"].items()
    )
    yield f"The published figures of NICE's authors, on other data (adult census, random forest), are {published}.\n"


def margins(data: dict[str, Any], markdown: Markdown) -> Iterator[str]:
    """What survives rounding and noise."""
    yield "## Answers that survive 8 bits and a little noise\n"
    yield (
        "Answers about images with the default `kappa=None` and with the paper's `kappa=0`: how many are valid, stay "
        f"valid after rounding to 8 bits, and the part of 20 draws of noise (standard deviation {data['noise']:g} of "
        "the range) after which they do. `more l1` compares the mean l1 of the two, with its standard error, "
        "and the median of the ratios "
        f"(`margins.py`; {', '.join(f'{name}: {count:,} queries' for name, count in data['budgets'].items())}). "
        "At 600 queries "
        "the searches of CIFAR-10 have not settled: their l1 differs by chance far more than by the margin.\n"
    )
    rows = []
    for one in data["table"]:
        for kappa in ("default", "kappa=0"):
            mine = one[kappa]
            cells = [one["model"], one["kind"], kappa, f"{mine['count']}", f"{mine['valid']}", f"{mine['rounded']}"]
            more = [f"{one['more_l1']:+.1%} ± {one['error']:.1%}", f"{one['median_more']:+.1%}"]
            rows.append([*cells, f"{mine['noisy']:.1%}", *(more if kappa == "default" else ["", ""])])
    yield (
        markdown(["network", "kind", "kappa", "images", "valid", "rounded", "with noise", "more l1", "median"], rows)
        + "\n"
    )


def _size(one: dict[str, Any]) -> str:
    return f"{one['columns']:.2f} / {one['distance']:.3f}"
