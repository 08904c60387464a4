"""The table of faults in the documentation: every fault is there, and every test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(r"^\| (F\d+) \|(.*)\|$", (ROOT / "docs" / "reliability.md").read_text(), re.MULTILINE)


def test_every_fault_is_listed_once() -> None:
    assert [name for name, _ in ROWS] == [f"F{i}" for i in range(1, 37)]


@pytest.mark.parametrize(("fault", "row"), ROWS, ids=[name for name, _ in ROWS])
def test_the_tests_of_a_fault_exist(fault: str, row: str) -> None:
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row)
    assert named, f"{fault} has no test"
    for file, test in named:
        assert re.search(rf"^def {test}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE), f"{file}::{test}"
