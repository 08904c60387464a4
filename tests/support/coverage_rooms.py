"""The coverage of every room of src/zomirror, against its floor: python -m tests.support.coverage_rooms.

Reads what `coverage json` writes. A room is a package directly under src/zomirror; the top-level files are one more.
The per cent are those of `coverage report`: covered lines and branches of all lines and branches.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = PurePosixPath("src/zomirror")
TOP = "(top level)"

FLOORS = {
    TOP: 98,
    "classifiers": 97,
    "cli": 90,
    "contrast": 96,
    "datasets": 98,
    "drawing": 98,
    "engine": 94,
    "features": 97,
    "methods": 98,
    "models": 98,
    "numerics": 98,
    "paper": 95,
    "parallel": 93,
    "report": 98,
    "runs": 96,
    "schema": 98,
    "serve": 96,
    "studio": 95,
}
"""In per cent: the least of two runs, rounded down, 98 at most. Child processes are not traced (cli, parallel),
and neither is the one file of serve that needs KServe."""


@dataclass(frozen=True, slots=True)
class Room:
    """The counts of a room: lines, and how many of `parts` (lines and branches) are covered."""

    lines: int = 0
    parts: int = 0
    covered: int = 0

    @property
    def percent(self) -> float:
        """100 for a room without code."""
        return 100 * self.covered / self.parts if self.parts else 100.0


def rooms_of(report: Mapping[str, Any]) -> dict[str, Room]:
    """The rooms in the report of `coverage json`, by name."""
    rooms: dict[str, Room] = {}
    for name, file in report["files"].items():
        inside = PurePosixPath(name).relative_to(PACKAGE).parts
        room, summary = inside[0] if len(inside) > 1 else TOP, file["summary"]
        before = rooms.get(room, Room())
        rooms[room] = Room(
            before.lines + summary["num_statements"],
            before.parts + summary["num_statements"] + summary["num_branches"],
            before.covered + summary["covered_lines"] + summary["covered_branches"],
        )
    return dict(sorted(rooms.items()))


def faults_of(rooms: Mapping[str, Room], floors: Mapping[str, float]) -> list[str]:
    """A sentence for each room below its floor, room without a floor, and floor without a room."""
    low = [
        f"{name}: {room.percent:.1f} % is below its floor of {floors[name]} %: test the lines of `coverage report -m`"
        for name, room in rooms.items()
        if name in floors and room.percent < floors[name]
    ]
    new = [f"{name}: no floor: add one to FLOORS in tests/support/coverage_rooms.py" for name in rooms.keys() - floors]
    gone = [f"{name}: no such room: remove it from FLOORS" for name in floors.keys() - rooms]
    return low + sorted(new) + sorted(gone)


def table_of(rooms: Mapping[str, Room], floors: Mapping[str, float]) -> str:
    """One line for each room, and one for all."""
    total = Room(*(sum(getattr(room, field) for room in rooms.values()) for field in ("lines", "parts", "covered")))
    rows = [(name, room, f"{floors[name]} %" if name in floors else "") for name, room in rooms.items()]
    lines = [f"{name:<12} {room.lines:>6} {room.percent:>7.1f} % {floor:>6}" for name, room, floor in rows]
    return "\n".join([f"{'room':<12} {'lines':>6} {'covered':>9} {'floor':>6}", *lines, _last(total)])


def _last(total: Room) -> str:
    return f"{'all':<12} {total.lines:>6} {total.percent:>7.1f} %"


def main() -> int:
    """The table of the last traced run; 1 if a floor does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(path)]
        if failed := subprocess.run(command, cwd=ROOT, check=False).returncode:
            return failed  # nothing was traced, and coverage has said so
        rooms = rooms_of(json.loads(path.read_text()))
    faults = faults_of(rooms, FLOORS)
    print(table_of(rooms, FLOORS), *faults, sep="\n")  # noqa: T201 - it is a command
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
