"""Move a valid row towards x0: put columns back, and narrow down how far each number has to go, by sections."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zomirror.contrast.search.table_search.column_rows import Rows, changed_in
from zomirror.contrast.search.table_search.column_values import Axis

Vector = NDArray[np.float64]

SECTIONS = 6
"""Values of each number in one batch: the range that is left is divided by 7."""


def sections(rows: Rows, leader: int) -> list[Vector]:
    """The row with each changed column put back, and with each changed number nearer to x0."""
    w, made = rows.w[leader], []
    for axis in rows.axes:
        if rows.masks[leader, axis.j]:
            made.append(changed_in(w, axis.j, axis.own))
            if not (axis.column.nominal or np.isnan(w[axis.j] - axis.own)):
                made += [changed_in(w, axis.j, code) for code in _section(rows, leader, axis)]
    return made


def _section(rows: Rows, leader: int, axis: Axis) -> Vector:
    """Levels between the last one that is known to be too near to x0 and that of the row."""
    w, own = rows.w[leader], axis.own
    others = np.arange(w.size) != axis.j
    alike = ((rows.w == w) | (np.isnan(rows.w) & np.isnan(w)))[:, others].all(axis=1) & ~rows.valid
    codes, tried = axis.between(w[axis.j]), rows.w[alike, axis.j]
    tried = tried[((tried - own) * (w[axis.j] - own) > 0) & (np.abs(tried - own) < abs(w[axis.j] - own))]
    if tried.size:
        codes = codes[np.abs(codes - own) > np.abs(tried - own).max()]
    if codes.size > SECTIONS:
        codes = codes[np.unique(np.linspace(0, codes.size - 1, SECTIONS + 2)[1:-1].astype(np.intp))]
    return codes
