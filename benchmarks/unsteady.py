"""Explain and attack models that answer differently to the same input, and ask what they answered again.

Dropout, additive noise of 0.001, 0.1 and 1 of the range of the scores, and scores that depend on the rest of the batch;
arrays, rows of a table, groups of features and regions of a picture. An answer that is called valid is queried 100
times more, each time beside a few other inputs.

    python benchmarks/unsteady.py             1,242 searches, 207 of each model; writes results/unsteady.json
    python benchmarks/unsteady.py --seeds 1   54 searches, prints only
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from benchmarks.kit.machine import machine, store

import zomirror as zm

D, CLASSES, BUDGET, SEEDS = 20, 4, 1_000, 23
RANGE = 4.0
"""About the range of the scores of `exact`."""
WEIGHTS = np.random.default_rng(0).normal(size=(D, CLASSES))
ROWS = pd.DataFrame(np.random.default_rng(2).random((100, D)).round(2), columns=[f"c{i}" for i in range(D)])
MODELS = ("dropout 0.5", "dropout 0.1", "noise 0.001", "noise 0.1", "noise 1", "batch")
TASKS = [("array", "PP"), ("array", "PN"), ("array", "attack"), ("table", "PP"), ("table", "PN")]
TASKS += [("groups", "PP"), ("groups", "PN"), ("regions", "PP"), ("regions", "PN")]
REGIONS = np.kron(np.arange(D).reshape(4, 5) // 2, np.ones((2, 2), np.int64))
"""Of a picture of 8 x 10 pixels: each feature is a square of 2 x 2."""


def features_of(batch: Any) -> Any:
    """Rows of D features; of a picture the means of its squares."""
    batch = np.asarray(batch, np.float64)
    return batch.reshape(len(batch), 4, 2, 5, 2).mean(axis=(2, 4)).reshape(len(batch), D) if batch.ndim == 3 else batch


def exact(batch: Any) -> Any:
    """The scores before anything is added."""
    flat = batch @ WEIGHTS
    return np.tanh(flat) + 0.3 * flat


class Unsteady:
    """A model that is not deterministic, and the rows that it was asked."""

    def __init__(self, name: str, seed: int) -> None:
        self.kind, *size = name.split()
        self.size = float(size[0]) if size else 0.3
        self.rng, self.rows = np.random.default_rng(seed), 0

    def __call__(self, batch: Any) -> Any:
        """The scores of this time."""
        batch = features_of(batch)
        self.rows += len(batch)
        if self.kind == "dropout":
            return exact(np.where(self.rng.random(batch.shape) < self.size, 0, batch) / (1 - self.size))
        scores = exact(batch)
        if self.kind == "noise":
            return scores + self.size * RANGE * self.rng.normal(size=scores.shape)
        return scores - self.size * scores.mean(axis=0)


def searched(space: str, task: str, model: Unsteady, i: int) -> zm.Explanation:
    """One explanation or attack of the i-th row."""
    row: Any = ROWS.iloc[i] if space == "table" else ROWS.iloc[i].to_numpy()
    options: dict[str, Any] = {"budget": BUDGET}
    if space == "table":
        options["features"] = zm.Table(ROWS)
    elif space == "groups":
        options["features"] = zm.Groups(np.arange(D) // 2)
    elif space == "regions":
        row = np.kron(row.reshape(4, 5), np.ones((2, 2)))
        options["features"] = zm.Regions(REGIONS, baseline="grey")
    found: zm.Explanation
    found = zm.attack(model, row, **options) if task == "attack" else zm.explain(model, row, kind=task, **options)
    return found


def held(one: zm.Explanation, model: Unsteady) -> float:
    """The part of 100 fresh queries in which the answer holds."""
    rng, point, same = np.random.default_rng(1), features_of(np.asarray(one.perturbed)[None])[0], []
    for _ in range(100):
        others = rng.random((rng.integers(0, 5), D))
        same.append(int(np.argmax(model(np.concatenate([point[None], others]))[0])) == one.label)
    return float(np.mean(np.array(same) == (one.kind == "PP")))


def main() -> None:
    """Search, ask again, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    rows = []
    for name in MODELS:
        for space, task in TASKS:
            tries, longest, shares, within = given.seeds, 0.0, [], True
            for seed in range(tries):
                model, start = Unsteady(name, seed), time.perf_counter()
                one = searched(space, task, model, seed)
                longest = max(longest, time.perf_counter() - start)
                within &= model.rows == one.nfev <= BUDGET
                shares += [held(one, Unsteady(name, 50 + seed))] if one.valid else []
            row = {"model": name, "space": space, "task": task, "searches": tries, "valid": len(shares)}
            row |= {"least_share_held": min(shares, default=None), "within_budget": within, "longest_s": longest}
            rows.append(row)
            least = f"{min(shares):.2f}" if shares else "-"
            print(f"{name:12} {space:7} {task:7} {len(shares)} of {tries} valid, least share held {least}")
    valid = [row["least_share_held"] for row in rows if row["least_share_held"] is not None]
    count = sum(int(row["searches"]) for row in rows)
    print(f"{count} searches, {sum(int(row['valid']) for row in rows)} called valid, the least share held {min(valid)}")
    if given.seeds == SEEDS:
        store("unsteady", {"machine": machine(), "budget": BUDGET, "rows": rows})


if __name__ == "__main__":
    main()
