"""Run units of work (an input to explain, an experiment) on workers: local processes, Dask, any executor."""

from zomirror.parallel.blocks import split
from zomirror.parallel.team import Team, spread
from zomirror.parallel.workers import Workers

__all__ = ["Team", "Workers", "split", "spread"]
