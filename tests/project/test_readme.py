"""The figures of the README are those of the last measurements."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def readme() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme", ROOT / "benchmarks" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_figures_are_those_of_the_results(readme: ModuleType) -> None:
    """When this fails, a benchmark was run since: python benchmarks/readme.py"""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.table() in text
    assert readme.put(text) == text


def test_the_pages_say_the_same(readme: ModuleType) -> None:
    for page in readme.PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("| zomirror | P") == 2
        assert readme.beside_others(text) == text
        assert readme.beside_others(text.replace(" of 100 |", " of 99 |", 1)) == text


def test_the_page_of_the_applications_says_the_same(readme: ModuleType) -> None:
    text = readme.APPLICATIONS.read_text(encoding="utf-8")
    assert readme.applied(text) == text
    assert readme.applied(text.replace("| zomirror |", "| somebody |")) == text


def test_a_number_that_drifts_is_put_right(readme: ModuleType) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"[\d,]+ queries", readme.table())
    assert first is not None
    drifted = text.replace(first[0], "7 queries")
    assert drifted != text
    assert readme.put(drifted) == text


def test_every_command_of_the_table_is_a_script(readme: ModuleType) -> None:
    scripts = [script.split()[0] for _, _, script in readme.figures()]
    assert scripts
    for script in scripts:
        assert (ROOT / "benchmarks" / script).is_file()


def test_the_page_of_the_method_has_the_synthetic_problems_as_they_are(readme: ModuleType) -> None:
    text = readme.METHOD.read_text(encoding="utf-8")
    assert readme.put(text, "synthetic", readme.synthetic_table) == text
