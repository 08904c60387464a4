"""Inputs and parameters in JSON types give the explanation that the call in Python gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support import loan_table, photograph, review_texts
from zomirror import models
from zomirror.datasets import digits
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.schema.explainer import MOST_CHARACTERS, Explainer
from zomirror.schema.response import response

SEVEN = (digits().images[14].astype(np.float32) / 255)[None]
LENET = zm.onnx_classifier(models.path("lenet"))
ROW = {"income": 21_000, "children": 2, "rate": 0.2, "age": 40, "housing": "rent", "purpose": "car", "phone": True}


def same(found: list[zm.Explanation], expected: zm.Explanation) -> None:
    assert [one.to_json() for one in found] == [expected.to_json()]


def test_a_picture_by_pixels() -> None:
    found = Explainer(LENET, shape=(1, 28, 28)).explain(SEVEN.tolist(), {"budget": 200, "seed": 2, "signed": True})
    same(found, zm.explain(LENET, SEVEN, budget=200, rng=2, signed=True))


def test_a_picture_with_a_mask() -> None:
    mask = np.zeros((28, 28), int)
    mask[:14] = 1
    [found] = Explainer(LENET, shape=(1, 28, 28)).explain(SEVEN.tolist(), {"budget": 300, "fixed": mask.tolist()})
    assert found.valid
    assert not found.x[:, :14].any()
    same([found], zm.explain(LENET, SEVEN, budget=300, fixed=mask[None].astype(bool)))


def test_a_normalised_picture_is_given_in_raw_pixels() -> None:
    def model(batch: Any) -> Any:
        return LENET((batch * np.float32(0.5) + np.float32(0.25)).astype(np.float32))

    explainer = Explainer(model, shape=(1, 28, 28), mean=(0.25,), std=(0.5,))
    [found] = explainer.explain(SEVEN.tolist(), {"budget": 200})
    mean, std = np.full(SEVEN.shape, 0.25), np.full(SEVEN.shape, 0.5)
    x0 = ((SEVEN - mean) / std).astype(np.float32)
    same([found], zm.explain(model, x0, budget=200, mean=mean, std=std, baseline=(-mean / std).astype(np.float32)))


def test_regions_and_a_mask() -> None:
    x0 = photograph.photograph()
    explainer = Explainer(photograph.scores, "regions", shape=x0.shape)
    same(explainer.explain(x0.tolist(), {}), zm.explain(photograph.scores, x0, features=zm.Regions()))
    mask = np.zeros((photograph.SIDE, photograph.SIDE), int)
    mask[40:44] = 1
    [found] = explainer.explain(x0.tolist(), {"fixed": mask.tolist()})
    assert found.valid
    assert not ((found.perturbed != found.x0).any(axis=0) & (mask == 1)).any()
    [pixels] = explainer.explain(x0.tolist(), {"regions": "pixels", "budget": 100})
    assert pixels.space == "vector"


def test_a_row_with_the_rules_of_the_operator() -> None:
    frame = loan_table.loans()
    explainer = Explainer(
        loan_table.scores, "table", frame=frame, defaults={"fixed": ["age"]}, class_names=("no", "yes")
    )
    found = explainer.explain(ROW, {"increasing": ["income"], "target": "yes", "answers": 2})
    table = zm.Table(frame, fixed=["age"], increasing=["income"])
    expected = zm.explain(loan_table.scores, ROW, features=table, class_names=("no", "yes"), target="yes", answers=2)
    assert [one.to_json() for one in found] == [one.to_json() for one in expected]
    assert explainer.table is not None
    assert explainer.table.fixed == ("age",)
    [alone] = explainer.explain(list(ROW.values()), {"kind": "PP", "answers": 3})
    assert alone.kind == "PP"


def test_a_text_and_a_series() -> None:
    same(
        Explainer(review_texts.scores, "words").explain(review_texts.REVIEW, {"kind": "PP"}),
        zm.explain(review_texts.scores, review_texts.REVIEW, kind="PP"),
    )

    def late(batch: Any) -> Any:
        high = np.asarray(batch)[:, 30:].mean(axis=1)
        return np.stack([-high, high], axis=1)

    x0 = np.concatenate([np.zeros(30), np.ones(18)])
    explainer = Explainer(late, "windows", most=500)
    same(explainer.explain(x0.tolist(), {"length": 4}), zm.explain(late, x0, features=zm.Windows(length=4)))


@pytest.mark.parametrize(
    ("space", "given", "sentence"),
    [
        ("vector", "seven", "expected an array of numbers as nested lists, got 'seven'"),
        ("vector", [[1, 2], [3]], "expected an array of numbers"),
        ("vector", [], "expected an array of numbers"),
        ("vector", [[1, 2]], r"expected an input of shape \(1, 28, 28\), got \(1, 2\)"),
        ("vector", np.full((1, 28, 28), 1e300).tolist(), "expected finite numbers"),
        ("words", 3, "expected a text, got 3"),
        ("words", "x" * (MOST_CHARACTERS + 1), "expected a text of at most"),
        ("table", 3, "expected a row as an object of columns"),
        ("table", ROW | {"age": [1]}, r"expected plain values in a row, got \[1\]"),
        ("table", ROW | {"more": 1}, "expected x0 with the columns of the reference rows"),
    ],
)
def test_inputs_that_cannot_be_read_are_refused(space: str, given: Any, sentence: str) -> None:
    frame = loan_table.loans() if space == "table" else None
    shape = (1, 28, 28) if space == "vector" else None
    with pytest.raises((ArgumentError, ArgumentTypeError), match=sentence):
        Explainer(loan_table.scores, space, frame=frame, shape=shape).explain(given, {})


@pytest.mark.parametrize("fixed", [[[1]], [["a"]], [[1, 0], [1]], np.ones((28, 28), int).tolist()])
def test_a_mask_must_fit(fixed: Any) -> None:
    with pytest.raises(ArgumentError, match="expected fixed"):
        Explainer(LENET, shape=(1, 28, 28)).explain(SEVEN.tolist(), {"fixed": fixed})


def test_what_an_operator_gets_wrong_is_named() -> None:
    with pytest.raises(ArgumentError, match="expected features among vector"):
        Explainer(LENET, "pixels")
    with pytest.raises(ArgumentError, match="expected reference rows"):
        Explainer(LENET, "table")
    with pytest.raises(ArgumentError, match="got 'fixd'"):
        Explainer(LENET, defaults={"fixd": 1})
    with pytest.raises(ArgumentError, match="expected budget <= 500, which is the most here, got 600"):
        Explainer(LENET, most=500).explain(SEVEN.tolist(), {"budget": 600})
    assert Explainer(LENET).explain(SEVEN.tolist(), {})[0].settings["budget"] == 2_000, "as explain() itself"
    assert Explainer(LENET, most=150).explain(SEVEN.tolist(), {})[0].nfev <= 150


def test_a_response_is_json_that_names_the_change() -> None:
    import json

    [one] = Explainer(review_texts.scores, "words", class_names=("bad", "good")).explain(review_texts.REVIEW, {})
    found = json.loads(json.dumps(response(one), allow_nan=False))
    assert found["perturbed"] == one.perturbed
    assert (found["label_name"], found["contrast_name"]) == ("bad", "good")
    assert [(change["name"], change["before"]) for change in found["changes"]] == [
        (change.name, change.before) for change in one.changes
    ]
    assert found["words"].endswith("it would be good.")


def test_only_a_table_has_columns() -> None:
    assert Explainer(LENET).table is None
    with pytest.raises(ArgumentTypeError, match="expected parameters as an object"):
        Explainer(LENET).explain([1.0], [])


def test_regions_need_a_picture() -> None:
    with pytest.raises(ArgumentError, match="expected a picture for regions"):
        Explainer(LENET, "regions").explain([1.0, 2.0], {"fixed": [[1]]})
