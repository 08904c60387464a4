"""The public names: imported when they are first used, and the same for a type checker."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import zomirror as zm


def test_a_name_is_that_of_its_module_and_what_a_type_checker_reads() -> None:
    tree = ast.parse(Path(zm.__file__).read_text(encoding="utf-8"))
    [typed] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {}
    for node in typed.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.module is not None
        for alias in node.names:
            home = import_module(node.module)
            seen[alias.name] = getattr(home, alias.name, None) or import_module(f"{node.module}.{alias.name}")
    assert {*seen, "__version__"} == set(zm.__all__) == set(dir(zm))
    assert all(getattr(zm, name) is found for name, found in seen.items())


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'zomirror' has no attribute 'minimise'"):
        zm.minimise  # noqa: B018 - the access is the test


@pytest.mark.parametrize("name", ["zomirror", "zomirror.cli"])
def test_importing_it_loads_no_library(name: str) -> None:
    """So that --help, --version and the error for a wrong option are quick."""
    code = f"import sys, {name}; print(*sorted({{'numpy', 'scipy', 'rich', 'onnxruntime'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
