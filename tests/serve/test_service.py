"""Requests are queued, bounded, stopped at their deadlines, and answered with what was found."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import OracleError
from zomirror.schema.explainer import Explainer
from zomirror.serve.service import RefusalError, Service

TEXT = " ".join([*(f"word{i}" for i in range(80)), "bad"])


def scores(texts: Any) -> Any:
    """Class 1 while the word bad is there."""
    return np.array([[0.0, 1.0] if "bad" in text else [1.0, 0.0] for text in texts])


def slow(texts: Any) -> Any:
    time.sleep(0.15)
    return scores(texts)


def ask(service: Service, document: Any) -> Any:
    try:
        return asyncio.run(service.answer(document))
    finally:
        service.close()


def refused(service: Service, document: Any) -> RefusalError:
    with pytest.raises(RefusalError) as caught:
        ask(service, document)
    return caught.value


def test_each_instance_is_explained_and_told() -> None:
    told: list[zm.Explanation] = []
    found = ask(Service(Explainer(scores, "words"), told=told.append), {"instances": [TEXT, "a bad day"]})
    [first, second] = found["explanations"]
    assert first["changes"] == [{"name": "bad", "before": "bad", "after": ""}]
    assert second["perturbed"] == "a day"
    assert [one.sent for one in told] == [first["sent"], second["sent"]]


def test_several_answers_stand_in_the_first() -> None:
    frame = {"a": np.arange(20.0), "b": np.arange(20.0)[::-1]}

    def model(rows: Any) -> Any:
        height = np.maximum(np.asarray(rows["a"]), np.asarray(rows["b"])) - 15.5
        return np.stack([-height, height], axis=1)

    service = Service(Explainer(model, "table", frame=frame))
    found = ask(service, {"instances": [{"a": 3, "b": 2}], "parameters": {"answers": 2}})
    [document] = found["explanations"]
    names = [[change["name"] for change in one["changes"]] for one in (document, *document["others"])]
    assert sorted(names) == [["a"], ["b"]]


def assert_ended_early(one: dict[str, Any]) -> None:
    """The search was stopped, with a valid answer or before there was one."""
    assert one["status"] == ("CALLBACK" if one["valid"] else "NOT_FOUND")
    assert one["nfev"] < zm.explain(scores, TEXT).nfev


def test_the_deadline_ends_the_search_and_the_next_one_is_not_begun() -> None:
    body = {"instances": [TEXT, TEXT], "parameters": {"deadline": 0.6}}
    error = refused(Service(Explainer(slow, "words")), body)
    assert (error.status, error.sentence[:12]) == (503, "the deadline")
    assert error.found is not None
    [one] = error.found
    assert_ended_early(one)
    assert error.document["explanations"] == error.found


def test_closing_ends_what_is_under_way() -> None:
    service = Service(Explainer(slow, "words"))

    async def interrupted() -> Any:
        asyncio.get_running_loop().call_later(0.2, service.close)
        return await service.answer({"instances": [TEXT]})

    [one] = asyncio.run(interrupted())["explanations"]
    assert_ended_early(one)


def test_more_than_may_wait_is_refused_at_once() -> None:
    service = Service(Explainer(slow, "words"), searches=1, waiting=1)

    async def three() -> list[Any]:
        asked = [service.answer({"instances": [TEXT], "parameters": {"deadline": 0.3}}) for _ in range(3)]
        found: list[Any] = await asyncio.gather(*asked, return_exceptions=True)
        return found

    found = asyncio.run(three())
    assert [one.status for one in found if isinstance(one, RefusalError) and one.status == 429] == [429]
    assert service.under_way == 0
    service.close()


def test_a_model_that_dies_leaves_what_was_found() -> None:
    asked = [0]

    def mortal(texts: Any) -> Any:
        asked[0] += len(texts)
        if asked[0] > 12:
            raise RuntimeError("the power is out")
        return scores(texts)

    error = refused(Service(Explainer(mortal, "words")), {"instances": [TEXT]})
    assert (error.status, error.sentence[:17]) == (503, "the model failed:")
    assert error.found is not None
    [partial] = error.found
    assert partial["valid"]
    assert "bad" in [change["name"] for change in partial["changes"]]
    assert 0 < partial["nfev"] <= 12


def test_a_model_that_fails_at_once_has_found_nothing() -> None:
    def without_result(texts: Any) -> Any:
        raise OracleError("no") from None

    assert refused(Service(Explainer(without_result, "words")), {"instances": [TEXT]}).status == 503


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], "expected an object"),
        ({"parameters": {}}, "expected an object"),
        ({"instances": [TEXT], "extra": 1}, "got 'extra': leave it out"),
        ({"instances": TEXT}, "expected instances as a list"),
        ({"instances": [TEXT] * 17}, "1 to 16"),
        ({"instances": [TEXT], "parameters": [1]}, "expected parameters as an object, got list"),
        ({"instances": [TEXT], "parameters": {"deadline": "soon"}}, "expected deadline to be a number"),
        ({"instances": [TEXT], "parameters": {"deadline": 61}}, "expected deadline <= 60 seconds"),
        ({"instances": [TEXT], "parameters": {"wish": 1}}, "got 'wish'"),
        ({"instances": [7]}, "expected a text, got 7"),
    ],
)
def test_what_cannot_be_read_is_refused(document: Any, sentence: str) -> None:
    error = refused(Service(Explainer(scores, "words")), document)
    assert error.status == 400
    assert sentence in error.sentence
