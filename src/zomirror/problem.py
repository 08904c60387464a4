"""The problem as a method sees it: dimension, penalty, decision set; everything but f."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zomirror.arrays import Indices
from zomirror.box import Box
from zomirror.penalty import ElasticNet


@dataclass(frozen=True, eq=False)
class Problem:
    """min over `box` of f(x) + penalty(x), x in d dimensions; f may take a random draw (`stochastic`)."""

    d: int
    dtype: np.dtype[Any]
    penalty: ElasticNet
    box: Box
    stochastic: bool = False

    @cached_property
    def free(self) -> Indices | None:
        """The coordinates that can move, None for all of them."""
        return self.box.free(self.d)
