"""Sums, elementary functions and random numbers with the same bits on every machine, and the compiled loops."""
