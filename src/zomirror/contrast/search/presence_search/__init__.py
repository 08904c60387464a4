"""The search for a set of parts that are there or replaced."""
