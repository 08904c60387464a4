"""The files of a study: outcomes survive them, and anything else is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.experiments import falling, made
from zomirror.errors import DataError
from zomirror.paper.store import read_study, write_study


def test_outcomes_survive_their_files(tmp_path: Path) -> None:
    path = tmp_path / "mnist-printed.json"
    runs = [made("adaexpmd", falling(0.1), image=i) for i in range(3)]
    runs += [made("psgd-2.5", falling(0.2), upscale=2, shared=True, network="mine")]
    write_study(path, reversed(runs))
    assert sorted(read_study(path), key=lambda one: one.key) == sorted(runs, key=lambda one: one.key)
    first = path.read_bytes()
    write_study(path, runs)
    assert path.read_bytes() == first, "the order of the runs does not matter"
    assert list(read_study(tmp_path / "none.json")) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": "other", "runs": []}',
        '{"format": "zomirror reproduction 1", "runs": 3}',
        '{"format": "zomirror reproduction 1", "runs": [{"key": "a"}]}',
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mnist-printed.json"
    path.write_text(text)
    with pytest.raises(DataError, match="expected"):
        list(read_study(path))
