"""Packages that only some feature spaces need."""

from __future__ import annotations

import importlib
from typing import Any

from zomirror.errors import ArgumentError


def need(module: str, package: str, extra: str) -> Any:
    """The module; ArgumentError says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ArgumentError(
            f"expected the package {package} for this, got none: pip install 'zomirror[{extra}]'"
        ) from None
