"""Every example of the documentation runs, and prints what the page says it prints.

The convention, page by page in one namespace and one empty directory:

- a ``python`` block is executed; where the next thing on the page is a ``text`` block, that is its output;
- in a ``console`` block the lines after ``$ `` are run by a shell, and the lines below are their output;
  a command that is meant to fail says so: ``$ command || echo "exit code $?"``;
  what is ``zomirror`` and plain words needs no shell and is called in this process, which has imported it already;
- ``...`` in an output stands for anything; a ``sh`` block is shown only (installing, cloning).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from typer.testing import CliRunner

from zomirror.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SIMPLE = re.compile(r"zomirror( [\w./:,=-]+| \"[\w ]+\")+")
LANGUAGES = {"python", "text", "console", "sh", "toml", "json", "bibtex", "makefile"}
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its first line, and whether it follows the one before at once."""

    language: str
    text: str
    line: int
    adjacent: bool


def blocks(markdown: str) -> list[Block]:
    found, end = [], 0
    for match in FENCE.finditer(markdown):
        language = match["info"].strip().split(" ")[0]
        line = markdown.count("\n", 0, match.start()) + 2
        adjacent = not markdown[end : match.start()].strip()
        found.append(Block(language, dedent(match["body"]), line, adjacent))
        end = match.end()
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether the output is the shown one, `...` standing for anything; trailing spaces do not count."""

    def clean(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())

    pattern = ".*?".join(re.escape(part) for part in clean(shown).split("..."))
    return re.fullmatch(pattern, clean(printed), re.DOTALL) is not None


def run_python(block: Block, page: str, names: dict[str, Any]) -> str:
    out = io.StringIO()
    # The blank lines make a traceback point at the line of the page.
    code = compile("\n" * (block.line - 1) + block.text, page, "exec")
    with contextlib.redirect_stdout(out):
        exec(code, names)  # noqa: S102
    return out.getvalue()


def run_here(command: str) -> tuple[int, str]:
    """Call `zomirror` with the words of the command; the modules that it finds in this directory go with the page."""
    before = set(sys.modules)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "path", [*sys.path])
            done = CliRunner().invoke(app, shlex.split(command)[1:], prog_name="zomirror")
    finally:
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(Path.cwd())):
                del sys.modules[name]
    return done.exit_code, done.stdout + done.stderr


def run_shell(command: str) -> tuple[int, str]:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment, timeout=240, check=False
    )
    return done.returncode, done.stdout + done.stderr


def run_console(block: Block) -> None:
    """Run each `$ command` and compare what it prints with the lines below it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        code, printed = run_here(command) if SIMPLE.fullmatch(command) else run_shell(command)
        assert code == 0, f"$ {command}\nends with {code} and prints\n{printed}"
        assert matches(shown, printed), f"$ {command}\nprints\n{printed}\nbut the page shows\n{shown}"


def run_page(markdown: str, page: str) -> int:
    """Execute a page's blocks in order; the number of those that ran."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed, executed = "", 0
    previous = None
    for block in blocks(markdown):
        if block.language == "python":
            printed = run_python(block, page, names)
            executed += 1
        elif block.language == "console":
            run_console(block)
            executed += 1
        elif block.language == "text" and block.adjacent and previous == "python":
            assert matches(block.text, printed), f"{page}:{block.line} shows\n{block.text}\nbut it prints\n{printed}"
        previous = block.language
    return executed


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page_runs_as_shown(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("COLUMNS", "100")
    run_page(path.read_text(), path.name)


EXTRAS = {"sklearn": "sklearn", "pandas": "tables", "distributed": "dask", "torch": "torch"}
"""Packages that examples import, and the extras that install them."""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_names_the_extra_that_its_examples_need(path: Path) -> None:
    markdown = path.read_text(encoding="utf-8")
    code = "\n".join(block.text for block in blocks(markdown) if block.language == "python")
    needed = {extra for package, extra in EXTRAS.items() if re.search(rf"^ *(?:import|from) {package}\b", code, re.M)}
    named = {extra for names in re.findall(r"zomirror\[([\w,]+)\]", markdown) for extra in names.split(",")}
    assert needed <= named


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_says_what_it_is(path: Path) -> None:
    """A fence without a known language would be an example that nobody runs."""
    text = path.read_text()
    found = blocks(text)
    assert len(re.findall(r"^ *(?:```|~~~)", text, re.MULTILINE)) == 2 * len(found), "a fence is not closed"
    assert [b for b in found if b.language not in LANGUAGES] == []


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_relative_links_lead_somewhere(path: Path) -> None:
    """The site's own links are checked when it is built; these two files stand outside it."""
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", path.read_text())
    assert [t for t in targets if not (ROOT / t).exists()] == []


PAGE = """Words.

```python
print(1 + 1)
```

```text
{output}
```
"""


@pytest.mark.parametrize("output", ["2", "...", "2   "])
def test_a_true_output_is_accepted(output: str) -> None:
    assert run_page(PAGE.format(output=output), "page") == 1


@pytest.mark.parametrize("output", ["3", "22", "", "2\n2"])
def test_a_false_output_is_found(output: str) -> None:
    with pytest.raises(AssertionError, match="but it prints"):
        run_page(PAGE.format(output=output), "page")


def test_a_console_block_is_run() -> None:
    good = "```console\n$ echo a; echo b\na\nb\n$ true\n$ seq 3\n1\n...\n```\n"
    assert run_page(good, "page") == 1
    with pytest.raises(AssertionError, match="but the page shows"):
        run_page(good.replace("\nb\n", "\nc\n"), "page")
    with pytest.raises(AssertionError, match="ends with 1"):
        run_page(good.replace("true", "false"), "page")


def test_an_error_points_at_the_line_of_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("# Title\n\n- item\n\n  ```python\n  x = 0\n  1 / x\n  ```\n", "page.md")
    last = caught.traceback[-1]
    assert (Path(last.path).name, last.lineno + 1) == ("page.md", 7)
