"""A descent with surveys: pruning, returning, searching and refining."""

from zomirror.methods.survey.findings import DOUBT, SEARCH, SLOPES, SURVEY, Findings
from zomirror.methods.survey.pruning import Pruned
from zomirror.methods.survey.surveyed import POLISHED, SHARE, WAIT, Surveyed

__all__ = ["DOUBT", "POLISHED", "SEARCH", "SHARE", "SLOPES", "SURVEY", "WAIT", "Findings", "Pruned", "Surveyed"]
