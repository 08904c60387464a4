"""GunPoint from the package aeon, read as a file, and a logistic regression on its series."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zomirror.datasets.fetch import fetch
from zomirror.datasets.sources import Pip

SOURCE = Pip(
    "aeon",
    "1.6.0",
    "aeon-1.6.0-py3-none-any.whl",
    6_421_000,
    "d05227086706f80111ac5fee8de4d5d3115bb3bcfd1c786c8629393055816409",
)
CLASSES = ("a gun is drawn", "a finger points")


def gunpoint(part: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The height of a hand over 150 times, and whether it draws a gun (0) or points a finger (1)."""
    with zipfile.ZipFile(fetch(SOURCE)) as wheel:
        lines = wheel.read(f"aeon/datasets/data/GunPoint/GunPoint_{part}.ts").decode().splitlines()
    rows = [line.split(":") for line in lines if line and line[0] not in "@#"]
    series = np.array([[float(value) for value in row[0].split(",")] for row in rows])
    return series, np.array([int(row[-1]) - 1 for row in rows])


def series_model() -> tuple[Any, NDArray[np.float64], float]:
    """A fitted pipeline, the test series, and its accuracy on them."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)).fit(*gunpoint("TRAIN"))
    X, y = gunpoint("TEST")
    return model, X, float(model.score(X, y))
