"""The numbers behind the figures as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from zomirror.paper.claims import Claim
from zomirror.paper.settings import ALGORITHMS
from zomirror.paper.store import write_whole
from zomirror.paper.summary import Group

CURVES = ("data", "kind", "settings", "network", "algorithm", "images", "step", "queries", "mean", "q25", "q75")
FINALS = ("data", "kind", "settings", "network", "algorithm", "images", "t25", "t50", "t100", "t200", "valid", "nnz")


def curve_rows(groups: Iterable[Group]) -> Iterable[tuple[Any, ...]]:
    """Every point of every curve."""
    for group in groups:
        for curve in group.curves(ALGORITHMS):
            low, high = curve.band
            head = (group.data, group.kind, group.settings, group.network, curve.algorithm.name, curve.images)
            for i, step in enumerate(group.steps):
                numbers = (f"{value:.5g}" for value in (curve.mean[i], low[i], high[i]))
                yield (*head, step, int(group.queries[i]), *numbers)


def final_rows(groups: Iterable[Group]) -> Iterable[tuple[Any, ...]]:
    """One row per algorithm: the mean at some steps, the number of valid last iterates, their median non-zeros."""
    for group in groups:
        for curve in group.curves(ALGORITHMS):
            means = [f"{curve.mean[group.at(t)]:.4g}" if t in group.steps else "" for t in (25, 50, 100, 200)]
            head = (group.data, group.kind, group.settings, group.network, curve.algorithm.name, curve.images)
            yield (*head, *means, curve.valid, int(curve.nnz))


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table with a header line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def write_tables(folder: Path, groups: Sequence[Group], claims: dict[str, list[Claim]]) -> list[Path]:
    """curves.csv, finals.csv and claims.json."""
    write_csv(folder / "curves.csv", CURVES, curve_rows(groups))
    write_csv(folder / "finals.csv", FINALS, final_rows(groups))
    document = {
        settings: [
            {
                "claim": claim.number,
                "text": claim.text,
                "verdict": claim.verdict.value,
                "findings": [
                    {"where": one.where, "measured": one.measured, "holds": one.holds} for one in claim.findings
                ],
            }
            for claim in made
        ]
        for settings, made in claims.items()
    }
    write_whole(folder / "claims.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return [folder / name for name in ("curves.csv", "finals.csv", "claims.json")]
