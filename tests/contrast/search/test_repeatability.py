"""Models that answer differently to the same input: noticed, searched with a margin, and confirmed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import zomirror as zm
from tests.support.contrast_models import Counted

D, CLASSES = 20, 4
WEIGHTS = np.random.default_rng(0).normal(size=(D, CLASSES))
BUDGET = 700


def exact(batch: Any) -> Any:
    """Scores with a range of about 4."""
    flat = np.asarray(batch, np.float64).reshape(len(batch), -1) @ WEIGHTS
    return np.tanh(flat) + 0.3 * flat


def noisy(sd: float) -> Callable[[int], Any]:
    def drawn(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return lambda batch: exact(batch) + sd * 4 * rng.normal(size=(len(batch), CLASSES))

    return drawn


def dropout(part: float) -> Callable[[int], Any]:
    def drawn(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return lambda batch: exact(np.where(rng.random(np.shape(batch)) < part, 0, batch) / (1 - part))

    return drawn


def batch_dependent(_: int) -> Any:
    def model(batch: Any) -> Any:
        scores = exact(batch)
        return scores - 0.3 * scores.mean(axis=0)

    return model


KINDS = {
    "noise 0.001": noisy(1e-3),
    "noise 0.1": noisy(0.1),
    "noise 1": noisy(1.0),
    "dropout 0.1": dropout(0.1),
    "dropout 0.5": dropout(0.5),
    "batch": batch_dependent,
}


def found_by(task: str, model: Any, x0: Any) -> zm.Explanation:
    found: zm.Explanation
    found = zm.attack(model, x0, budget=BUDGET) if task == "attack" else zm.explain(model, x0, kind=task, budget=BUDGET)
    return found


def share_held(one: zm.Explanation, model: Any) -> float:
    """The part of 100 fresh queries, each beside other inputs, in which the answer holds."""
    rng, kept = np.random.default_rng(1), []
    for _ in range(100):
        others = rng.random((rng.integers(0, 5), D))
        kept.append(np.argmax(model(np.concatenate([one.perturbed[None], others]))[0]) == one.label)
    return float(np.mean(np.array(kept) == (one.kind == "PP")))


@pytest.mark.parametrize("task", ["PP", "PN", "attack"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_called_valid_holds_in_95_of_100_fresh_queries(kind: str, task: str) -> None:
    for seed in range(3):
        model = Counted(KINDS[kind](seed))
        one = found_by(task, model, np.random.default_rng(100 + seed).random(D))
        assert model.rows == one.nfev <= BUDGET
        assert "answers differently to the same input" in one.message
        if one.valid:
            assert share_held(one, KINDS[kind](seed + 50)) >= 0.95
        else:
            assert "make the model deterministic" in one.message


ROWS = pd.DataFrame(np.random.default_rng(2).random((60, D)).round(2), columns=[f"c{i}" for i in range(D)])


@pytest.mark.parametrize("task", ["PP", "PN"])
@pytest.mark.parametrize("space", ["table", "parts"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_parts_are_confirmed_as_well(kind: str, space: str, task: str) -> None:
    features: Any = zm.Table(ROWS) if space == "table" else zm.Groups(np.arange(D) // 2)
    model = Counted(KINDS[kind](1))

    def asked(batch: Any) -> Any:
        return model(np.asarray(batch, np.float64))

    x0: Any = ROWS.iloc[3] if space == "table" else ROWS.iloc[3].to_numpy()
    one = zm.explain(asked, x0, kind=task, features=features, budget=BUDGET)
    assert model.rows == one.nfev <= BUDGET
    assert "answers differently to the same input" in one.message
    if one.valid:
        seen = replace(one, perturbed=np.asarray(one.perturbed, np.float64))
        assert share_held(seen, KINDS[kind](51)) >= 0.95


@pytest.mark.parametrize("seed", [40, 124, 240])
def test_a_baseline_that_had_luck_is_not_believed(seed: int) -> None:
    """Its only answer says that it has the class by a wide margin; of 100 others 74 to 86 say that it has it at all."""
    x0 = np.random.default_rng(100 + seed).random(D)
    label = int(np.argmax(exact(x0[None])))
    one = zm.explain(noisy(0.1)(seed), x0, kind="PP", baseline=0.6 * x0, label=label, budget=BUDGET)
    assert "answers differently to the same input" in one.message
    assert not one.valid or share_held(one, noisy(0.1)(seed + 50)) >= 0.95


@pytest.mark.parametrize("seed", [0, 2, 3, 12, 80, 369])
def test_scores_that_are_infinite_at_times_end_without_a_warning(seed: int) -> None:
    rng = np.random.default_rng(seed)
    part = rng.choice([0.002, 0.01, 0.05])

    def model(batch: Any) -> Any:
        scores = exact(batch)
        return np.where(rng.random(scores.shape) < part, rng.choice([np.inf, -np.inf]), scores)

    features: Any = [None, zm.Groups(np.arange(D) // 2), zm.Table(ROWS), None][seed % 4]
    x0: Any = ROWS.iloc[seed % 60] if seed % 4 == 2 else ROWS.iloc[seed % 60].to_numpy()
    find: Any = zm.attack if seed % 3 == 0 else partial(zm.explain, kind=("PP", "PN")[seed % 2])
    assert find(model, x0, budget=300, rng=0, features=features).nfev <= 300


def test_little_noise_still_gets_an_answer() -> None:
    for task in ("PP", "PN", "attack"):
        assert found_by(task, noisy(1e-3)(0), np.random.default_rng(100).random(D)).valid


def test_the_second_query_of_x0_is_counted_and_beside_another_point() -> None:
    seen: list[Any] = []

    def model(batch: Any) -> Any:
        seen.append(np.array(batch))
        return exact(batch)

    one = zm.explain(model, np.full(D, 0.4), budget=200)
    assert [len(batch) for batch in seen[:2]] == [1, 2]
    np.testing.assert_array_equal(seen[1][1], seen[0][0])
    assert sum(map(len, seen)) == one.nfev


def test_rounding_in_another_order_is_no_noise() -> None:
    rng = np.random.default_rng(0)

    def jittery(batch: Any) -> Any:
        scores = exact(batch)
        return scores * (1 + 1e-7 * rng.normal(size=scores.shape))

    one = zm.explain(jittery, np.full(D, 0.4), budget=300)
    assert "differently" not in one.message


def test_a_model_that_changes_its_mind_at_the_end_is_not_believed() -> None:
    """Deterministic while searching: only the last query, of the best point, is answered differently."""
    first = zm.explain(exact, np.full(D, 0.4), budget=300)
    assert first.valid
    asked = 0

    def turncoat(batch: Any) -> Any:
        nonlocal asked
        asked += len(batch)
        return -exact(batch) if asked >= first.nfev else exact(batch)

    one = zm.explain(turncoat, np.full(D, 0.4), budget=300)
    assert not one.valid
    assert one.nfev <= 300
    assert "answers differently" in one.message


def test_a_noisy_search_is_resumed_without_a_query(tmp_path: Any) -> None:
    one = zm.explain(noisy(1e-3)(0), np.full(D, 0.4), budget=400, run_dir=tmp_path / "run")
    again = zm.explain(noisy(1.0)(7), np.full(D, 0.4), budget=400, run_dir=tmp_path / "run")
    assert again.to_json() == one.to_json()
