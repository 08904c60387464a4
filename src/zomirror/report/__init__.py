"""One self-contained HTML page of explanations: nothing is loaded, every string is escaped."""

from zomirror.report.page import render, write

__all__ = ["render", "write"]
