"""One self-contained HTML page from explanations: nothing remote, every string escaped, a content security policy."""

from zomirror.report.page import render, write

__all__ = ["render", "write"]
