"""`zomirror bench`: run the benchmarks of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

import zomirror
from zomirror.cli.show import say
from zomirror.errors import ArgumentError, ZomirrorError


def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Benchmarks to run. Default: all.")] = None,
    *,
    list_: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
) -> None:
    """Run the benchmarks of a checkout of zomirror; the installed package has none."""
    found = {path.stem: path for path in sorted(_folder().glob("[a-z]*.py"))}
    unknown = [name for name in names or [] if name not in found]
    if unknown:
        raise ArgumentError(f"expected benchmarks among {', '.join(found)}, got {unknown[0]!r}")
    if list_:
        say("\n".join(found))
        return
    failed = []
    for name in names or found:
        say(f"== {name}")
        done = subprocess.run([sys.executable, str(found[name])], cwd=found[name].parent.parent, check=False)  # noqa: S603
        failed += [name] if done.returncode else []
    if failed:
        raise ZomirrorError(f"these benchmarks failed: {', '.join(failed)}")


def _folder() -> Path:
    """The benchmarks of the checkout around the working directory, or of the one zomirror is imported from."""
    here, package = Path.cwd(), Path(zomirror.__file__).resolve()
    for root in (here, *here.parents, *package.parents[2:3]):
        project = root / "pyproject.toml"
        if (root / "benchmarks").is_dir() and project.is_file() and 'name = "zomirror"' in project.read_text():
            return root / "benchmarks"
    raise ZomirrorError(f"expected to be run in a checkout of zomirror, which holds the benchmarks, got {str(here)!r}")
