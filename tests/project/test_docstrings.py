"""Every public function lists its parameters in its docstring, by the names of its signature."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import zomirror as zm


def public() -> Iterator[tuple[str, Any]]:
    """The functions and classes that users type."""
    for name in zm.__all__:
        thing = getattr(zm, name)
        if callable(thing) and thing not in (zm.Explanation, zm.Result, zm.Status):  # nobody makes these
            yield f"zm.{name}", thing


def documented(text: str) -> list[str]:
    """The names listed under Parameters, in order."""
    match = re.search(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-+\n|\Z)", text, re.DOTALL)
    lines = match[1].splitlines() if match else []
    heads = [line.split(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return [name.lstrip("*") for head in heads for name in head.split(", ")]


@pytest.mark.parametrize(("name", "thing"), list(public()), ids=[name for name, _ in public()])
def test_the_docstring_lists_the_parameters_of_the_signature(name: str, thing: Any) -> None:
    taken = [one for one in inspect.signature(thing).parameters if one != "self"]
    text = inspect.getdoc(thing) or ""
    assert sorted(documented(text)) == sorted(taken), name


def test_what_users_type_is_no_module() -> None:
    """`import zomirror.minimize` must not be both a function and a module."""
    import pkgutil

    modules = {module.name for module in pkgutil.iter_modules(zm.__path__)}
    shared = {name for name in zm.__all__ if name in modules}
    assert shared == {"datasets", "errors", "methods", "models", "runs"}
    assert len(zm.__all__) <= 32
