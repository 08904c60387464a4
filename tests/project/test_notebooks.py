"""The notebooks run from top to bottom, and print what is stored in them, up to the digits."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import zomirror as zm

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.ipynb"))


def run_cell(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What the cell prints, and the value of its last line, as a notebook shows it."""
    body, last = ast.parse(source).body, None
    if body and isinstance(body[-1], ast.Expr):
        last, body = ast.Expression(body[-1].value), body[:-1]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102
        value = None if last is None else eval(compile(last, "cell", "eval"), names)  # noqa: S307
    return out.getvalue(), value


def stored(cell: Any, kind: str) -> str:
    """What the cell holds of a kind of output: printed text, or the page of its value."""
    if kind == "stream":
        return "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
    return "".join("".join(output.get("data", {}).get(kind, "")) for output in cell["outputs"])


def without_digits(text: str) -> list[str]:
    return re.sub(r"[\d,.]+", "#", text).split()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    # The digits do not count, the words do.
    monkeypatch.setattr(zm, "explain", partial(zm.explain, budget=600))
    minimize = zm.minimize
    monkeypatch.setattr(zm, "minimize", lambda *given, **options: minimize(*given, **options | {"budget": 6_000}))
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            printed, value = run_cell("".join(cell["source"]), names)
            assert without_digits(printed) == without_digits(stored(cell, "stream")), f"cell {number} prints {printed}"
            shown = hasattr(value, "_repr_html_")
            assert shown == bool(stored(cell, "text/html")), f"cell {number} shows {value!r}"
            assert not shown or value._repr_html_().startswith("<figure>")


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["explain_digits", "tune_simulator"]
