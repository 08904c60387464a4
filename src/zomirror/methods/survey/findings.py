"""What a surveyed descent keeps between batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from zomirror.methods.averaging import Stretch
from zomirror.methods.descent import State
from zomirror.methods.estimator import Learned
from zomirror.methods.group_testing import Search
from zomirror.methods.quasi_newton import Refinement
from zomirror.numerics.arrays import Array

ROUNDS, WORTH = 3, 1e-5
"""A refinement has at least 3 rounds, and continues while each query lowers F by 1e-5 of the penalty."""
DOUBT = 4.0
"""A difference of F counts only if it is above 4 standard deviations of the noise."""
DESCEND, SURVEY, SEARCH, SLOPES, LINE = range(5)
"""What a batch is for."""


@dataclass(frozen=True, eq=False)
class Findings:
    """What Surveyed keeps between batches: the state of the descent, the best point, and when to do what."""

    descent: State
    """The inner state."""
    best: Array
    """The best iterate."""
    answer: Array
    """The best of the other points that were asked: differences, and prunings that were not taken."""
    search: Search
    refinement: Refinement
    stretch: Stretch
    """The last batches of a noisy descent."""
    f: float = math.inf
    """f at the best point."""
    least: float = math.inf
    """F at the best point."""
    answer_f: float = math.inf
    answer_total: float = math.inf
    """f and F at the answer."""
    asked: int = 0
    """Queries since the last survey."""
    waited: int = 0
    """Queries since the best point became clearly better."""
    stage: int = DESCEND
    """What the next batch is for."""
    since: float = math.inf
    """F at the best point when the last survey was made."""
    rest: int = 0
    """Surveys until the next refinement may begin."""
    failed: int = 0
    """Refinements in a row that did not pay."""
    worth: float = WORTH
    """The gain per query, relative to the penalty, above which the refinement continues."""
    ceiling: float = math.inf
    """A step to F above this is undone; infinite before the first step."""
    first: float = math.inf
    """F at the start."""
    looked: bool = False
    """Whether the first search is over."""
    sparse: bool = False
    """Whether the last search found coordinates."""


def unit(findings: Findings, h: float) -> float:
    """What decreases of F are compared with: the penalty h or, without one, the decrease so far."""
    return h or findings.first - findings.least


def with_point(findings: Findings, known: Learned, x: Array, f: float, total: float, rows: int) -> dict[str, Any]:
    """The fields that one more measured point changes."""
    clearly = total < findings.least - DOUBT / 2 * known.sd
    waited = 0 if clearly else findings.waited + rows
    return {"best": x, "f": f, "least": total, "waited": waited} if total < findings.least else {"waited": waited}
