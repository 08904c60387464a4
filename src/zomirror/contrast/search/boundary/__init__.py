"""The search beyond the boundary, with slopes under a smooth prior."""
