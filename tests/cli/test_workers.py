"""--workers on the command line: the words and files of one process."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command import call, here, picture

__all__ = ["here"]


def untimed(said: str) -> str:
    """The words without the seconds, which differ from call to call."""
    return re.sub(r", [\d.]+ s:", ", s:", said)


@pytest.mark.parametrize("command", [("explain", "--kind", "PN"), ("attack",)], ids=lambda command: command[0])
def test_workers_share_inputs_and_give_answers_in_order(here: Path, command: tuple[str, ...]) -> None:
    for name, value in (("a.png", 51), ("b.png", 90)):
        picture(Path(name), value=value)
    common = [*command, "toy_model:predict", "a.png", "b.png", "--budget", 200]
    alone = call(*common, "--out", "alone").stdout
    shared = call(*common, "--out", "shared", "--workers", 2, "--run-dir", "run").stdout
    assert untimed(shared).replace("shared", "alone") == untimed(alone)
    files = sorted(path.name for path in (here / "alone").glob("*.json"))
    assert len(files) == 2
    for name in files:
        assert (here / "alone" / name).read_bytes() == (here / "shared" / name).read_bytes()
    again = call(*common, "--out", "shared", "--workers", 1, "--run-dir", "run").stdout  # finished runs are found
    assert untimed(again) == untimed(shared)


def test_workers_share_the_points_of_a_function(here: Path) -> None:
    common = ["minimize", "toy_model:quadratic", "--dim", 4, "--budget", 200, "--bounds", "0,1", "--json"]
    one, two = (json.loads(call(*common, "--workers", n, "--block-rows", 3).stdout) for n in (1, 2))
    assert one == two


@pytest.mark.parametrize("text", ["many", "0", "tcp://host:1", "dask://"])
def test_workers_that_are_none_are_refused(text: str, here: Path) -> None:
    result = call("minimize", "toy_model:quadratic", "--dim", 4, "--workers", text, code=2)
    assert "expected" in result.output
