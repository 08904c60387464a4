"""`zomirror serve` and `zomirror studio`: what is offered, and what is missing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.support.command import COMMAND, call, here, picture
from zomirror.cli.arguments import ExplainerOptions, SpaceChoice
from zomirror.cli.offer import Offer
from zomirror.errors import ArgumentError
from zomirror.schema.remote_rows import RemoteRows

__all__ = ["here"]

CODE = """
import numpy as np


def rows(frame):
    worth = frame["income"] / 1000 - 3
    return np.stack([-worth, worth], axis=1)


def photos(batch):
    light = batch.mean(axis=(1, 2, 3))
    return np.stack([light, 1 - light], axis=1)
"""


@pytest.fixture
def bank(here: Path) -> Path:
    Path("bank.py").write_text(CODE)
    Path("loans.csv").write_text("income,housing\n2100,rent\n3600,own\n2900,rent\n")
    Path("letter.txt").write_text("a short letter")
    picture(Path("small.png"), size=(20, 20))
    picture(Path("large.png"), size=(80, 80), mode="RGB", value=(9, 9, 9))
    return here


def offer(model: str, *data: str, **typed: Any) -> Offer:
    return Offer.of(ExplainerOptions(model=model, data=list(data), **typed))


def test_lenet_comes_with_its_digits(here: Path) -> None:
    found = offer("lenet")
    assert (found.space, found.shape, len(found.inputs)) == ("vector", (1, 28, 28), 20)
    assert found.explainer().most == 10_000


def test_the_data_say_what_may_change(bank: Path) -> None:
    table = offer("bank:rows", "loans.csv", fixed=["housing"], class_names="no,yes", budget=200).explainer()
    assert (table.space, table.most, table.class_names) == ("table", 200, ("no", "yes"))
    [one] = table.explain({"income": 2100, "housing": "rent"}, {})
    assert one.name_of(one.contrast_label) == "yes"
    assert [change.name for change in one.changes] == ["income"]
    assert offer("bank:rows", "letter.txt").space == "words"
    small, large = offer("bank:photos", "small.png"), offer("bank:photos", "large.png")
    assert (small.space, small.shape) == ("vector", (1, 20, 20))
    assert (large.space, large.shape) == ("regions", (3, 80, 80))
    assert offer("bank:photos", "large.png", features=SpaceChoice.VECTOR).space == "vector"
    assert offer("bank:photos", features=SpaceChoice.WINDOWS, shape="2,50").shape == (2, 50)


def test_rows_and_texts_are_sent_to_an_address_as_they_are(bank: Path) -> None:
    found = offer("http://127.0.0.1:9/v1", "loans.csv")
    assert isinstance(found.model.classifier, RemoteRows)
    assert found.model.name == "http://127.0.0.1:9/v1"
    assert isinstance(offer("http://127.0.0.1:9", features=SpaceChoice.WORDS).model.classifier, RemoteRows)
    assert not isinstance(offer("http://127.0.0.1:9", shape="3").model.classifier, RemoteRows)
    with pytest.raises(ArgumentError, match="expected no --remote-model for rows"):
        offer("http://127.0.0.1:9", "loans.csv", remote_model="x")


def test_rules_of_columns_need_columns(bank: Path) -> None:
    with pytest.raises(ArgumentError, match=r"expected --fixed with the rows of a \.csv"):
        offer("bank:rows", "letter.txt", fixed=["x"]).explainer()


def test_without_the_extra_a_sentence_says_what_to_install(here: Path) -> None:
    """The tests have no kserve; uvicorn is hidden."""
    said = call("serve", "lenet", code=2)
    assert said.stderr.strip().endswith("pip install 'zomirror[serve]'")
    code = "import sys; sys.modules['uvicorn'] = None; from zomirror.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "studio", "lenet"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "error: expected the package uvicorn for this, got none: pip install 'zomirror[studio]'"
    )


def test_the_studio_answers_at_the_address_it_prints_until_ctrl_c(here: Path) -> None:
    command = [*COMMAND, "studio", "lenet", "--budget", "200"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        found = re.match(r"open (http://127\.0\.0\.1:\d+/[\w-]{32}/)", process.stdout.readline())
        assert found is not None
        answer = urllib3.request("GET", found[1], retries=False)
        assert (answer.status, answer.data[:15]) == (200, b"<!doctype html>")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) in ((0, ""), (130, "stopped by Ctrl-C\n"))
