"""What an installed zomirror must do in an environment of its own: python smoke.py [EXTRA...].

`make wheel` runs it for the wheel that it has built, in a new environment for every Python it finds, away from the
checkout. Each extra has one check that fails without it.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zomirror as zm


def base() -> None:
    """What every installation can do: minimise, explain, attack, the command line, a page."""
    assert "site-packages" in zm.__file__, f"this is not an installed zomirror: {zm.__file__}"
    found = zm.minimize(lambda X: np.square(X - 0.5).sum(axis=1), np.zeros(20), budget=500, rng=0)
    assert found.fun < 1e-3, found.fun
    seven = (zm.datasets.digits().images[14] / np.float32(255))[None]
    for answer in (
        zm.explain(zm.models.path("lenet"), seven, budget=1_000),
        zm.attack(zm.models.path("lenet"), seven, budget=1_000),
    ):
        assert answer.valid, answer.message
    command = [sys.executable, "-m", "zomirror"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, "explain", "digits:7", "--budget", "500"], cwd=folder, check=True)
        subprocess.run([*command, "report", "explanations"], cwd=folder, check=True)
        assert "<!doctype html>" in Path(folder, "report.html").read_text(encoding="utf-8").lower()


def rows() -> tuple[Any, Any]:
    """A small table of numbers and its classes."""
    rng = np.random.default_rng(0)
    x = rng.random((200, 4)).round(2)
    return x, (x[:, 0] + x[:, 1] > 1).astype(int)


def sklearn() -> None:
    """A fitted pipeline."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = rows()
    assert zm.explain(make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y), x[0], budget=300).valid


def tables() -> None:
    """A row of a frame."""
    import pandas as pd

    frame = pd.DataFrame({"income": [10, 20, 30, 40], "housing": ["rent", "own", "rent", "own"]})

    def model(batch: Any) -> Any:
        worth = batch["income"].to_numpy() / 10 - 2.5 + 2 * (batch["housing"] == "own").to_numpy()
        return np.stack([-worth, worth], axis=1)

    answer = zm.explain(model, frame.iloc[0], features=zm.Table(frame), class_names=["refused", "granted"])
    assert answer.valid, answer.message
    print(answer.words())


def boost() -> None:
    """The three libraries of boosted trees."""
    import catboost
    import lightgbm
    import xgboost

    x, y = rows()
    for model in (
        xgboost.XGBClassifier(n_estimators=5),
        lightgbm.LGBMClassifier(n_estimators=5, verbose=-1),
        catboost.CatBoostClassifier(iterations=5, verbose=False, allow_writing_files=False),
    ):
        assert zm.explain(model.fit(x, y), x[0], budget=300).valid, type(model)


def images() -> None:
    """Superpixels of a picture."""
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 255, (32, 32, 3), np.uint8)
    picture[8:16, 8:16] = 255

    def model(batch: Any) -> Any:
        bright = batch[:, 8:16, 8:16].reshape(len(batch), -1).mean(axis=1) / 255 - 0.7
        return np.stack([-bright, bright], axis=1)

    answer = zm.explain(model, picture, kind="PP", features=zm.Regions(labels="superpixels", count=20))
    assert answer.valid, answer.message


def torch() -> None:
    """A module."""
    import torch

    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2))
    answer = zm.explain(network, np.full(4, 0.5, np.float32), budget=300)
    assert answer.nfev <= 300


def dask() -> None:
    """Two worker processes; the result of one."""
    x0 = np.zeros(10)
    results = [zm.minimize(_sum, x0, l1=0.01, budget=300, rng=0, workers=workers) for workers in (None, 2)]
    assert (results[0].x == results[1].x).all()


def _sum(batch: Any) -> Any:
    return np.square(batch - 0.5).sum(axis=1)


EXTRAS: dict[str, Callable[[], None]] = {
    "sklearn": sklearn, "tables": tables, "boost": boost, "images": images, "torch": torch, "dask": dask,
}  # fmt: skip


def main() -> None:
    base()
    for name in sys.argv[1:]:
        EXTRAS[name]()
    done = ", ".join(["base", *sys.argv[1:]])
    print(f"zomirror {importlib.metadata.version('zomirror')} on Python {sys.version.split()[0]}: {done}")


if __name__ == "__main__":
    main()
