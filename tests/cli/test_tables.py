"""Rows of a .csv with texts on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import call
from zomirror import Explanation

CODE = """
import numpy as np


def scores(rows):
    worth = rows["income"] / 1000 - 3 + (rows["housing"] == "own") - rows["children"] / 10
    return np.stack([-worth, worth], axis=1)
"""
ROWS = (
    "income,children,housing,verdict\n2100,2,rent,no\n3600,0,own,yes\n2900,1,rent,no\n4000,3,own,yes\n1800,,free,no\n"
)
SHARED = ("--drop", "verdict", "--class-names", "refused,granted", "--budget", 300)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("landlord.py").write_text(CODE)
    Path("homes.csv").write_text(ROWS)
    Path("numbers.csv").write_text("a,b\n1,2\n3,4\n")
    Path("plain.csv").write_text("1,2\n3,4\n")
    return tmp_path


def test_the_answer_is_a_row_that_exists(here: Path) -> None:
    result = call("explain", "landlord:scores", "homes.csv:0,2", *SHARED, "--fixed", "children", "--target", "granted",
                  "--kind", "PN")  # fmt: skip
    assert "homes.csv:0: refused; granted if " in result.stdout
    assert "column" in result.stdout
    one = Explanation.from_json(Path("explanations/homes-0-PN.json").read_text())
    assert one.x0 == {"income": 2100, "children": 2.0, "housing": "rent"}
    assert one.perturbed["children"] == 2.0
    assert one.perturbed["housing"] in ("rent", "own", "free")
    assert "--fixed children" in one.settings["command"]
    assert Path("explanations/overview.png").is_file()


def test_both_kinds_and_a_page(here: Path) -> None:
    found = json.loads(call("explain", "landlord:scores", "homes.csv:1", *SHARED, "--json").stdout)
    assert [(one["kind"], one["valid"], one["label_name"]) for one in found] == [
        ("PP", True, "granted"),
        ("PN", True, "granted"),
    ]
    call("report", "explanations")
    assert "Granted because of" in Path("report.html").read_text()


def test_several_answers_have_a_file_each(here: Path) -> None:
    found = json.loads(
        call("explain", "landlord:scores", "homes.csv:0", *SHARED, "--kind", "PN", "--answers", 2, "--json").stdout
    )
    files = [Path(one["file"]).name for one in found]
    assert files == ["homes-0-PN.json", "homes-0-PN-2.json"][: len(found)]
    sets = [{change.name for change in Explanation.from_json(Path(one["file"]).read_text()).changes} for one in found]
    assert len(sets) == len({frozenset(one) for one in sets})


def test_an_attack_on_a_row(here: Path) -> None:
    result = call("attack", "landlord:scores", "homes.csv:0", *SHARED, "--increasing", "income")
    assert "homes.csv:0: refused; granted if " in result.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["homes.csv:0", "--drop", "verdict", "--fixed", "incme"], "in fixed (income, children, housing), got incme"),
        (["homes.csv:0", "--drop", "verdict", "--categorical", "x"], "expected --categorical to name columns"),
        (["homes.csv:0", "--drop", "verdict", "--bounds", "0,1"], "expected no --bounds for homes.csv:0"),
        (["homes.csv:0", "--drop", "verdict", "--target", "x", "--kind", "PN"], "does not name its classes"),
        (["plain.csv:0", "--fixed", "a"], "expected column names in the first line of plain.csv"),
        (["homes.csv:9", "--drop", "verdict"], "expected rows in 0..4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_words_are_refused(here: Path, words: list[str], says: str) -> None:
    assert says in call("explain", "landlord:scores", *words, code=2).stderr


def test_arrays_have_no_columns(here: Path) -> None:
    import numpy as np

    np.save("x.npy", np.zeros(3))
    assert (
        "expected rows of a .csv with --fixed"
        in call("explain", "landlord:scores", "x.npy", "--fixed", "a", code=2).stderr
    )
