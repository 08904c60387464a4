"""Sparse optimisation of black boxes in high dimension: min over a box of f(x) + l1|x|_1 + (l2/2)|x|_2^2."""

__version__ = "0.1.0"
