"""Words of a text: what is left out, what the model gets, and what is refused in one sentence."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import zomirror as zm
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

GOOD, BAD = {"good": 2.0, "great": 3.0, "not": -4.0}, {"bad": 2.5, "dull": 1.5}


def mood(texts: list[str]) -> np.ndarray:
    """Scores of (bad, good) by counting words."""
    rows = []
    for text in texts:
        words = text.lower().replace(",", " ").replace(".", " ").split()
        rows.append([sum(BAD.get(w, 0) for w in words) + 0.5, sum(GOOD.get(w, 0) for w in words)])
    return np.array(rows)


def test_the_words_that_keep_and_that_change_the_class() -> None:
    text = "The film was dull, but the actors were great and the music was good."
    kept = zm.explain(mood, text, kind="PP")
    assert (kept.label, kept.valid, [one.name for one in kept.changes]) == (1, True, ["great"])
    assert kept.perturbed == ", great."
    changed = zm.explain(mood, text, kind="PN")
    assert (changed.contrast_label, changed.valid) == (0, True)
    assert {one.name for one in changed.changes} == {"great", "good"}
    assert "dull" in changed.perturbed
    back = zm.Explanation.from_json(kept.to_json())
    assert (back.x0, back.perturbed, back.changes) == (text, kept.perturbed, kept.changes)


def test_a_text_is_put_together_from_its_words() -> None:
    place = zm.Words().place("One two,  three-four. Don't!", "PP")
    assert place.names == ("One", "two", "three-four", "Don't")
    assert place.perturbed(np.ones(4)) == "One two,  three-four. Don't!"
    assert place.perturbed(np.array([0.0, 1, 0, 1])) == "two, . Don't!"
    masked = zm.Words(absent="[MASK]").place("One two", "PP")
    assert masked.perturbed(np.array([0.0, 1])) == "[MASK] two"
    assert masked.inputs(np.eye(2)).shape == (2, 1)


def test_words_may_be_replaced_by_candidates() -> None:
    text = "a good film"
    found = zm.explain(mood, text, features=zm.Words(replace={"good": "dull", "film": "movie", "a": "the"}))
    assert found.valid
    assert found.perturbed.count("dull") == 1
    assert found.changes == (("good", "good", "dull"),)


def test_the_users_tokens() -> None:
    place = zm.Words(split=lambda text: text.split("/")).place("a b/c/d", "PN")
    assert place.names == ("a b", "c", "d")
    assert place.perturbed(np.array([0.0, 1, 0])) == "a b//d"


def test_short_texts_against_all_subsets() -> None:
    rng = np.random.default_rng(0)
    vocabulary = [*GOOD, *BAD, "film", "plot", "music", "the"]
    gaps = []
    for _ in range(120):
        text = " ".join(rng.choice(vocabulary, 10))
        scores = mood([text])[0]
        if scores[1] <= scores[0]:
            continue
        found = zm.explain(mood, text, kind="PP")
        words = text.split()
        least = next(
            size
            for size in range(1, 11)
            if any(np.argmax(mood([" ".join(some)])[0]) == 1 for some in itertools.combinations(words, size))
        )
        assert found.valid
        gaps.append(found.nnz - least)
    assert len(gaps) > 10
    assert np.mean(np.array(gaps) <= 1) >= 0.9
    assert min(gaps) >= 0


def test_a_scikit_learn_pipeline_and_a_transformers_answer() -> None:
    pipeline = pytest.importorskip("sklearn.pipeline")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts = ["good great film", "great good music", "bad dull film", "dull bad plot"]
    model = pipeline.make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 1, 0, 0])
    found = zm.explain(model, "the film was good, the music great, the plot dull", kind="PN")
    assert found.valid
    assert {"good", "great"} & {one.name for one in found.changes}
    assert "dull" in found.perturbed

    def answers(batch: list[str]) -> list[list[dict[str, Any]]]:
        return [[{"label": "POSITIVE", "score": s[1]}, {"label": "NEGATIVE", "score": s[0]}] for s in mood(batch)]

    assert zm.explain(answers, "great but dull", kind="PP").label == 1


def test_runs_resume_and_many_texts_are_explained_together(tmp_path: Any) -> None:
    texts = ["good film, great plot", "bad film but good music", "dull, dull film"]
    first = zm.explain_many(mood, texts, kind="PN", run_dir=tmp_path / "many", lockstep=3)
    again = zm.explain_many(mood, texts, kind="PN", run_dir=tmp_path / "many", workers=1)
    assert [one.perturbed for one in first] == [one.perturbed for one in again]


@pytest.mark.parametrize(
    ("x0", "given", "error", "says"),
    [
        ("... !", {}, ArgumentError, "at least two words, got 0 in '... !'"),
        (3, {}, ArgumentTypeError, r"x0 to be a text \(str\), got int"),
        ("a b", {"absent": None}, ArgumentTypeError, "absent to be a str"),
        ("a b", {"split": " "}, ArgumentTypeError, "split to be a function"),
        ("a b", {"split": lambda text: ["b", "a"]}, ArgumentError, "words of the text in their order, got 'a'"),
        ("a b", {"replace": {"c": "d"}}, ArgumentError, "at least two words of `replace`, got 0"),
        ("a b", {"replace": ["c"]}, ArgumentTypeError, "replace to map words"),
    ],
    ids=["none", "number", "absent", "split", "order", "replace", "list"],
)
def test_what_is_no_text_is_refused_before_any_query(x0: Any, given: dict[str, Any], error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        zm.explain(lambda texts: 1 / 0, x0, features=zm.Words(**given))


def test_a_model_that_rejects_masked_text_is_told_what_to_do() -> None:
    def strict(texts: list[str]) -> np.ndarray:
        if not all(text.strip() for text in texts):
            raise ValueError("empty text")
        return mood(texts)

    with pytest.raises(OracleError, match="rejects texts without words, give another absent="):
        zm.explain(strict, "good great", kind="PP")
    with pytest.raises(ArgumentTypeError, match="function of a list of texts, or a fitted pipeline, got int"):
        zm.explain(3, "good great")


def test_the_classes_of_a_pipeline_have_its_names() -> None:
    texts = ["good room", "lovely room", "rude staff", "dirty staff"] * 3
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100)).fit(texts, ["up", "up", "down", "down"] * 3)
    found = zm.explain(model, "the lovely room and the staff", kind="PN", target="down")
    assert (found.valid, found.class_names) == (True, ("down", "up"))
    assert found.words().startswith("classified up; with 1 of 6 words")
    assert found.words().endswith("left out it would be down")
