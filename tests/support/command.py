"""The command line called in this process, a toy module to call it on, and pictures to give it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from zomirror.cli import app

COMMAND = [sys.executable, "-m", "zomirror"]

# Class 1 wants the first feature high, class 0 wants it low.
TOY = """
import time
import numpy as np

def predict(batch):
    flat = batch.reshape(len(batch), -1)
    return np.stack([0.5 - flat[:, 0], flat[:, 0] - 0.5], axis=1) * 4

def never(batch):
    return np.stack([np.ones(len(batch)), np.zeros(len(batch))], axis=1)

def broken(batch):
    raise OSError("the disk is full of \\x1b[31mred")

def slowly(batch):
    time.sleep(0.02)
    return predict(batch)

def quadratic(points):
    return ((points - 0.25) ** 2)[:, :3].sum(axis=1)

def one(point):
    return float(quadratic(point[None])[0])

def announcing(points):
    open("asked", "w").close()
    time.sleep(0.05)
    return quadratic(points)

def slow_quadratic(points):
    time.sleep(0.02)
    return quadratic(points)

def bad(points):
    return np.full(len(points), np.nan)

number = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory with the toy module in it; modules that are imported from it go with it."""
    (tmp_path / "toy_model.py").write_text(TOY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def call(*words: object, code: int = 0) -> Any:
    """Run the command in this process and check its exit code."""
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="zomirror")
    assert result.exit_code == code, result.output + (repr(result.exception) if result.exception else "")
    return result


def picture(path: Path, *, size: tuple[int, int] = (6, 6), mode: str = "L", value: Any = 51) -> Path:
    Image.new(mode, size, value).save(path)
    return path


@contextmanager
def begun(words: list[str], here: Path, until: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a process that has come so far as to make the file `until`; killed at the end if it is alive."""
    with subprocess.Popen(
        [*COMMAND, *words], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        end = time.monotonic() + 120
        try:
            while not (here / until).exists():
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < end, f"no {until} after two minutes"
                time.sleep(0.02)
            yield process
        finally:
            process.kill()
