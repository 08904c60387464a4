"""The tests that `make check` runs: those of what changed, and no others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.changed_rooms import ROOT, affected, changed_files


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        (["src/zomirror/methods/mirror.py"], ["tests/methods"]),
        (["src/zomirror/contrast/search/prune.py"], ["tests/contrast"]),
        (["src/zomirror/classifiers/http/payload.py"], ["tests/classifiers"]),
        (["src/zomirror/numerics/_kernels.c"], ["tests/numerics"]),
        (["src/zomirror/cox.py"], ["tests/test_cox.py"]),
        (["src/zomirror/problem.py"], ["tests/problem"]),
        (["src/zomirror/py.typed", "src/zomirror/no_such_room/module.py"], []),
        (["tests/test_cox.py"], ["tests/test_cox.py"]),
        (["tests/runs/test_journal.py"], ["tests/runs"]),
        (["tests/contrast/search/test_prune.py", "tests/contrast/test_loss.py"], ["tests/contrast"]),
        (["tests/paper/conftest.py"], ["tests/paper"]),
        (["tests/project/test_house.py"], ["tests/project/test_house.py"]),
        (["tests/support/search_driver.py", "src/zomirror/contrast/loss.py"], ["tests/contrast"]),
        (["tests/support/changed_rooms.py"], ["tests/project/test_changed_rooms.py"]),
        (["README.md", "docs/cli.md", "benchmarks/queries.py", "tests/conftest.py", "Makefile"], []),
        ([], []),
    ],
    ids=str,
)
def test_a_change_leads_to_the_affected_its_room(changed: list[str], tests: list[str]) -> None:
    assert affected(changed, ROOT) == tests


def test_every_room_has_tests() -> None:
    """A folder of tests for each package but models, which holds two files that others test."""
    package = ROOT / "src" / "zomirror"
    rooms = [path.parent.name for path in package.glob("*/__init__.py") if path.parent.name != "models"]
    assert [room for room in rooms if affected([f"src/zomirror/{room}/x.py"], ROOT) != [f"tests/{room}"]] == []


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_what_changed_is_committed_uncommitted_and_new(tmp_path: Path) -> None:
    """Not what main has got since, and not what is ignored; a moved file has changed at both places."""
    git(tmp_path, "init", "-b", "main")
    for name in ("kept", "edited", "moved", "on_main"):
        (tmp_path / name).write_text(f"{name}\n" * 9)
    (tmp_path / ".gitignore").write_text("ignored\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    assert changed_files(tmp_path) == []
    git(tmp_path, "switch", "-c", "work")
    git(tmp_path, "mv", "moved", "there")
    git(tmp_path, "commit", "-m", "second")
    git(tmp_path, "switch", "main")
    (tmp_path / "on_main").write_text("other\n")
    git(tmp_path, "commit", "-am", "third")
    git(tmp_path, "switch", "work")
    (tmp_path / "edited").write_text("other\n")
    (tmp_path / "new").touch()
    (tmp_path / "ignored").touch()
    assert changed_files(tmp_path) == ["edited", "moved", "new", "there"]
    assert changed_files(tmp_path, "no-such-branch") == ["edited", "new"], "without a base, what is not committed"
