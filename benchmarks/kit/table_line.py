"""Summarise the stored answers of tables.py, and compare ours with those of each peer on the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Row = dict[str, Any]
Columns = dict[str, list[Any]]

OURS = ("zomirror", "zomirror, fewest", "zomirror, plausible")
DEFAULT = OURS[0]
NEAREST = "NICE proximity"
"""The peer of which HEOM should be at most half."""


def columns(rows: Iterable[Row]) -> Columns:
    """Rows as one list for each name, which is shorter in a file; None where a row lacks it."""
    kept = list(rows)
    names = dict.fromkeys(name for row in kept for name in row)
    return {name: [_short(row.get(name)) for row in kept] for name in names}


def rows_of(stored: Columns) -> list[Row]:
    """The rows of what columns() made."""
    count = len(next(iter(stored.values()), []))
    return [{name: values[i] for name, values in stored.items()} for i in range(count)]


def line(stored: Columns) -> Row:
    """The summary of one method."""
    rows = rows_of(stored)
    valid = [row for row in rows if row["valid"]]

    def middle(name: str, among: list[Row]) -> float:
        return float(np.median([row[name] for row in among])) if among else float("nan")

    ratio = [(row["distance"] + row["near"]) / row["far"] for row in valid if row["far"] > 0]
    found = {name: middle(name, valid) for name in ("distance", "near")}
    found |= {name: middle(name, rows) for name in ("rows", "seconds")}
    return found | {
        "count": len(rows),
        "covered": float(np.mean([row["covered"] for row in rows])),
        "valid": float(np.mean([row["valid"] for row in rows])),
        "columns": float(np.mean([row["columns"] for row in valid])) if valid else float("nan"),
        "sum": float(np.mean(ratio)) if ratio else float("nan"),
        "most_rows": max((row["rows"] for row in rows), default=0),
        "wrong": sum(bool(row.get("claimed")) and not row["covered"] for row in rows),
    }


def against(found: Row, method: str) -> Row | None:
    """Our default and a peer on the rows for which both have a valid answer: mean columns and median HEOM."""
    mine = {row["index"]: row for row in rows_of(found["negatives"][DEFAULT]) if row["valid"]}
    pairs = [
        (mine[row["index"]], row)
        for row in rows_of(found["negatives"][method])
        if row["valid"] and row["index"] in mine
    ]
    if not pairs:
        return None
    ours, theirs = zip(*pairs, strict=True)
    made: Row = {"count": len(pairs)}
    for name, rows in (("ours", ours), ("theirs", theirs)):
        made[name] = {
            "columns": float(np.mean([row["columns"] for row in rows])),
            "distance": float(np.median([row["distance"] for row in rows])),
        }
    return made


def falls_short(found: Row) -> list[str]:
    """What of the aims our answers of one table and model miss, in words."""
    mine, missed = line(found["negatives"][DEFAULT]), []
    if mine["covered"] < 1 or mine["wrong"]:
        missed.append(f"covered {mine['covered']:.0%}, {mine['wrong']} called valid that are not")
    if mine["rows"] > 400:
        missed.append(f"{mine['rows']:.0f} rows asked")
    if mine["seconds"] > 2:
        missed.append(f"{mine['seconds']:.1f} s")
    for method in found["negatives"]:
        if method in OURS or (pair := against(found, method)) is None:
            continue
        ours, theirs = pair["ours"], pair["theirs"]
        if ours["columns"] > theirs["columns"] + 1e-9:
            missed.append(f"{method}: {ours['columns']:.2f} columns, not {theirs['columns']:.2f}")
        most = theirs["distance"] * (0.5 if method == NEAREST else 1.0)
        if ours["distance"] > most + 1e-9:
            missed.append(f"{method}: HEOM {ours['distance']:.4f}, not {most:.4f}")
    plausible = found["negatives"].get("zomirror, plausible")
    if plausible and ((near := line(plausible))["sum"] > 1.05 or near["rows"] > 400):
        missed.append(f"plausible: {near['sum']:.3f} with {near['rows']:.0f} rows")
    if (several := found.get("several")) and (np.mean(several["sets"]) < 4.5 or np.median(several["rows"]) > 500):
        missed.append(f"answers=5: {np.mean(several['sets']):.2f} sets, {np.median(several['rows']):.0f} rows")
    equal, compared = fewest_found(found)
    if compared and (equal < 0.95 * compared or np.median(found["positives"]["rows"]) > 50):
        missed.append(f"PP: the fewest in {equal} of {compared}")
    return missed


def summary(found: Row) -> Row:
    """What pages show of one table and model."""
    made: Row = {"lines": {method: _rounded(line(stored)) for method, stored in found["negatives"].items()}}
    pairs = {method: against(found, method) for method in found["negatives"] if method not in OURS}
    made["pairs"] = {method: pair for method, pair in pairs.items() if pair is not None}
    if several := found.get("several"):
        made["several"] = {"count": len(several["sets"]), "sets": float(np.mean(several["sets"]))}
        made["several"] |= {"rows": float(np.median(several["rows"])), "most_rows": max(several["rows"])}
    if positives := found.get("positives"):
        equal, compared = fewest_found(found)
        made["positives"] = {"count": len(positives["rows"]), "equal": equal, "compared": compared}
        made["positives"] |= {"rows": float(np.median(positives["rows"])), "most_rows": max(positives["rows"])}
    return made | {"falls_short": falls_short(found)}


def _rounded(one: Row) -> Row:
    return {name: None if value != value else _short(value) for name, value in one.items()}


def fewest_found(found: Row) -> tuple[int, int]:
    """In how many PP our columns were the fewest of all sets, and for how many all sets were tried."""
    rows = [row for row in rows_of(found.get("positives", {})) if row.get("least") is not None]
    return sum(row["columns"] == row["least"] for row in rows), len(rows)


def _short(value: Any) -> Any:
    """Floats to 5 significant digits."""
    return float(f"{value:.5g}") if isinstance(value, float) else value
