"""Whole units of work (an input to explain, an experiment) over workers: processes, a cluster, any executor."""

from zomirror.parallel.split import split
from zomirror.parallel.spread import Team, spread
from zomirror.parallel.workers import Workers

__all__ = ["Team", "Workers", "split", "spread"]
