"""Feature spaces: what a search may change, and which input the model then gets. One file per kind."""

from zomirror.features.vector import Vector

__all__ = ["Vector"]
