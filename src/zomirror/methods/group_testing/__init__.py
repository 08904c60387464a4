"""Adaptive group testing: the search for the few coordinates that f depends on."""

from zomirror.methods.group_testing.group_search import asked, begun, shortest, told
from zomirror.methods.group_testing.open_sets import OVER, ROOM, SAMPLE, Search
from zomirror.methods.group_testing.probes import Probes

__all__ = ["OVER", "ROOM", "SAMPLE", "Probes", "Search", "asked", "begun", "shortest", "told"]
