"""The floors of coverage: one for each room, counted as coverage counts, and a sentence where one does not hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.coverage_rooms import FLOORS, ROOT, TOP, Room, faults_of, rooms_of, table_of


def summary(lines: int, covered: int, branches: int = 0, taken: int = 0) -> dict[str, Any]:
    counts = {"num_statements": lines, "covered_lines": covered, "num_branches": branches, "covered_branches": taken}
    return {"summary": counts}


REPORT = {
    "files": {
        "src/zomirror/errors.py": summary(10, 10),
        "src/zomirror/cox.py": summary(10, 8, 5, 2),
        "src/zomirror/runs/journal.py": summary(100, 97, 20, 11),
        "src/zomirror/contrast/loss.py": summary(30, 30),
        "src/zomirror/contrast/search/prune.py": summary(50, 40, 20, 10),
        "src/zomirror/empty/__init__.py": summary(0, 0),
    }
}


def test_a_room_is_a_package_with_all_that_is_below_it_and_the_top_level_files_are_one() -> None:
    assert rooms_of(REPORT) == {
        TOP: Room(20, 25, 20),
        "contrast": Room(80, 100, 80),
        "empty": Room(0, 0, 0),
        "runs": Room(100, 120, 108),
    }
    assert [room.percent for room in rooms_of(REPORT).values()] == [80, 80, 100, 90]


def test_a_floor_that_does_not_hold_is_named() -> None:
    rooms = rooms_of(REPORT)
    assert faults_of(rooms, {TOP: 80, "contrast": 80, "empty": 100, "runs": 90}) == []
    [low] = faults_of(rooms, {TOP: 80, "contrast": 81, "empty": 100, "runs": 90})
    assert low == "contrast: 80.0 % is below its floor of 81 %: test the lines of `coverage report -m`"
    new, gone = faults_of(rooms, {TOP: 80, "contrast": 80, "empty": 100, "gone": 90})
    assert new.startswith("runs: no floor")
    assert gone.startswith("gone: no such room")


def test_the_table_has_a_line_for_each_room_and_one_for_all() -> None:
    table = table_of(rooms_of(REPORT), {"runs": 90}).splitlines()
    assert [line.split()[0] for line in table] == ["room", "(top", "contrast", "empty", "runs", "all"]
    assert table[4].split() == ["runs", "100", "90.0", "%", "90", "%"]
    assert table[-1].split() == ["all", "200", "84.9", "%"]


def test_every_room_has_a_floor_of_at_least_ninety() -> None:
    package = ROOT / "src" / "zomirror"
    assert FLOORS.keys() == {TOP, *(path.parent.name for path in package.glob("*/__init__.py"))}
    assert min(FLOORS.values()) >= 90


def test_the_numbers_are_those_of_coverage(tmp_path: Path) -> None:
    """A real trace of a module with a branch that is not taken."""
    package = tmp_path / "src" / "zomirror" / "room"
    package.mkdir(parents=True)
    (package / "module.py").write_text("def f(x):\n    if x:\n        return 1\n    return 2\n\n\nf(1)\n")

    def coverage(*words: str) -> str:
        command = [sys.executable, "-m", "coverage", *words]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    coverage("run", "--branch", "src/zomirror/room/module.py")
    coverage("json", "-o", "report.json")
    room = rooms_of(json.loads((tmp_path / "report.json").read_text()))["room"]
    assert (room.lines, room.parts, room.covered) == (5, 7, 5)
    assert room.percent == pytest.approx(float(coverage("report", "--format=total", "--precision=6")))
