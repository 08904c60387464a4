"""Whole units of work (an input to explain, an experiment) over workers: processes, a cluster, any executor."""

from zomirror.parallel.blocks import split
from zomirror.parallel.team import Team, spread
from zomirror.parallel.workers import Workers

__all__ = ["Team", "Workers", "split", "spread"]
