"""F13: SIGKILL at random moments, of real runs in real processes; benchmarks/chaos.py does the same a hundred times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("task", "method"), [("minimize", "zo_ada_expmd"), ("explain", "recommended")])
def test_killed_at_random_moments_is_bitwise_the_same(tmp_path: Path, task: str, method: str) -> None:
    output = tmp_path / "chaos.json"
    command = [sys.executable, "benchmarks/chaos.py", "--kills", "4", "--tasks", task, "--methods", method]
    done = subprocess.run(
        [*command, "--seed", "7", "--output", str(output)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(output.read_text())["results"][f"{task} {method}"]
    assert counts["kills"] >= 4
    assert counts["equal"] + counts["prefix"] == counts["runs"]
    assert counts["rows_used"] <= counts["rows_sent"]


@pytest.mark.parametrize(("name", "kills"), [("minimize", 3), ("explain", 1), ("attack", 1)])
def test_a_killed_command_ends_with_the_files_of_an_uninterrupted_one(tmp_path: Path, name: str, kills: int) -> None:
    """Three kills: while it starts, while it searches, while it finishes; then the same command, exit code 0."""
    output = tmp_path / "chaos.json"
    command = [sys.executable, "benchmarks/chaos.py", "--kills", str(kills), "--tasks", "command", "--commands", name]
    done = subprocess.run(
        [*command, "--seed", "3", "--output", str(output)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(output.read_text())["results"][f"command {name}"]
    assert counts["kills"] >= kills
    assert counts["equal"] == counts["runs"]
