"""What a search may change, and what the model then sees: one file for each kind of features."""

from zomirror.features.vector import Vector

__all__ = ["Vector"]
