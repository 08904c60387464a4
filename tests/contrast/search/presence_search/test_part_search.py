"""The search on presence, against every subset of twelve parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import zomirror as zm
from tests.support.contrast_models import Affine, Counted, Curved

PARTS, ENTRIES = 12, 24
LABELS = np.arange(ENTRIES) * PARTS // ENTRIES


def smallest(model: Any, x0: NDArray[Any], kind: str, label: int) -> int | None:
    """The size of the smallest valid set of parts, by asking all of them."""
    sets = ((np.arange(2**PARTS)[:, None] >> np.arange(PARTS)) & 1).astype(bool)
    scores = model(np.where((sets if kind == "PP" else ~sets)[:, LABELS], x0, 0.0))
    kept = scores.argmax(axis=1) == label
    sizes = sets.sum(axis=1)[kept if kind == "PP" else ~kept]
    return int(sizes.min()) if sizes.size else None


def cases(draw: Any, count: int) -> list[tuple[Any, NDArray[Any], int]]:
    """Models and inputs whose class is not that of the baseline."""
    found = []
    for seed in range(count):
        model, x0 = draw(ENTRIES, 3, seed=seed), np.random.default_rng(seed).random(ENTRIES)
        label = int(model(x0[None])[0].argmax())
        if int(model(np.zeros((1, ENTRIES)))[0].argmax()) != label:
            found.append((model, x0, label))
    return found


@pytest.mark.parametrize("kind", ["PP", "PN"])
@pytest.mark.parametrize("draw", [Affine.draw, Curved.draw], ids=["linear", "curved"])
def test_the_set_is_valid_and_nearly_always_the_smallest(draw: Any, kind: str) -> None:
    gaps = []
    for model, x0, label in cases(draw, 60):
        asked = Counted(model)
        found = zm.explain(asked, x0, kind=kind, features=zm.Groups(LABELS))
        assert found.valid
        assert asked.rows == found.nfev <= 300
        assert (int(model(found.perturbed[None])[0].argmax()) == label) == (kind == "PP")
        least = smallest(model, x0, kind, label)
        assert least is not None
        gaps.append(found.nnz - least)
    assert min(gaps) >= 0
    assert np.mean(np.array(gaps) <= 1) >= 0.9


def test_a_linear_model_of_few_parts_takes_a_few_queries_a_part() -> None:
    """Few parts are pruned from several sets, because the first need not lead to the smallest."""
    model, x0, _ = cases(Affine.draw, 20)[0]
    assert zm.explain(model, x0, kind="PP", features=zm.Groups(LABELS)).nfev <= 8 * PARTS


def test_a_single_decisive_part_among_thousands_takes_tens_of_queries() -> None:
    def model(batch: NDArray[Any]) -> NDArray[Any]:
        seen = batch.reshape(len(batch), 64, 64)[:, 37, 11]
        return np.stack([seen, 1 - seen], axis=1)

    x0, labels = np.ones((64, 64)), np.arange(64 * 64).reshape(64, 64)
    for kind in ("PP", "PN"):
        found = zm.explain(model, x0, kind=kind, features=zm.Groups(labels), budget=1000)
        assert (found.valid, found.nnz) == (True, 1)
        assert found.nfev <= 150


def test_of_sets_of_one_size_the_connected_one_is_kept() -> None:
    """Two of three parts are needed, any two: those that touch are preferred."""
    labels = np.repeat(np.arange(3), 4)

    def model(batch: NDArray[Any]) -> NDArray[Any]:
        there = (batch.reshape(len(batch), 3, 4).min(axis=2) > 0).sum(axis=1)
        return np.stack([there - 1.5, 1.5 - there], axis=1)

    found = zm.explain(model, np.ones(12), kind="PP", features=zm.Groups(labels))
    assert found.nnz == 2
    assert found.x[1] > 0


def test_a_set_must_be_valid_over_every_baseline() -> None:
    """Over zeros the first part is enough, over ones the second is needed too."""

    def model(batch: NDArray[Any]) -> NDArray[Any]:
        first, second, third = batch.T
        enough = (first == 2) & ((second == 2) | (third == 0))
        return np.stack([enough, ~enough], axis=1).astype(np.float64)

    x0 = np.full(3, 2.0)
    alone = zm.explain(model, x0, kind="PP", features=zm.Groups(np.arange(3), baseline=0.0))
    both = zm.explain(model, x0, kind="PP", features=zm.Groups(np.arange(3), baseline=[0.0, np.ones(3)]))
    assert [change.name for change in alone.changes] == ["group 0"]
    assert {change.name for change in both.changes} == {"group 0", "group 1"}


def test_a_baseline_that_keeps_the_class_cannot_give_a_pn() -> None:
    model = Affine.draw(ENTRIES, 3, seed=1)
    x0 = np.random.default_rng(1).random(ENTRIES)
    found = zm.explain(lambda batch: np.stack([np.ones(len(batch)), np.zeros(len(batch))], axis=1), x0,
                       features=zm.Groups(LABELS))  # fmt: skip
    assert not found.valid
    assert "the class did not change" in found.message
    assert model is not None


def test_the_same_search_resumes_and_spreads(tmp_path: Any) -> None:
    model, x0, _ = cases(Curved.draw, 10)[0]
    features = zm.Groups(LABELS)
    first = zm.explain(model, x0, kind="PP", features=features)
    stored = zm.explain(model, x0, kind="PP", features=features, run_dir=tmp_path / "run")
    asked = Counted(model)
    again = zm.explain(asked, x0, kind="PP", features=features, run_dir=tmp_path / "run")
    assert asked.rows == 0
    inputs = [one for _, one, _ in cases(Curved.draw, 10)][:3]
    together = zm.explain_many(model, inputs, kind="PP", features=features, lockstep=3)
    for one in (stored, again, together[0], zm.Explanation.from_json(first.to_json())):
        np.testing.assert_array_equal(one.x, first.x)
        assert (one.nfev, one.changes) == (first.nfev, first.changes)
