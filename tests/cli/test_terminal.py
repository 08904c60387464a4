"""The command line in a real pseudo-terminal: live progress, Ctrl-C, narrow windows, no colour."""

from __future__ import annotations

import io
import math
import re
import sys
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from tests.support import terminal
from zomirror.contrast.meter import Meter

MODEL = """
import time
import numpy as np

def predict(batch):
    time.sleep(0.01)
    flat = batch.reshape(len(batch), -1)
    return np.stack([0.5 - flat[:, 0], flat[:, 0] - 0.5], axis=1) * 4

def quadratic(points):
    time.sleep(0.02)
    return ((points - 0.25) ** 2).sum(axis=1)
"""
ZOMIRROR = [sys.executable, "-m", "zomirror"]
EXPLAIN = [*ZOMIRROR, "explain", "slow_model:predict", "a.png", "--kind", "PN", "--budget", "2000"]
MINIMIZE = [*ZOMIRROR, "minimize", "slow_model:quadratic", "--dim", "3", "--budget", "500"]
COLOUR = re.compile(r"\x1b\[[0-9;]+m")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "slow_model.py").write_text(MODEL)
    Image.new("L", (6, 6), 51).save(tmp_path / "a.png")
    return tmp_path


def test_progress_is_shown_on_a_terminal_and_then_gone(here: Path) -> None:
    seen = terminal.run(EXPLAIN, here, columns=140)
    assert seen.code == 0
    full = [frame for frame in seen.frames if "best valid" in frame and "s left" in frame]
    assert full, seen.text
    for part in ("explaining 1 input, F ", "best valid ", " of 2,000 queries, ", "/s, ", " s left", "━"):
        assert part in full[-1]
    assert COLOUR.search(seen.raw)
    assert seen.raw.rindex("\x1b[?25h") > seen.raw.rindex("\x1b[?25l"), "the cursor is given back"
    for answer in ("a.png: classified 0; with 1 pixel added", "pictures and .json files are in explanations"):
        wiped = seen.raw.rindex("\x1b[2K", 0, seen.raw.index(answer))
        before = terminal.ESCAPES.sub("", seen.raw[wiped : seen.raw.index(answer)]).strip()
        assert "queries," not in before, "the line is wiped away before the answer"


def test_ctrl_c_ends_cleanly_with_130(here: Path) -> None:
    seen = terminal.run([*EXPLAIN[:-1], "1000000"], here, when="best valid", keys=b"\x03")
    assert seen.code == 130
    assert seen.text.rstrip().endswith("stopped by Ctrl-C")
    assert "Traceback" not in seen.text
    assert seen.raw.rindex("\x1b[?25h") > seen.raw.rindex("\x1b[?25l"), "the cursor is given back"
    assert not (here / "explanations").exists()


def test_a_narrow_window_gets_a_shorter_line(here: Path) -> None:
    columns = 30
    seen = terminal.run(MINIMIZE, here, columns=columns)
    assert seen.code == 0
    live = seen.frames[: next(i for i, frame in enumerate(seen.frames) if frame.startswith("the budget"))]
    assert any("/500" in frame for frame in live)
    assert max(map(len, live)) <= columns


def test_no_colour_where_none_is_wanted(here: Path) -> None:
    plain = terminal.run(MINIMIZE, here, columns=140, environment={"NO_COLOR": "1"})
    assert plain.code == 0
    assert "of 500 queries" in plain.text
    assert not COLOUR.search(plain.raw)


def test_a_terminal_that_cannot_move_its_cursor_sees_the_answer_only(here: Path) -> None:
    dumb = terminal.run(MINIMIZE, here, environment={"TERM": "dumb"})
    assert dumb.code == 0
    assert "\x1b" not in dumb.raw
    assert dumb.text.startswith("the budget of queries is used up")


def test_json_shows_no_progress_even_on_a_terminal(here: Path) -> None:
    seen = terminal.run([*MINIMIZE, "--json"], here)
    assert seen.code == 0
    assert "\x1b" not in seen.raw
    assert seen.text.startswith("{")


@pytest.mark.parametrize("columns", [5, 8, 12, 20, 30, 40, 60, 80, 100, 200])
@pytest.mark.parametrize(
    ("used", "objective", "best"), [(0, math.nan, math.nan), (123, 1.5, math.nan), (9_999, 1e-7, 12.25)]
)
def test_the_line_fits_whatever_the_window(columns: int, used: int, objective: float, best: float) -> None:
    meter = Meter("PN of a picture with [a name] in brackets", 10_000)
    meter.update(used, objective, best)
    stream = io.StringIO()
    Console(file=stream, width=columns, force_terminal=True, color_system=None).print(meter)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 1
    assert len(lines[0].rstrip()) <= columns
    if columns == 200:
        assert "[a name]" in lines[0]
        assert f"{used:,} of 10,000 queries" in lines[0]
