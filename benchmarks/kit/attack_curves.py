"""What attacks had reached after fewer queries: median l1, median pixels, and how often few pixels sufficed."""

from __future__ import annotations

from typing import Any

import numpy as np

BUDGETS = (30, 100, 300, 1_000, 3_000, 10_000)
"""Queries after which attacks are compared."""
PIXELS = (5, 10, 20, 50)
"""Numbers of changed pixels that a success may have."""
Row = dict[str, Any]


def reached(trace: list[tuple[int, float]], queries: int) -> float:
    """The least size of the adversarial inputs that were seen within so many queries; infinite if there was none."""
    return min((size for used, size in trace if used <= queries), default=np.inf)


def curves(name: str, attack: str, rows: list[Row], budget: int) -> Row:
    """Medians over all images, a missing success being infinite (None), and parts of the images.

    Rows that were run with fewer queries than the `budget` say so.
    """
    budget = min(row.get("budget", budget) for row in rows)
    line: Row = {"model": name, "attack": attack, "images": len(rows), "budget": budget}
    asked = [queries for queries in BUDGETS if queries <= budget]
    for key, trace in (("l1", "trace"), ("pixels", "pixels")):
        if all(trace in row for row in rows):
            medians = [float(np.median([reached(row[trace], queries) for row in rows])) for queries in asked]
            line[key] = {str(q): size if np.isfinite(size) else None for q, size in zip(asked, medians, strict=True)}
    if all("pixels" in row for row in rows):
        line["within"] = {
            str(most): {
                str(queries): float(np.mean([reached(row["pixels"], queries) <= most for row in rows]))
                for queries in asked
            }
            for most in PIXELS
        }
    if all("eight_bits" in row for row in rows):
        line["eight_bits"] = float(np.mean([row["eight_bits"] for row in rows]))
    first = float(np.median([row["first"] or np.inf for row in rows]))
    line["first"] = first if np.isfinite(first) else None
    return line
