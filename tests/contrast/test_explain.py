"""explain() and explain_many(): valid, within the budget, repeatable, and the same in company as alone."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.contrast_models import Affine, Counted, Curved, label_of

D = 24


def probabilities(batch: Any) -> Any:
    scores = np.exp(Affine.draw(D)(batch))
    return scores / scores.sum(axis=1, keepdims=True)


MODELS: dict[str, Any] = {"affine": Affine.draw(D), "curved": Curved.draw(D), "probabilities": probabilities}
X = np.random.default_rng(4).uniform(0.1, 0.9, size=(6, D))
BUDGET = 400


def is_valid(model: Any, e: zm.Explanation) -> bool:
    return (label_of(model, e.perturbed) == e.label) == (e.kind == "PP")


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("kind", ["PP", "PN"])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_valid_is_so_when_the_model_is_asked_outside(name: str, kind: str, signed: bool) -> None:
    for i, x0 in enumerate(X[:2]):
        model = Counted(MODELS[name])
        e = zm.explain(model, x0, kind=kind, signed=signed, budget=BUDGET, rng=i)
        asked = model.rows
        assert e.valid
        assert is_valid(model.predict, e)
        assert e.label == label_of(model.predict, x0)
        assert e.contrast_label == label_of(model.predict, e.perturbed)
        np.testing.assert_array_equal(e.scores_after, model.predict(e.perturbed[None])[0])
        np.testing.assert_array_equal(e.scores_before, model.predict(x0[None])[0])
        assert asked == e.nfev == e.sent <= BUDGET, "counted on the side of the model"
        change = e.perturbed - x0 if kind == "PN" else e.perturbed
        np.testing.assert_allclose(change, e.x, atol=1e-15)
        assert (e.perturbed >= 0).all()
        assert (e.perturbed <= 1).all()
        assert e.nnz == np.count_nonzero(e.x) > 0
        assert e.l1_norm == pytest.approx(np.abs(e.x).sum())
        assert e.l2_norm == pytest.approx(np.linalg.norm(e.x))
        if kind == "PN" and not signed:
            assert (e.x >= 0).all()


@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_the_objective_is_that_of_the_paper_at_the_point(kind: str) -> None:
    model = MODELS["curved"]
    e = zm.explain(model, X[0], kind=kind, l1=0.05, l2=0.2, kappa=0.3, budget=BUDGET, rng=0, loss="softplus")
    own, others = e.scores_after[e.label], np.delete(e.scores_after, e.label).max()
    margin = float(others - own if kind == "PP" else own - others)
    penalty = 0.05 * np.abs(e.x).sum() + 0.1 * (e.x @ e.x)
    assert e.margin == pytest.approx(margin)
    assert e.objective == pytest.approx(max(margin, -0.3) + penalty)


def test_the_best_valid_iterate_is_no_worse_than_any_that_was_measured() -> None:
    seen: list[tuple[float, float]] = []
    model = MODELS["curved"]
    e = zm.explain(model, X[1], budget=BUDGET, rng=0, callback=lambda glimpse: seen.append((glimpse.fun, glimpse.best)))
    assert e.objective <= np.nanmin([best for _, best in seen])
    assert len(e.history) == len(seen) > 10
    assert seen[-1][0] == e.objective, "the last one shown is the answer"


@pytest.mark.parametrize("options", [{"kind": "PP"}, {"kind": "PN"}, {"kind": "PN", "search": 3}])
def test_every_query_after_the_label_is_in_the_history(options: dict[str, Any]) -> None:
    counted = Counted(MODELS["curved"])
    e = zm.explain(counted, X[1], budget=BUDGET, rng=0, **options)
    ends = np.cumsum(counted.batches)
    assert set(e.history.nfev) <= set(ends)
    assert e.history.nfev[-1] == e.nfev
    assert e.history.fun[-1] == e.objective
    assert (np.diff(e.history.nfev) > 0).all()
    refined = np.isnan(e.history.eta)
    assert refined.any(), "refining, pruning and shrinking too"
    assert np.nanmin(e.history.fun) <= e.objective or "search" not in options


@pytest.mark.parametrize("budget", [100, 101, 137, 1200])
@pytest.mark.parametrize("options", [{"kind": "PP"}, {"kind": "PN"}, {"kind": "PN", "search": 3}])
def test_the_budget_is_never_exceeded(budget: int, options: dict[str, Any]) -> None:
    model = Counted(MODELS["affine"])
    e = zm.explain(model, X[2], budget=budget, rng=1, **options)
    assert model.rows == e.nfev <= budget


@pytest.mark.parametrize(
    "method", [zm.methods.zo_ada_expmd(batch_size=10), zm.methods.zo_psgd(eta=50.0, batch_size=10)]
)
@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_any_method_can_be_the_descent(kind: str, method: zm.methods.Method) -> None:
    model = Counted(MODELS["affine"])
    e = zm.explain(model, X[0], kind=kind, method=method, budget=BUDGET, rng=0)
    assert e.valid
    assert model.rows == e.nfev <= BUDGET
    assert "MirrorDescent" in str(e.settings["method"])


def test_a_budget_without_room_for_one_batch_is_spent_on_what_follows_the_descent() -> None:
    model = Counted(MODELS["affine"])
    e = zm.explain(model, X[0], kind="PP", method=zm.methods.zo_ada_expmd(batch_size=200), budget=150, rng=0)
    assert e.valid
    assert 100 < model.rows == e.nfev <= 150


@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_the_same_seed_gives_the_same_answer(kind: str) -> None:
    def once(seed: Any) -> str:
        return str(zm.explain(MODELS["curved"], X[3], kind=kind, budget=200, rng=seed).to_json())

    assert once(5) == once(5)
    assert once(np.random.default_rng(8)) == once(np.random.default_rng(8))
    drawn = zm.explain(MODELS["curved"], X[3], kind=kind, budget=200)
    assert once(drawn.seed) == drawn.to_json(), "the seed that was drawn is in the result"


@cache
def alone(kind: str, *seeds: int) -> list[str]:
    """The explanations of the first inputs, one by one."""
    asked = zip(X, seeds, strict=False)
    return [zm.explain(MODELS["curved"], x, kind=kind, budget=200, rng=seed).to_json() for x, seed in asked]


@pytest.mark.parametrize("lockstep", [1, 2, 50])
@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_in_company_as_alone(kind: str, lockstep: int) -> None:
    model = Counted(MODELS["curved"])
    many = zm.explain_many(model, X[:4], kind=kind, budget=200, rng=11, lockstep=lockstep, progress=False)
    assert model.rows == sum(e.nfev for e in many)
    assert [e.to_json() for e in many] == alone(kind, *(e.seed for e in many))
    assert len({e.seed for e in many}) == 4


def test_in_company_the_model_sees_larger_batches() -> None:
    model = Counted(MODELS["affine"])
    zm.explain_many(model, X, budget=300, rng=0, lockstep=6, progress=False)
    alone = Counted(MODELS["affine"])
    zm.explain_many(alone, X, budget=300, rng=0, lockstep=1, progress=False)
    assert len(model.batches) < len(alone.batches) / 3


def test_no_inputs_no_explanations() -> None:
    assert zm.explain_many(MODELS["affine"], []) == []


@pytest.mark.parametrize("shape", [(D,), (1, 4, 6), (3, 4, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shape_and_dtype_of_the_input_stay(shape: tuple[int, ...], dtype: Any) -> None:
    seen = set()

    def model(batch: Any) -> Any:
        seen.add((batch.shape[1:], batch.dtype.type))
        return MODELS["affine"](batch)

    e = zm.explain(model, X[0].reshape(shape).astype(dtype), budget=300, rng=0)
    assert seen == {(shape, dtype)}
    assert e.x.shape == e.perturbed.shape == shape
    assert e.x.dtype == e.perturbed.dtype == dtype


@pytest.mark.parametrize("kind", ["PP", "PN"])
def test_fixed_features_are_untouched(kind: str) -> None:
    fixed = np.arange(D) % 3 == 0
    e = zm.explain(MODELS["affine"], X[4], kind=kind, signed=True, fixed=fixed, budget=BUDGET, rng=0)
    assert e.valid
    np.testing.assert_array_equal(e.perturbed[fixed], X[4][fixed])


def test_fixed_features_are_untouched_to_the_last_bit_in_any_units() -> None:
    """baseline + (x0 - baseline) is not always x0 in floating point."""
    rng = np.random.default_rng(0)
    width = rng.uniform(0.01, 300.0, D)
    x0, baseline = width * rng.uniform(size=D), width * rng.uniform(size=D)
    fixed = np.arange(D) % 2 == 0
    assert (baseline + (x0 - baseline) != x0)[fixed].any()
    options: Any = {"bounds": (np.zeros(D), width), "baseline": baseline, "fixed": fixed, "budget": 300, "rng": 0}
    e = zm.explain(lambda batch: MODELS["affine"](batch / width), x0, kind="PP", **options)
    np.testing.assert_array_equal(e.perturbed[fixed], x0[fixed])


@pytest.mark.parametrize("target", [0, 1, 2])
def test_a_pn_reaches_the_target(target: int) -> None:
    label = label_of(MODELS["affine"], X[0])
    if target == label:
        with pytest.raises(zm.errors.ArgumentError, match="target other than"):
            zm.explain(MODELS["affine"], X[0], target=target)
        return
    e = zm.explain(MODELS["affine"], X[0], target=target, signed=True, budget=BUDGET, rng=0)
    assert e.valid
    assert e.contrast_label == target


def test_search_returns_something_no_less_sparse() -> None:
    model = MODELS["curved"]
    plain = [zm.explain(model, x, signed=True, budget=1000, rng=0) for x in X[:2]]
    searched = [zm.explain(model, x, signed=True, budget=1000, rng=0, search=4) for x in X[:2]]
    assert all(e.valid and is_valid(model, e) for e in searched)
    assert np.mean([e.nnz for e in searched]) <= np.mean([e.nnz for e in plain])
    assert max(e.nfev for e in searched) <= 1000


def test_it_ends_early_when_nothing_better_is_found() -> None:
    e = zm.explain(MODELS["affine"], X[0], budget=20_000, rng=0)
    assert e.valid
    assert e.nfev < 16_000
    assert e.status is zm.Status.STALLED
    assert e.message == e.status.value


def test_starts_that_are_the_same_are_gone_from_once() -> None:
    """The centre of the decision set is x0 itself, and so is every part of the way there."""
    seen: list[bytes] = []

    def model(batch: Any) -> Any:
        seen.extend(row.tobytes() for row in batch)
        return MODELS["curved"](batch)

    e = zm.explain(model, np.full(D, 0.5), signed=True, budget=3000, rng=0)
    assert e.valid
    assert len(seen) == e.nfev < 1.5 * len(set(seen))


def test_stronger_penalties_give_smaller_explanations() -> None:
    norms = [
        zm.explain(MODELS["curved"], X[0], kind="PP", l1=l1, budget=1000, rng=0, kappa=1.0).l1_norm
        for l1 in (0.01, 0.3)
    ]
    assert norms[1] < norms[0]


def test_kappa_asks_for_more_than_the_boundary() -> None:
    margins = [
        zm.explain(MODELS["affine"], X[0], signed=True, l1=0.01, l2=0.01, kappa=kappa, budget=3000, rng=0).margin
        for kappa in (0.0, 2.0)
    ]
    assert -0.1 < margins[0] < 0
    assert margins[1] == pytest.approx(-2.0, abs=0.05)


def test_an_input_that_is_misclassified_has_nothing_to_change() -> None:
    """PN of a class that x0 is not given: the empty change does it, and the message says why."""
    label = (label_of(MODELS["affine"], X[0]) + 1) % 3
    model = Counted(MODELS["affine"])
    e = zm.explain(model, X[0], label=label, rng=0)
    assert e.valid
    assert e.nnz == 0
    assert e.label == label
    assert e.contrast_label == label_of(MODELS["affine"], X[0])
    assert f"x0 is not classified {label}" in e.message
    assert model.rows == e.nfev < 20


def test_a_pp_of_another_class_is_a_part_of_the_input_that_is_given_it() -> None:
    model = Affine(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.9, 0.9]]), np.array([0.0, -0.1]))
    e = zm.explain(model, np.array([0.9, 0.9, 0.9, 0.9]), kind="PP", label=1, rng=0, budget=600)
    assert e.valid
    assert label_of(model, e.perturbed) == 1
    assert e.x[:2].tolist() == [0, 0]


def test_a_baseline_of_the_same_class_asks_what_makes_the_model_surer() -> None:
    model = Affine(np.array([[3.0, 3.0, 0.0], [0.0, 0.0, 0.0]]), np.array([0.1, 0.0]))
    e = zm.explain(model, np.array([0.8, 0.8, 0.5]), kind="PP", rng=0, budget=600)
    assert e.valid
    assert e.nnz > 0
    assert "raises the margin" in e.message
    assert e.margin < -0.1


def test_a_baseline_that_is_surer_than_the_input_needs_nothing() -> None:
    model = Affine(np.array([[-1.0, -1.0], [0.0, 0.0]]), np.array([3.0, 0.0]))
    e = zm.explain(model, np.array([0.8, 0.8]), kind="PP", rng=0, budget=600)
    assert e.valid
    assert e.nnz == 0
    assert "choose another baseline" in e.message


def constant(batch: Any) -> Any:
    return np.tile([1.0, 0.0], (len(batch), 1))


@pytest.mark.parametrize("options", [{}, {"signed": True}, {"search": 3}, {"target": 1}, {"fixed": [0]}])
def test_when_nothing_is_valid_it_says_so_and_what_to_try(options: dict[str, Any]) -> None:
    model = Counted(constant)
    e = zm.explain(model, X[0], budget=400, rng=0, **options)
    assert not e.valid
    assert e.status is zm.Status.NOT_FOUND
    assert "the class did not change (best margin 1); try a larger budget" in e.message
    assert ("signed=True" in e.message) == ("signed" not in options)
    assert ("another target" in e.message) == ("target" in options)
    assert ("fewer fixed" in e.message) == ("fixed" in options)
    assert model.rows == e.nfev <= 400
    assert zm.Explanation.from_json(e.to_json()).to_json() == e.to_json()


def test_scores_that_jump_are_explained() -> None:
    """A step function that does not tell where its steps are: wide steps of the descent cross them."""

    def stepped(batch: Any) -> Any:
        votes = (batch[:, :12] > 0.5).mean(axis=1)
        return np.stack([1 - votes, votes], axis=1)

    for kind in ("PP", "PN"):
        e = zm.explain(stepped, np.full(D, 0.6), kind=kind, signed=True, rng=0, budget=5000)
        assert e.valid
        assert is_valid(stepped, e)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kind": "pn"}, zm.errors.ArgumentError, "kind"),
        ({"l1": -1}, zm.errors.ArgumentError, "l1"),
        ({"l2": np.nan}, zm.errors.ArgumentError, "l2"),
        ({"kappa": -0.1}, zm.errors.ArgumentError, "kappa"),
        ({"budget": 99}, zm.errors.ArgumentError, "budget >= 100"),
        ({"budget": 1e4}, zm.errors.ArgumentTypeError, "budget"),
        ({"loss": "log"}, zm.errors.ArgumentError, "loss"),
        ({"label": 1.0}, zm.errors.ArgumentTypeError, "label"),
        ({"label": -1}, zm.errors.ArgumentError, "label"),
        ({"kind": "PP", "target": 1}, zm.errors.ArgumentError, "target"),
        ({"search": True}, zm.errors.ArgumentTypeError, "search"),
        ({"rng": "x"}, zm.errors.ArgumentTypeError, "rng"),
        ({"feature_names": ["a"]}, zm.errors.ArgumentError, f"{D} feature_names, got 1"),
        ({"feature_names": "abc"}, zm.errors.ArgumentTypeError, "feature_names"),
        ({"class_names": 3}, zm.errors.ArgumentTypeError, "class_names"),
        ({"callback": 3}, zm.errors.ArgumentTypeError, "callback"),
    ],
)
def test_wrong_arguments_cost_no_query(options: dict[str, Any], error: type[Exception], words: str) -> None:
    model = Counted(MODELS["affine"])
    with pytest.raises(error, match=words):
        zm.explain(model, X[0], **options)
    assert model.rows == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": 3}, r"label in 0..2, got 3"),
        ({"target": 7}, r"target in 0..2, got 7"),
        ({"class_names": ["a", "b"]}, "expected 3 class_names, got 2"),
    ],
)
def test_what_only_the_model_knows_costs_one_query(options: dict[str, Any], words: str) -> None:
    model = Counted(MODELS["affine"])
    with pytest.raises(zm.errors.ArgumentError, match=words):
        zm.explain(model, X[0], **options)
    assert model.rows == 1
    with pytest.raises(zm.errors.ArgumentError, match=words):
        zm.explain_many(MODELS["affine"], X, progress=False, **options)


def test_settings_are_in_the_result() -> None:
    e = zm.explain(MODELS["affine"], X[0], l1=0.2, budget=300, rng=0, mean=0.1, std=0.9)
    kept = json.loads(e.to_json())["settings"]
    assert {k: kept[k] for k in ("l1", "budget", "signed", "mean", "std")} == {
        "l1": 0.2,
        "budget": 300,
        "signed": False,
        "mean": 0.1,
        "std": 0.9,
    }
