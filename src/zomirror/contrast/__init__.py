"""Contrastive explanations: the features that must be present (PP) or absent (PN) for a decision."""

from zomirror.contrast.api import explain, explain_many
from zomirror.contrast.explanation import Explanation

__all__ = ["Explanation", "explain", "explain_many"]
