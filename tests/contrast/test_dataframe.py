"""Changes as a DataFrame; tests/contrast/test_explain_table.py has those of real answers."""

from __future__ import annotations

import sys

import pytest

import zomirror as zm
from zomirror.errors import ArgumentError


def test_no_explanations_give_no_rows():
    frame = zm.changes_frame([])
    assert len(frame) == 0
    assert "before" in frame


def test_a_missing_pandas_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArgumentError, match=r"pip install 'zomirror\[tables\]'"):
        zm.changes_frame([])
