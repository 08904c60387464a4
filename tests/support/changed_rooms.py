"""The tests that `make check` runs: those of the rooms that differ from main.

python -m tests.support.changed_rooms [BASE]

prints their paths, and nothing if no room has changed. Changes elsewhere (documentation, benchmarks, tests/conftest.py)
are left to `make test`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]


def changed_files(root: Path, base: str = "main") -> list[str]:
    """Files that differ from the merge base with `base`, are not committed, or are not tracked."""
    [since] = _git(root, "merge-base", base, "HEAD") or ["HEAD"]
    tracked = _git(root, "diff", "--name-only", "--no-renames", since)
    return sorted({*tracked, *_git(root, "ls-files", "--others", "--exclude-standard")})


def affected(changed: Iterable[str], root: Path) -> list[str]:
    """The folders and files of tests to run, as far as they exist under `root`."""
    found: set[str] = set()
    for name in changed:
        match PurePosixPath(name).parts:
            case ("src", "zomirror", module):
                stem = PurePosixPath(module).stem
                found |= {f"tests/test_{stem}.py", f"tests/{stem}"}
            case ("src", "zomirror", room, *_):
                found.add(f"tests/{room}")
            case ("tests", file):
                found |= {name} if file.startswith("test_") else set()
            case ("tests", "project", *_):
                found.add(name)  # one topic a file, and together they take minutes
            case ("tests", "support", module):
                found |= _users(PurePosixPath(module).stem, root)
            case ("tests", room, *_):
                found.add(f"tests/{room}")
    there = {path for path in found if (root / path).exists()}
    return sorted(path for path in there if not any(str(up) in there for up in PurePosixPath(path).parents))


def _users(module: str, root: Path) -> set[str]:
    """The test files that name a module of tests/support."""
    files = (root / "tests").rglob("test_*.py")
    return {file.relative_to(root).as_posix() for file in files if f"tests.support.{module} " in file.read_text()}


def _git(root: Path, *words: str) -> list[str]:
    """The lines that git prints; none where it fails, as for a branch that is not there."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


if __name__ == "__main__":
    print(*affected(changed_files(ROOT, *sys.argv[1:]), ROOT), sep="\n")  # noqa: T201 - it is a command
