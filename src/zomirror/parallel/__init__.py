"""Whole units of work (an input to explain, an experiment) over workers: processes, a cluster, any executor."""

from zomirror.parallel.spread import spread
from zomirror.parallel.workers import Workers

__all__ = ["Workers", "spread"]
