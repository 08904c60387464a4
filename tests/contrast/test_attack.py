"""attack() and attack_many(): adversarial when asked outside, inside the box, sparse, counted, durable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.command import call, here
from tests.support.contrast_models import Affine, Counted, Curved, label_of
from zomirror import datasets, models
from zomirror.contrast.search.coarse_to_fine import Grid, is_picture

__all__ = ["here"]

D = 24
X = np.random.default_rng(4).uniform(0.1, 0.9, size=(6, D))
MODELS: dict[str, Any] = {"affine": Affine.draw(D), "curved": Curved.draw(D)}


def picture_model(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Three classes that look at smooth patterns."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, *shape))
    for axis in range(-2, 0):
        weights = weights + np.roll(weights, 1, axis) + np.roll(weights, -1, axis)
    return Affine(weights.reshape(3, -1), np.zeros(3))


@pytest.mark.parametrize("kappa", [0.0, 0.7])
@pytest.mark.parametrize("name", MODELS)
def test_what_succeeds_is_adversarial_when_the_model_is_asked_outside(name: str, kappa: float) -> None:
    for i, x0 in enumerate(X):
        model = Counted(MODELS[name])
        a = zm.attack(model, x0, kappa=kappa, budget=1500, rng=i)
        asked = model.rows
        assert a.valid
        assert a.label == label_of(model.predict, x0)
        scores = model.predict(a.perturbed[None])[0]
        assert a.contrast_label == int(np.argmax(scores)) != a.label
        assert scores[a.contrast_label] - scores[a.label] > kappa, "it wins by more than kappa"
        assert (a.perturbed >= 0).all()
        assert (a.perturbed <= 1).all()
        np.testing.assert_allclose(a.perturbed, x0 + a.x, atol=1e-15)
        assert a.nnz == np.count_nonzero(a.x)
        assert asked == a.nfev == a.sent <= 1500
        assert len(a.history) > 0
        assert a.words().endswith("changed")


@pytest.mark.parametrize("target", [0, 1, 2])
def test_a_target_is_reached(target: int) -> None:
    for name, x0 in zip(MODELS, X, strict=False):
        model = MODELS[name]
        if label_of(model, x0) == target:
            with pytest.raises(zm.errors.ArgumentError, match="target"):
                zm.attack(model, x0, target=target, budget=800)
            continue
        a = zm.attack(model, x0, target=target, budget=1500, rng=0)
        assert a.valid
        assert label_of(model, a.perturbed) == a.contrast_label == target


def least_l1(model: Affine, x0: Any, rival: int) -> float:
    """The least |x|_1 after which an affine classifier prefers the rival, by linear programming."""
    label = label_of(model, x0)
    slope = model.weights[rival] - model.weights[label]
    gap = float(slope @ x0 + model.bias[rival] - model.bias[label])
    from scipy.optimize import linprog

    found = linprog(
        np.ones(2 * x0.size),
        A_ub=-np.concatenate([slope, -slope])[None],
        b_ub=[gap],
        bounds=[*((0, 1 - x) for x in x0), *((0, x) for x in x0)],
    )
    return np.inf if found.fun is None else float(found.fun)


@pytest.mark.parametrize("i", range(6))
def test_on_an_affine_model_the_change_is_the_least_there_is(i: int) -> None:
    model: Affine = MODELS["affine"]
    a = zm.attack(model, X[i], kappa=0.0, budget=1500, rng=0)
    rivals = [k for k in range(3) if k != a.label]
    assert a.l1_norm == pytest.approx(min(least_l1(model, X[i], k) for k in rivals), rel=0.01)


@pytest.mark.parametrize(
    ("lower", "upper", "dtype"),
    [
        (0.0, 1.0, np.float32),
        (-3.1, 7.7, np.float32),
        (0.1, 0.7, np.float32),
        (10, 255, np.float32),
        (-1, 1 / 3, float),
    ],
)
def test_the_result_and_every_query_of_the_walk_are_exactly_inside(lower: float, upper: float, dtype: Any) -> None:
    low, high = dtype(lower), dtype(upper)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(3, D)) / (upper - lower)

    def predict(batch: Any) -> Any:
        assert batch.dtype == dtype
        assert (batch >= low).all()
        assert (batch <= high).all(), "a model that takes nothing outside is never shown it"
        return (batch.astype(float) - lower) @ weights.T

    for seed in range(5):
        x0 = np.clip(rng.uniform(lower, upper, size=D).astype(dtype), low, high)
        a = zm.attack(predict, x0, bounds=(lower, upper), budget=900, rng=seed)
        assert a.valid
        assert (a.perturbed >= low).all()
        assert (a.perturbed <= high).all()


@pytest.mark.parametrize("shape", [(16, 16), (1, 16, 16), (3, 12, 12), (12, 12, 3)])
def test_in_a_picture_fewer_queries_than_features_find_the_first(shape: tuple[int, ...]) -> None:
    model = picture_model(shape)
    x0 = np.random.default_rng(1).uniform(0.3, 0.7, size=shape)
    first: list[int] = []
    label, asked = label_of(model, x0), 0

    def predict(batch: Any) -> Any:
        nonlocal asked
        scores = model(batch)
        change = np.abs(batch - x0).reshape(len(batch), -1).sum(axis=1)
        # One that is far nearer than a grey picture, which some models take for another class.
        if ((scores.argmax(axis=1) != label) & (change < 0.1 * x0.size)).any():
            first.append(asked)
        asked += len(batch)
        return scores

    a = zm.attack(predict, x0, rng=0)
    assert a.valid
    assert first[0] < x0.size
    assert a.nnz < 0.3 * x0.size


@pytest.mark.parametrize(("shape", "cells"), [((8, 8), 4), ((3, 8, 8), 12), ((8, 8, 3), 12), ((9, 8), 6)])
def test_cells_cover_every_feature_and_no_cell_mixes_channels(shape: tuple[int, ...], cells: int) -> None:
    grid = Grid(shape, 4)
    number = grid.cell_of.reshape(shape)
    assert grid.count == cells == len(np.unique(number))
    for cell in range(cells):
        where = np.argwhere(number == cell)
        spans = np.ptp(where, axis=0)
        assert (spans <= 3).all()
        if len(shape) == 3:
            assert spans[int(np.argmin(shape))] == 0


@pytest.mark.parametrize(
    ("shape", "yes"), [((8, 8), True), ((3, 8, 8), True), ((24,), False), ((4, 4), False), ((9, 9, 9), False)]
)
def test_pictures_are_told_from_tables(shape: tuple[int, ...], yes: bool) -> None:
    assert is_picture(shape) == yes


def test_a_bundled_digit_is_attacked_with_few_pixels() -> None:
    net = zm.as_classifier(models.path("lenet"))
    x = datasets.digits().images[:4, None].astype(np.float32) / 255
    many = zm.attack_many(net, x, rng=0, progress=False)
    for x0, a in zip(x, many, strict=True):
        assert a.valid
        assert a.nfev <= 10_000
        assert net(a.perturbed[None]).argmax() != net(x0[None]).argmax()
        assert a.l1_norm < 25
        assert a.nnz < 60
        assert ((a.perturbed >= 0) & (a.perturbed <= 1)).all()


def test_the_descent_takes_over_where_there_is_no_room_for_a_walk() -> None:
    wide = Affine.draw(2_000, seed=3, size=1.0)
    a = zm.attack(Counted(wide), np.full(2_000, 0.5), budget=1_000, rng=0)
    assert a.valid
    assert label_of(wide, a.perturbed) == a.contrast_label


@pytest.mark.parametrize("start", [0.1, 0.3])
def test_a_picture_with_impossible_classes_is_attacked(start: float) -> None:
    """The logarithm of an impossible class is -inf: of one that stays so, and of one that x0 is far from."""

    def predict(batch: Any) -> Any:
        gain = batch.reshape(len(batch), -1).mean(axis=1) - 0.5
        rival = np.where(gain < -0.35, -np.inf, gain)
        return np.stack([-gain, rival, np.full(len(batch), -np.inf)], axis=1)

    found = zm.attack(predict, np.full((16, 16), start), kappa=0.0, budget=1_500, rng=0)
    assert found.valid
    assert found.contrast_label == 1
    assert found.l1_norm == pytest.approx(256 * (0.5 - start), rel=0.01)


def test_a_method_of_ones_own_descends() -> None:
    model = Counted(MODELS["affine"])
    a = zm.attack(model, X[0], method=zm.methods.zo_ada_expmd(batch_size=10), budget=1200, rng=0)
    assert a.valid
    assert model.rows == a.nfev <= 1200
    assert "MirrorDescent" in a.settings["method"]


@pytest.mark.parametrize("budget", [100, 101, 250, 999])
@pytest.mark.parametrize("shape", [(24,), (3, 8, 8), (28, 28), (3, 32, 32)])
def test_the_budget_is_never_exceeded_and_a_small_one_is_used(budget: int, shape: tuple[int, ...]) -> None:
    model = Counted(picture_model(shape) if len(shape) > 1 else MODELS["curved"])
    a = zm.attack(model, np.full(shape, 0.5), budget=budget, rng=0)
    assert model.rows == a.nfev <= budget
    assert a.status.name in ("BUDGET", "STALLED"), "no batch was too large for what was left"
    assert a.valid
    assert a.contrast_label == label_of(model.predict, a.perturbed)


def test_what_the_walk_leaves_is_used_as_long_as_it_gains() -> None:
    x = datasets.digits().images[2, None].astype(np.float32) / 255
    small, large = (zm.attack(models.path("lenet"), x, budget=budget, rng=0) for budget in (600, 1_500))
    assert small.nfev > 580
    assert small.status.name == "BUDGET"
    assert small.l1_norm < 1.3 * large.l1_norm


def test_where_no_feature_has_room_for_a_whole_step_it_goes_to_the_side() -> None:
    model, x0 = picture_model((16, 16)), np.random.default_rng(1).uniform(0.3, 0.7, size=(16, 16))
    usual, fine = (zm.attack(model, x0, scale=scale, budget=500, rng=0) for scale in (1.0, 100.0))
    assert fine.valid
    assert 100 * fine.l1_norm < 1.5 * usual.l1_norm


def test_a_method_that_the_budget_has_no_room_for_still_ends() -> None:
    a = zm.attack(
        picture_model((16, 16)), np.full((16, 16), 0.5), method=zm.methods.zo_ada_expmd(500), budget=300, rng=0
    )
    assert a.status.name in ("BUDGET", "STALLED")


def test_in_company_as_alone_and_over_workers() -> None:
    many = zm.attack_many(MODELS["curved"], X, budget=600, rng=11, progress=False)
    alone = [zm.attack(MODELS["curved"], x, budget=600, rng=a.seed) for x, a in zip(X, many, strict=True)]
    assert [a.to_json() for a in many] == [a.to_json() for a in alone]
    spread = zm.attack_many(MODELS["curved"], X[:3], budget=600, rng=11, progress=False, workers=2)
    assert [a.to_json() for a in spread] == [a.to_json() for a in many[:3]]


class Stop(BaseException):
    """A kill."""


def test_a_killed_attack_resumes_bit_for_bit(tmp_path: Path) -> None:
    model = MODELS["curved"]
    whole = zm.attack(model, X[0], budget=700, rng=3)
    for at in (1, 2, 4, 7):
        calls = 0

        def dying(batch: Any, at: int = at) -> Any:
            nonlocal calls
            calls += 1
            if calls == at:
                raise Stop
            return model(batch)

        run_dir = tmp_path / f"run-{at}"
        with pytest.raises(Stop):
            zm.attack(dying, X[0], budget=700, rng=3, run_dir=run_dir, max_sent=2_000)
        resumed = zm.attack(model, X[0], budget=700, rng=None, run_dir=run_dir, max_sent=2_000)
        assert resumed.to_json().replace(f'"sent": {resumed.sent}', "") == whole.to_json().replace(
            f'"sent": {whole.sent}', ""
        )
        counted = Counted(model)
        assert (
            zm.attack(counted, X[0], budget=700, rng=None, run_dir=run_dir, max_sent=2_000).to_json()
            == resumed.to_json()
        )
        assert counted.rows == 0, "a finished one is not run again"
    with pytest.raises(zm.errors.RunError, match="task"):
        zm.explain(model, X[0], signed=True, l1=0.01, l2=0.0, budget=700, rng=3, run_dir=run_dir, max_sent=2_000)


def test_json_is_that_of_an_explanation_and_comes_back() -> None:
    a = zm.attack(MODELS["affine"], X[0], budget=600, rng=0, class_names=["a", "b", "c"])
    again = zm.Explanation.from_json(a.to_json())
    assert again.to_json() == a.to_json()
    assert json.loads(a.to_json())["kind"] == "PN"
    assert zm.Explanation.from_json(a.to_json()).valid == a.valid
    assert a.words().split()[0] in "abc"
    assert a._repr_html_().startswith("<figure>")
    assert a._repr_html_().endswith(f"<p>{a.words()}</p></figure>"), "a notebook speaks of an attack"
    assert again.is_attack
    assert not zm.explain(MODELS["affine"], X[0], budget=300, rng=0).is_attack


def test_a_callback_sees_every_batch_and_can_stop() -> None:
    seen: list[int] = []

    def look(now: Any) -> None:
        seen.append(now.nfev)
        if now.nfev > 100:
            raise StopIteration

    a = zm.attack(MODELS["curved"], X[0], budget=2_000, rng=0, callback=look)
    assert seen == sorted(seen)
    assert a.nfev <= seen[-1] + 1
    assert a.status.name in ("CALLBACK", "NOT_FOUND")


def test_what_is_out_of_reach_is_said() -> None:
    def constant(batch: Any) -> Any:
        return np.tile([1.0, 0.0], (len(batch), 1))

    a = zm.attack(constant, X[0], budget=300, rng=0)
    assert not a.valid
    assert a.status.name == "NOT_FOUND"
    assert "larger budget" in a.message
    assert a.words().startswith("attack on 0")
    assert "valid=False" in repr(a)


def test_where_nothing_could_be_seen_nothing_is_changed() -> None:
    dark, light = np.full(D, 0.1), np.full(D, 0.9)
    brightness = Affine(np.stack([-np.ones(D), np.ones(D)]), np.array([D / 2, -D / 2]))
    refused, _ = zm.attack_many(brightness, [dark, light], target=0, budget=200, rng=0, progress=False)
    unseen = zm.attack(lambda batch: np.full((len(batch), 3), np.nan), dark, budget=200)
    for a, status in ((refused, "ERROR"), (unseen, "NONFINITE")):
        assert (a.valid, a.status.name, a.nnz, a.l1_norm) == (False, status, 0, 0.0)
        np.testing.assert_array_equal(a.perturbed, dark)


def test_too_much_kappa_is_told_from_a_class_that_stays() -> None:
    a = zm.attack(MODELS["affine"], X[0], kappa=1e3, budget=300, rng=0)
    assert not a.valid
    assert "no adversarial input was found: the other class won by" in a.words()
    assert "a smaller kappa" in a.message


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"kind": "PP"}, TypeError, "kind"),
        ({"signed": False}, TypeError, "signed"),
        ({"kappa": -1}, ValueError, "kappa"),
        ({"budget": 10}, ValueError, "budget"),
        ({"target": "cat"}, ValueError, "target as a number"),
        ({"bounds": (0.5, 1.0)}, ValueError, "bounds"),
        ({"fixed": range(D)}, ValueError, "unfix some or widen the bounds$"),
        ({"baseline": 1}, TypeError, r"options of attack_many\(\) among bounds, .*, got baseline"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_asked(options: Any, error: Any, says: str) -> None:
    model = Counted(MODELS["affine"])
    with pytest.raises(error, match=says):
        zm.attack_many(model, X, progress=False, **options)
    assert model.rows == 0


def test_the_command_attacks_saves_and_goes_on(here: Path) -> None:
    said = call("attack", "digits:3", "--run-dir", "run").stdout
    assert said.startswith("digits:3: 3 is taken for ")
    one = zm.Explanation.from_json(Path("attacks/digits-3-attack.json").read_text())
    assert one.valid
    assert one.settings["command"] == "zomirror attack lenet digits:3 --seed 0"
    assert Path("attacks/digits-3-attack.png").stat().st_size > 1_000
    before = one.to_json()
    call("runs", "resume", "run")
    assert Path("attacks/digits-3-attack.json").read_text() == before
    few = call("attack", "digits:3", "--l0", "least", "--label-only", "--budget", "300", "--out", "few").stdout
    sparse = zm.Explanation.from_json(Path("few/digits-3-attack.json").read_text())
    assert (sparse.settings["l0"], sparse.settings["scores"]) == ("least", "label")
    assert f"l0 {sparse.pixels}, {sparse.nfev} queries, " in few
    found = json.loads(call("attack", "digits:3", "--target", "8", "--json", "-q").stdout)
    assert (found[0]["valid"], found[0]["contrast_label"]) == (True, 8)
