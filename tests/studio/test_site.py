"""The requests of the studio's page, without a browser."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import urllib3

from tests.support.studio_server import studio
from zomirror.schema.explainer import Explainer
from zomirror.studio.material import Material
from zomirror.studio.session import Session

TEXT = "good day and bad night"


def scores(texts: Any) -> Any:
    """Class 1 while the word bad is there."""
    time.sleep(0.002)
    return np.array([[0.0, 1.0] if "bad" in text else [1.0, 0.0] for text in texts])


@pytest.fixture
def session() -> Session:
    return Session(Explainer(scores, "words", class_names=("fine", "poor")), Material([("first", TEXT)]), "words")


@pytest.fixture
def address(session: Session) -> Iterator[str]:
    with studio(session) as url:
        yield url


def call(url: str, body: Any = None) -> tuple[int, Any]:
    method = "GET" if body is None else "POST"
    answer = urllib3.request(method, url, json=body, retries=False, timeout=30)
    return answer.status, answer.json()


def watched(url: str) -> list[dict[str, Any]]:
    answer = urllib3.request("GET", url, retries=False, timeout=60)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line[6:]) for line in answer.data.decode().splitlines() if line.startswith("data: ")]


def test_a_search_from_the_first_query_to_the_report(address: str, session: Session) -> None:
    status, state = call(address + "state")
    assert (status, state["space"], state["classes"]) == (200, "words", ["fine", "poor"])
    assert [one["name"] for one in state["parameters"]][:2] == ["kind", "target"]
    assert call(address + "samples/0") == (200, {"text": TEXT})
    assert call(address + "samples/1") == (404, {"error": "no such sample"})
    given = {"input": {"text": TEXT}, "name": "mine", "parameters": {"target": "fine", "budget": 200}}
    status, found = call(address + "explain", given)
    assert status == 200
    steps = watched(f"{address}progress/{found['search']}")
    last = steps[-1]
    assert last["state"] == "done"
    assert [one["nfev"] for one in steps] == sorted(one["nfev"] for one in steps)
    [answer] = last["answers"]
    assert (answer["input"], answer["valid"], answer["contrast_name"]) == ("mine", True, "fine")
    assert ["bad", True] in answer["marked"]
    report = urllib3.request("GET", address + "report")
    assert "attachment" in report.headers["content-disposition"]
    assert b"mine" in report.data
    assert call(address + "forget", {"number": answer["number"]}) == (200, {})
    assert call(address + "report")[0] == 400
    assert session.answers == {}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ([], "expected an object with input and parameters"),
        ({"input": {"text": TEXT, "row": {}}}, "expected input with one of"),
        ({"input": {"sample": 7}}, "expected a sample in 0..0"),
        ({"input": {"sample": True}}, "expected a sample"),
        ({"input": {"picture": "no base64!"}}, "expected a picture as a PNG file in base64"),
        ({"input": {"picture": "aGVsbG8="}}, "expected a picture, got"),
        ({"input": {"text": TEXT}, "parameters": []}, "expected an object with input and parameters"),
    ],
)
def test_what_cannot_be_read_is_refused(body: Any, sentence: str, address: str) -> None:
    status, found = call(address + "explain", body)
    assert status == 400
    assert sentence in found["error"]


def test_json_that_is_none_is_refused(address: str) -> None:
    for body in (b"{", b"[" * 100_000, b"\xff"):
        answer = urllib3.request("POST", address + "explain", body=body, headers={"Content-Type": "application/json"})
        assert (answer.status, answer.json()["error"][:13]) == (400, "expected JSON")


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [({"budget": 5}, "expected budget >= 100"), ({"spell": 1}, "got 'spell'"), ({"target": "grand"}, "got 'grand'")],
)
def test_wrong_parameters_end_the_search_with_a_sentence(parameters: Any, sentence: str, address: str) -> None:
    _, found = call(address + "explain", {"input": {"sample": 0}, "parameters": parameters})
    last = watched(f"{address}progress/{found['search']}")[-1]
    assert last["state"] == "failed"
    assert sentence in last["error"]


def test_one_search_at_a_time_which_can_be_stopped() -> None:
    stopped = threading.Event()
    calls: list[int] = []

    def waiting(texts: Any) -> Any:
        """From its third call on it answers when the search has been asked to stop."""
        calls.append(len(texts))
        if len(calls) > 2:
            stopped.wait(30)
        return scores(texts)

    text = " ".join(f"word{i}" for i in range(300)) + " bad"
    given = {"input": {"text": text}, "parameters": {"budget": 10_000}}
    with studio(Session(Explainer(waiting, "words"), Material([("first", TEXT)]), "words")) as address:
        _, found = call(address + "explain", given)
        status, second = call(address + "explain", given)
        assert (status, second["error"][:27]) == (400, "expected no search under wa")
        assert call(f"{address}progress/{found['search'] + 1}")[0] == 404
        assert call(address + "stop", {}) == (200, {})
        stopped.set()
        last = watched(f"{address}progress/{found['search']}")[-1]
    assert last["state"] == "done"
    [one] = last["answers"]
    assert one["status"] == ("CALLBACK" if one["valid"] else "NOT_FOUND")
    assert one["nfev"] < 1_000


def test_the_fifth_answer_replaces_the_first(session: Session) -> None:
    for i in range(5):
        session.start({"input": {"sample": 0}, "name": f"number {i}"})
        session.wait(30)
    assert sorted(session.answers) == [2, 3, 4, 5]
    assert session.answers[2].settings["input"] == "number 1"


def test_a_model_that_fails_is_told_with_what_was_found() -> None:
    asked, text = [0], " ".join([*(f"word{i}" for i in range(60)), "bad"])

    def mortal(texts: Any) -> Any:
        asked[0] += len(texts)
        if asked[0] > 20:
            raise RuntimeError("the power is out")
        return scores(texts)

    session = Session(Explainer(mortal, "words"), Material())
    session.start({"input": {"text": text}, "parameters": {}})
    session.wait(30)
    assert session.progress["state"] == "failed"
    assert "the power is out" in session.progress["error"]
    assert [one["valid"] for one in session.progress["partial"]] == [True]
