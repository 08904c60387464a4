"""Explanations of models that fail, answer nonsense or cannot take the input: a sentence each, and nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support import onnx_models
from tests.support.contrast_models import Affine, Counted, label_of

D = 12
MODEL = Affine.draw(D)
X = np.random.default_rng(1).uniform(0.1, 0.9, size=(5, D))
BUDGET = 600


class Failing:
    """Raises at the batch with this number (from the end, if negative)."""

    def __init__(self, at: int, error: Exception) -> None:
        self.at, self.error, self.count = at, error, 0

    def __call__(self, batch: Any) -> Any:
        self.count += 1
        if self.count == self.at:
            raise self.error
        return MODEL(batch)


def batches_of(kind: str) -> int:
    counted = Counted(MODEL)
    zm.explain(counted, X[0], kind=kind, budget=BUDGET, rng=0)
    return len(counted.batches)


@pytest.mark.parametrize("kind", ["PP", "PN"])
@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_a_model_that_raises_loses_nothing(kind: str, where: str) -> None:
    total = batches_of(kind)
    at = {"first": 1, "middle": total // 2, "last": total}[where]
    model = Counted(Failing(at, RuntimeError("out of memory")))
    with pytest.raises(zm.errors.OracleError, match="out of memory") as caught:
        zm.explain(model, X[0], kind=kind, budget=BUDGET, rng=0)
    error = caught.value
    assert isinstance(error.__cause__, RuntimeError)
    partial = error.result
    assert isinstance(partial, zm.Explanation)
    assert partial.status is zm.Status.ERROR
    assert "out of memory" in partial.message
    assert partial.sent == model.rows
    assert partial.nfev == model.rows - model.batches[-1]
    assert error.rows == range(partial.nfev, model.rows), "the queries that failed are named"
    assert zm.Explanation.from_json(partial.to_json()).to_json() == partial.to_json()
    assert partial.words()
    if where == "first":
        assert (partial.label, partial.contrast_label, partial.valid) == (-1, -1, False)
    if where == "last":
        assert partial.valid, "what was found before is there"
        assert (label_of(MODEL, partial.perturbed) == partial.label) == (kind == "PP")
        assert partial.contrast_label == -1, "its scores were not told any more"


@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_what_was_seen_before_a_failure_is_never_lost(kind: str) -> None:
    """At whatever batch the model fails, the answer is the best valid point of all that it had answered."""
    asked: list[Any] = []

    def remembered(batch: Any) -> Any:
        scores = MODEL(batch)
        asked.append((np.array(batch), scores))
        return scores

    whole = zm.explain(remembered, X[0], kind=kind, budget=BUDGET, rng=0)
    label, total = whole.label, len(asked)
    batches = list(asked)
    for at in range(3, total + 1, max(1, total // 12)):
        with pytest.raises(zm.errors.OracleError) as caught:
            zm.explain(Failing(at, RuntimeError("gone")), X[0], kind=kind, budget=BUDGET, rng=0)
        partial = caught.value.result
        points = np.concatenate([points for points, _ in batches[: at - 1]])
        scores = np.concatenate([scores for _, scores in batches[: at - 1]])
        rival = np.delete(scores, label, axis=1).max(axis=1)
        margins = rival - scores[:, label] if kind == "PP" else scores[:, label] - rival
        change = points if kind == "PP" else points - X[0]
        objective = np.maximum(margins, 0) + 0.1 * np.abs(change).sum(axis=1) + 0.075 * np.square(change).sum(axis=1)
        inside = (change >= -1e-12).all(axis=1) & (points <= 1 + 1e-12).all(axis=1)
        inside &= (points <= X[0] + 1e-12).all(axis=1) if kind == "PP" else True
        finished = margins < 0
        if partial.valid:
            assert (label_of(MODEL, partial.perturbed) == label) == (kind == "PP")
        if at > total - 3 and (finished & inside).any():
            assert partial.valid
            assert partial.objective <= objective[finished & inside].min() + 1e-9, f"batch {at} of {total}"


def test_a_failure_at_a_later_level_keeps_the_earlier_ones() -> None:
    counted = Counted(MODEL)
    whole = zm.explain(counted, X[0], signed=True, search=3, budget=BUDGET, rng=0)
    assert whole.valid
    late = len(counted.batches) - 2
    with pytest.raises(zm.errors.OracleError) as caught:
        zm.explain(Failing(late, RuntimeError("gone")), X[0], signed=True, search=3, budget=BUDGET, rng=0)
    assert caught.value.result.valid
    assert label_of(MODEL, caught.value.result.perturbed) != caught.value.result.label


def test_one_input_that_fails_leaves_the_others() -> None:
    poison = X[2, 0]

    def model(batch: Any) -> Any:
        if (batch[:, 0] == poison).any():
            raise ValueError("not this one")
        return MODEL(batch)

    fixed = [0]  # so that the poisonous value is in every row of that input
    healthy = zm.explain_many(MODEL, X, fixed=fixed, budget=BUDGET, rng=3, progress=False)
    found = zm.explain_many(model, X, fixed=fixed, budget=BUDGET, rng=3, progress=False)
    assert [e.status is zm.Status.ERROR for e in found] == [False, False, True, False, False]
    assert "not this one" in found[2].message
    for i in (0, 1, 3, 4):
        assert found[i].valid
        np.testing.assert_array_equal(found[i].x, healthy[i].x)
        assert found[i].sent <= BUDGET


def test_inputs_that_all_fail_are_all_answered() -> None:
    def model(batch: Any) -> Any:
        raise OSError("gone")

    found = zm.explain_many(model, X, budget=BUDGET, rng=0, progress=False)
    assert [e.status for e in found] == [zm.Status.ERROR] * len(X)
    assert all("gone" in e.message for e in found)


def test_an_argument_that_does_not_fit_one_input_leaves_the_others() -> None:
    labels = [label_of(MODEL, x) for x in X]
    target = labels[0]
    assert len(set(labels)) > 1
    found = zm.explain_many(MODEL, X, target=target, signed=True, budget=BUDGET, rng=0, progress=False)
    for label, e in zip(labels, found, strict=True):
        if label == target:
            assert e.status is zm.Status.ERROR
            assert "target other than" in e.message
        else:
            assert e.valid
            assert e.contrast_label == target


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda batch: MODEL(batch)[:, 0], r"expected scores of shape \(1, classes >= 2\), got \(1,\)"),
        (lambda batch: MODEL(batch)[:, :1], r"two columns \(-s, s\)"),
        (lambda batch: np.ones((len(batch) + 1, 3)), "one row per input"),
        (lambda batch: np.ones((len(batch), 3, 2)), "one row per input"),
        (lambda batch: [[1, 2], [3]], "expected scores that numpy can read|expected scores of shape"),
        (lambda batch: [["a", "b"]] * len(batch), "expected real scores"),
        (lambda batch: np.ones((len(batch), 2), complex), "expected real scores"),
        (lambda batch: None, "expected scores"),
    ],
)
def test_scores_of_the_wrong_shape_or_kind(answer: Any, words: str) -> None:
    with pytest.raises(zm.errors.OracleError, match=words) as caught:
        zm.explain(answer, X[0], rng=0)
    assert caught.value.rows == range(1)
    assert caught.value.result.status is zm.Status.ERROR


def test_a_model_with_one_class_has_nothing_to_contrast() -> None:
    from sklearn.ensemble import RandomForestClassifier  # for this test alone: it takes a second

    forest = RandomForestClassifier(3, random_state=0).fit(X, np.zeros(len(X)))
    with pytest.raises(zm.errors.OracleError, match="a single class has nothing to contrast"):
        zm.explain(forest, X[0], rng=0)


@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_an_input_outside_the_bounds_costs_no_query(kind: str) -> None:
    model, x0 = Counted(MODEL), X[0].copy()
    x0[4] = 1.5
    with pytest.raises(
        zm.errors.ArgumentError, match=r"x0\[4\] = 1.5, bounds \[0, 1\]\): give the bounds of your data"
    ):
        zm.explain(model, x0, kind=kind)
    with pytest.raises(zm.errors.ArgumentError, match="input 1: expected x0 inside the bounds"):
        zm.explain_many(model, [X[1], x0], kind=kind, progress=False)
    assert model.rows == 0


def test_a_model_that_forgets_a_class_on_the_way() -> None:
    calls = Counted(MODEL)

    def model(batch: Any) -> Any:
        scores = calls(batch)
        return scores[:, :1] if len(calls.batches) == 7 else scores

    with pytest.raises(zm.errors.OracleError, match="classes >= 2") as caught:
        zm.explain(model, X[0], budget=BUDGET, rng=0)
    assert caught.value.result.nfev == sum(calls.batches[:6])


def test_nan_at_the_input() -> None:
    model = Counted(lambda batch: np.full((len(batch), 3), np.nan))
    e = zm.explain(model, X[0], rng=0)
    assert e.status is zm.Status.NONFINITE
    assert not e.valid
    assert (e.label, e.contrast_label) == (-1, -1)
    assert "[nan, nan, nan]" in e.message
    assert model.rows == e.nfev == 1
    assert zm.Explanation.from_json(e.to_json()).to_json() == e.to_json()


@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_nan_beside_the_descent_is_no_answer_and_ends_nothing(kind: str) -> None:
    """Local models and their answers do without the points that have no scores."""
    whole = Counted(MODEL)
    zm.explain(whole, X[0], kind=kind, budget=BUDGET, rng=0)
    last = max(i for i, rows in enumerate(whole.batches, 1) if rows > 1)
    for at in range(last - 8, last + 1):
        calls = Counted(MODEL)

        def model(batch: Any, calls: Counted = calls, at: int = at) -> Any:
            scores = calls(batch)
            if len(calls.batches) == at:
                scores[len(batch) // 2] = np.nan
            return scores

        e = zm.explain(model, X[0], kind=kind, budget=BUDGET, rng=0)
        assert e.valid
        assert calls.rows == e.nfev <= BUDGET
        assert np.isfinite(e.x).all()


@pytest.mark.parametrize("kind", ["PP", "PN"])
@pytest.mark.parametrize("row", [0, -1])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_on_the_way_ends_the_search_with_the_best_so_far(kind: str, row: int, bad: float) -> None:
    calls = Counted(MODEL)

    def model(batch: Any) -> Any:
        scores = calls(batch)
        if len(calls.batches) == (25 if kind == "PP" else 4):  # in the middle of a descent
            scores[row] = bad
        return scores

    e = zm.explain(model, X[0], kind=kind, budget=BUDGET, rng=0)
    assert calls.rows == e.nfev <= BUDGET
    assert np.isfinite(e.x).all()
    assert e.status is zm.Status.NONFINITE
    assert "not finite" in e.message
    if e.valid:
        assert (label_of(MODEL, e.perturbed) == e.label) == (kind == "PP")


def test_nan_while_refining_only_costs_the_refinement() -> None:
    total = batches_of("PN")
    calls = Counted(MODEL)

    def model(batch: Any) -> Any:
        scores = calls(batch)
        return np.full_like(scores, np.nan) if total - 4 < len(calls.batches) < total else scores

    e = zm.explain(model, X[0], budget=BUDGET, rng=0)
    assert e.valid
    assert np.isfinite(e.x).all()
    assert calls.rows == e.nfev <= BUDGET


def test_impossible_classes_of_log_probabilities_are_no_fault() -> None:
    def model(batch: Any) -> Any:
        scores = MODEL(batch)
        return np.concatenate([scores, np.full((len(scores), 1), -np.inf)], axis=1)

    e = zm.explain(model, X[0], signed=True, budget=BUDGET, rng=0)
    assert e.valid
    assert e.scores_after[-1] == -np.inf
    assert zm.Explanation.from_json(e.to_json()).to_json() == e.to_json()


def test_a_model_cannot_write_into_what_we_count_on() -> None:
    def model(batch: Any) -> Any:
        batch[:] = 0
        return MODEL(batch)

    with pytest.raises(zm.errors.OracleError, match="read-only"):
        zm.explain(model, X[0], rng=0)


def test_the_input_is_not_written_to() -> None:
    x0 = X[0].copy()
    e = zm.explain(MODEL, x0, budget=BUDGET, rng=0)
    np.testing.assert_array_equal(x0, X[0])
    x0[:] = 0
    np.testing.assert_array_equal(e.x0, X[0])
    with pytest.raises(ValueError, match="read-only"):
        e.x0[0] = 1


@pytest.fixture
def onnx(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_models.linear(weights=np.eye(4)[:, :3]))
    return path


def test_an_onnx_file_is_a_model(onnx: Path) -> None:
    x0 = np.array([0.2, 0.8, 0.4, 0.6], np.float32)
    by_path = zm.explain(onnx, x0, signed=True, budget=BUDGET, rng=0)
    assert by_path.valid
    assert label_of(zm.onnx_classifier(onnx), by_path.perturbed) != by_path.label
    assert zm.explain(str(onnx), x0, signed=True, budget=BUDGET, rng=0).to_json() == by_path.to_json()


@pytest.mark.parametrize("shape", [(3,), (1, 4), (5,)])
def test_an_input_of_the_wrong_shape(onnx: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(zm.errors.ArgumentError, match="expected a batch of shape"):
        zm.explain(onnx, np.full(shape, 0.5), rng=0)
    with pytest.raises(zm.errors.ArgumentError, match="expected a batch of shape"):
        zm.explain_many(onnx, [np.full(shape, 0.5)] * 3, rng=0, progress=False)
    found = zm.explain_many(onnx, [np.full(4, 0.4), np.full(shape, 0.5)], rng=0, budget=200, progress=False)
    assert found[1].status is zm.Status.ERROR
    assert found[0].status is not zm.Status.ERROR


def test_an_onnx_file_that_is_not_one(tmp_path: Path) -> None:
    path = tmp_path / "poem.onnx"
    path.write_text("Shall I compare thee to a summer's day?")
    with pytest.raises(zm.errors.DataError, match="which is not one"):
        zm.explain(path, X[0])
    with pytest.raises(zm.errors.DataError, match="no file at"):
        zm.explain(tmp_path / "missing.onnx", X[0])
    with pytest.raises(zm.errors.ArgumentError, match=r"expected the path of an \.onnx file"):
        zm.explain("model.txt", X[0])


def test_an_onnx_file_that_needs_two_inputs(tmp_path: Path) -> None:
    path = tmp_path / "two.onnx"
    path.write_bytes(onnx_models.linear(inputs=2))
    with pytest.raises(zm.errors.ArgumentError, match="wrap it in a function that fills in the others"):
        zm.explain(path, X[0, :4])


def test_what_is_no_model_at_all() -> None:
    with pytest.raises(zm.errors.ArgumentTypeError, match="expected a model, got"):
        zm.explain(3, X[0])  # no function, no path


class Noisy:
    """Scores that differ from call to call: dropout left on, or noise."""

    def __init__(self, sd: float, dropout: float = 0.0) -> None:
        self.sd, self.dropout, self.rng, self.rows = sd, dropout, np.random.default_rng(0), 0

    def __call__(self, batch: Any) -> Any:
        self.rows += len(batch)
        kept = self.rng.random(batch.shape) >= self.dropout
        return MODEL(batch * kept) + self.sd * self.rng.normal(size=(len(batch), 3))


@pytest.mark.parametrize("model", [(1e-3, 0.0), (0.1, 0.0), (1.0, 0.0), (0.0, 0.5)], ids=str)
@pytest.mark.parametrize("task", ["PN", "PP", "attack"])
@pytest.mark.timeout(60)
def test_a_model_that_answers_differently_each_time_ends_within_the_budget(
    task: str, model: tuple[float, float]
) -> None:
    """A search in which nothing can be asked any more ends, whatever was seen of the best point."""
    for seed in range(4):
        noisy = Noisy(*model)
        if task == "attack":
            one = zm.attack(noisy, X[seed], budget=300, rng=seed)
        else:
            one = zm.explain(noisy, X[seed], kind=task, budget=300, rng=seed)
        assert one.nfev == noisy.rows <= 300
