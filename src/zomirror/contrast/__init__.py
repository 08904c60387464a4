"""Contrastive explanations, the features that must be present (PP) or absent (PN) for a decision; sparse attacks."""

from zomirror.contrast.api import attack, attack_many, explain, explain_many
from zomirror.contrast.dataframe import changes_frame
from zomirror.contrast.explanation import Explanation

__all__ = ["Explanation", "attack", "attack_many", "changes_frame", "explain", "explain_many"]
