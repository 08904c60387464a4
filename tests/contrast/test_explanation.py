"""Explanation: its JSON and back, whatever is in it; hostile JSON; its words; its HTML."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from html.parser import HTMLParser
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

import zomirror as zm
from tests.support.contrast_models import Affine
from zomirror.contrast import explanation_json as stored
from zomirror.features import Change

FOUND = zm.explain(
    Affine.draw(6, 3, seed=2),
    np.linspace(0.2, 0.8, 6),
    signed=True,
    budget=300,
    rng=0,
    feature_names=[f"f{i}" for i in range(6)],
    class_names=["ant", "bee", "cat"],
)
DOCUMENT = json.loads(FOUND.to_json())
NAMES = st.text(max_size=20)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@st.composite
def explanations(draw: Any) -> zm.Explanation:
    """Any explanation that could be: every shape, dtype, status, NaN and name."""
    shape = draw(st.sampled_from([(1,), (5,), (2, 3), (1, 4, 4), (3, 2, 2)]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    array = arrays(dtype, shape, elements=st.floats(-1e6, 1e6, width=32))
    classes = draw(st.integers(0, 5))
    scores = arrays(np.float64, classes, elements=NUMBERS)
    rows = draw(st.integers(0, 4))
    column = arrays(np.float64, rows, elements=NUMBERS)
    counts = arrays(np.int64, rows, elements=st.integers(0, 2**62))
    size = int(np.prod(shape))
    return zm.Explanation(
        kind=draw(st.sampled_from(["PP", "PN"])),
        valid=draw(st.booleans()),
        label=draw(st.integers(-1, classes - 1)),
        contrast_label=draw(st.integers(-1, classes - 1)),
        x=draw(array),
        x0=draw(array),
        perturbed=draw(array),
        scores_before=draw(scores),
        scores_after=draw(scores),
        margin=draw(NUMBERS),
        objective=draw(NUMBERS),
        l1_norm=draw(NUMBERS),
        l2_norm=draw(NUMBERS),
        nnz=draw(st.integers(0, size)),
        nfev=draw(st.integers(0, 2**70)),
        sent=draw(st.integers(0, 2**70)),
        seed=draw(st.integers(0, 2**64)),
        status=draw(st.sampled_from(list(zm.Status))),
        message=draw(st.text(max_size=40)),
        history=zm.result.History(draw(counts), draw(column), draw(column), draw(column), draw(column), draw(counts)),
        scale=np.asarray(draw(st.one_of(st.just(np.float64(2.5)), st.just(np.full(shape, 0.5, dtype))))),
        settings=draw(st.dictionaries(NAMES, st.one_of(st.none(), st.booleans(), st.integers(), NAMES), max_size=4)),
        feature_names=draw(st.one_of(st.none(), st.tuples(*[NAMES] * size))),
        class_names=draw(st.one_of(st.none(), st.tuples(*[NAMES] * classes))),
    )


@settings(max_examples=30)
@given(explanations())
def test_json_keeps_everything(e: zm.Explanation) -> None:
    text = e.to_json()
    back = zm.Explanation.from_json(text)
    for item in fields(e):
        before, after = getattr(e, item.name), getattr(back, item.name)
        if isinstance(before, np.ndarray):
            assert before.dtype == after.dtype
            assert before.shape == after.shape
            np.testing.assert_array_equal(before, after)
        elif item.name not in ("history", "settings"):
            assert before == after or (before != before and after != after), item.name
    assert back.to_json() == text
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@settings(max_examples=60)
@given(st.data())
def test_one_wrong_value_is_a_sentence(data: Any) -> None:
    """Whatever stands in the place of one value, the text is read or refused; it never does anything else."""
    document = json.loads(FOUND.to_json())
    name = data.draw(st.sampled_from([item.name for item in fields(zm.Explanation)]))
    anything = st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(max_size=5),
            st.sampled_from([10**400, "x" * 9999]),
        ),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
        max_leaves=5,
    )
    value = document[name]
    if isinstance(value, dict) and value and data.draw(st.booleans()):
        value[data.draw(st.sampled_from(sorted(value)))] = data.draw(anything)
    else:
        document[name] = data.draw(anything)
    try:
        e = zm.Explanation.from_json(json.dumps(document))
    except zm.errors.DataError as error:
        complaint = str(error)
    else:
        assert e.words()
        assert zm.Explanation.from_json(e.to_json()).to_json() == e.to_json()
        return
    assert 20 < len(complaint) < 400, "a hostile text cannot flood the message"


def put(**values: Any) -> str:
    return json.dumps(DOCUMENT | values)


def array(**values: Any) -> Any:
    return DOCUMENT["x"] | values


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{}", "got bytes"),
        (None, "got NoneType"),
        ("", "expected JSON text"),
        ("{", "expected JSON text"),
        ("[" * 100_000, "expected JSON text"),
        ("[]", "expected the format"),
        ('{"format": "zomirror explanation 2"}', "expected the format"),
        (json.dumps({k: v for k, v in DOCUMENT.items() if k != "nnz"}), "without nnz"),
        (put(x=array(dtype="object")), "float32, float64, int64"),
        (put(x=array(dtype="O8")), "float32, float64, int64"),
        (put(x=array(shape=[2**40, 2**40, 0])), "as many numbers as the shape"),
        (put(x=array(shape=[7])), "as many numbers as the shape"),
        (put(x=array(shape=[-1, -6])), "integers >= 0"),
        (put(x=array(shape=[1] * 100 + [6])), "at most 32"),
        (put(x=array(shape=[1.5])), "integers >= 0"),
        (put(x=array(data=["os.system"] * 6)), "instead of a number"),
        (put(x=array(data=[10**400] * 6)), "OverflowError"),
        (put(x=array(shape=[2, 3])), "of one shape"),
        (put(x0=array(data=["nan"] * 6)), "finite x0"),
        (put(scale=array(data=[0.0] * 6)), "scale > 0"),
        (put(scores_before=DOCUMENT["x"]), "two vectors of scores"),
        (put(label=3), "label in -1..2, got 3"),
        (put(contrast_label=-2), "contrast_label in -1..2"),
        (put(label=True), "instead of an integer"),
        (put(nfev=1.5), "instead of an integer"),
        (put(valid=1), "int instead of bool"),
        (put(kind="XX"), "kind PP or PN"),
        (put(status="WON"), "expected status"),
        (put(margin="inf "), "instead of a number"),
        (put(message=["a"]), "list instead of str"),
        (put(settings=[]), "list instead of dict"),
        (put(feature_names=["a"]), "6 feature_names, got 1"),
        (put(feature_names="abcdef"), "str instead of list"),
        (put(class_names=[1, 2, 3]), "int instead of str"),
        (put(history=DOCUMENT["history"] | {"f": array()}), "differ in length"),
        (put(history={}), "expected history"),
    ],
)
def test_what_is_not_an_explanation_is_refused(text: Any, words: str) -> None:
    with pytest.raises(zm.errors.DataError, match=words):
        zm.Explanation.from_json(text)


def test_a_text_that_is_too_long_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MAX_CHARACTERS", 100)
    with pytest.raises(zm.errors.DataError, match="at most 100 characters"):
        zm.Explanation.from_json(FOUND.to_json())


def test_what_was_read_cannot_be_written_to() -> None:
    back = zm.Explanation.from_json(FOUND.to_json())
    with pytest.raises(ValueError, match="read-only"):
        back.x[0] = 1


def test_words() -> None:
    assert FOUND.valid
    label, other = FOUND.name_of(FOUND.label), FOUND.name_of(FOUND.contrast_label)
    assert {label, other} < {"ant", "bee", "cat"}
    several = replace(FOUND, nnz=3)
    assert (
        several.words() == f"classified {label} because 3 features are as they are: changed, the class would be {other}"
    )
    assert "1 feature is as it is" in replace(FOUND, nnz=1).words()
    pp = replace(FOUND, kind="PP", nnz=2)
    assert pp.words() == f"classified {label} because of 2 features, which alone are enough"
    assert "1 feature, which alone is enough" in replace(pp, nnz=1).words()
    failed = replace(FOUND, valid=False, message="why")
    assert failed.words() == f"PN of {label}: why"
    assert "an unknown class" in replace(failed, label=-1).words()


def test_top_lists_the_features_by_their_part_of_the_range() -> None:
    x = np.array([0.0, 100.0, -1.0, 2.0, 0.0, 0.5])
    scale = np.array([1.0, 1000.0, 1.0, 10.0, 1.0, 1.0])
    e = replace(FOUND, x=x, scale=scale)
    assert e.top() == [("f2", -1.0), ("f5", 0.5), ("f3", 2.0), ("f1", 100.0)]
    assert e.top(1) == [("f2", -1.0)]
    assert replace(e, feature_names=None).top(1) == [("2", -1.0)]


def test_names_can_be_given_later() -> None:
    plain = replace(FOUND, feature_names=None, class_names=None)
    assert plain.name_of(1) == "1"
    named = plain.named(class_names=list("abc"))
    assert named.name_of(1) == "b"
    assert named.feature_names is None
    with pytest.raises(zm.errors.ArgumentError, match="expected 3 class_names, got 2"):
        plain.named(class_names=["a", "b"])


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '" onerror="alert(1)', "a & b", "$\\frac{1}{0}$", "line\nbreak\x07", "$"]
)
def test_html_shows_names_and_runs_none(name: str) -> None:
    e = replace(FOUND, class_names=(name, name, name), feature_names=(name,) * 6)
    page = Page()
    page.feed(e._repr_html_())
    assert [tag for tag, _ in page.tags] == ["figure", "img", "p"]
    image = page.tags[1][1]
    assert set(image) == {"alt", "src"}
    assert re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/=]+", image["src"] or "")
    assert page.words == image["alt"] == e.words()


def test_changes_name_each_feature_that_moved_largest_first() -> None:
    moved = FOUND.changes
    assert len(moved) == FOUND.nnz
    values = dict(zip(FOUND.feature_names or (), FOUND.x0.tolist(), strict=True))
    after = dict(zip(FOUND.feature_names or (), FOUND.perturbed.tolist(), strict=True))
    assert all(one.before == values[one.name] and one.after == after[one.name] for one in moved)
    sizes = [abs(one.after - one.before) for one in moved]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    "inputs",
    [
        ("not bad", "bad"),
        ({"age": 30, "job": "none", "car": None, "x": 1.5}, {"age": 31, "job": "any", "car": True, "x": float("inf")}),
    ],
    ids=["text", "row"],
)
def test_texts_and_rows_survive_json(inputs: tuple[Any, Any]) -> None:
    changes = (Change("job", "none", "any"), Change("x", 1.5, 2.5))
    one = replace(FOUND, x0=inputs[0], perturbed=inputs[1], space="table", listed=changes)
    back = zm.Explanation.from_json(one.to_json())
    assert (back.x0, back.perturbed, back.changes) == (inputs[0], inputs[1], changes)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("space", "cube", "a space among"),
        ("x0", {"text": "a"}, "of one kind"),
        ("x0", {"row": {"a": [1]}}, "x0 as to_json writes it"),
        ("listed", [["a", 1]], "listed as to_json writes it"),
        ("listed", [["a", 1, {}]], "listed as to_json writes it"),
        ("labels", {"dtype": "float64", "shape": [1], "data": [0.5]}, "labels that are integers"),
    ],
    ids=["space", "text", "row", "pair", "value", "labels"],
)
def test_hostile_inputs_changes_and_labels_are_refused(field: str, value: Any, says: str) -> None:
    with pytest.raises(zm.errors.DataError, match=says):
        zm.Explanation.from_json(json.dumps(DOCUMENT | {field: value}))
