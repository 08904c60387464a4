"""A package that is missing is named, with the extra that brings it."""

from __future__ import annotations

import pytest

from zomirror.errors import ArgumentError
from zomirror.features.optional import need


def test_a_missing_package_is_named() -> None:
    assert need("json", "json", "none").dumps([]) == "[]"
    with pytest.raises(ArgumentError, match=r"package nowhere.*pip install 'zomirror\[images\]'"):
        need("nowhere_at_all", "nowhere", "images")
