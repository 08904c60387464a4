"""The page of the architecture has the layers of the import contract, and the files that pages name exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = [ROOT / name for name in (".", "src/zomirror", "tests", "benchmarks", "examples")]


def layers() -> list[set[str]]:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    [order] = [contract["layers"] for contract in linter["contracts"] if contract["type"] == "layers"]
    return [set(re.findall(r"\w+", layer)) for layer in order]


def test_the_drawing_has_the_layers_of_the_import_contract() -> None:
    drawn = [set(re.findall(r"<span>(\w+)</span>", row)) for row in re.findall(r'<div class="layer">(.*)</div>', PAGE)]
    assert drawn == layers()


def test_every_room_has_a_sentence() -> None:
    told = re.findall(r"^\| `(\w+)(?:/|\.py)` \| [A-Z`z]", PAGE, re.MULTILINE)
    assert sorted(told) == sorted(set().union(*layers()) - {"version"})


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_files_that_a_page_names_exist(path: Path) -> None:
    prose = re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`(?:python )?([\w./]+\.(?:py|c|toml|css))(?: [^`]*)?`", prose))
    assert [name for name in sorted(named) if not any((folder / name).is_file() for folder in FOLDERS)] == []
