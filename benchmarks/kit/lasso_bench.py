"""LassoBench's synthetic functions (Sehic, Gramfort, Salmon and Nardi, AutoML-Conf 2022), from their definition.

x in [-1, 1]^d chooses a weight for each coefficient of a Lasso, exp of log(alpha_max / 100) at -1 and of log(alpha_max)
at 1. The value is the mean squared error in five-fold cross-validation over that of the true coefficients on the
training data. The design is an autoregressive process of correlation 0.6, with signal-to-noise ratio 10, or 3 if noisy.
The Lasso is scikit-learn's, where LassoBench uses celer's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

SETS = {
    "synt_simple": (60, 30, 3),
    "synt_medium": (100, 50, 5),
    "synt_high": (300, 150, 15),
    "synt_hard": (1000, 500, 50),
}
"""d, rows, and coefficients that are not 0."""


def design(d: int, rows: int, support: int, ratio: float, seed: int) -> tuple[Any, Any, Any]:
    """X, y and the true coefficients +-1."""
    rng = np.random.RandomState(seed)
    columns = np.empty((rows, d), order="F")
    column = rng.randn(rows)
    columns[:, 0] = column
    for j in range(1, d):
        column = 0.6 * column + 0.8 * rng.randn(rows)
        columns[:, j] = column
    true = np.zeros(d)
    places = np.arange(0, d, d // support)
    true[places] = (-1.0) ** np.arange(places.size)
    signal, noise = columns @ true, rng.randn(rows)
    return columns, signal + noise * (np.linalg.norm(signal) / (ratio * np.linalg.norm(noise))), true


def lasso_bench(name: str, *, noisy: bool = False, seed: int = 42) -> Callable[[Any], Any]:
    """The function of rows x in [-1, 1]^d."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso
    from sklearn.model_selection import KFold, train_test_split

    d, rows, support = SETS[name]
    columns, y, true = design(d, rows, support, 3.0 if noisy else 10.0, seed)
    train, _, y_train, _ = train_test_split(columns, y, test_size=0.15, random_state=seed)
    top = float(np.abs(train.T @ y_train).max()) / len(y_train)
    oracle = float(np.mean(np.square(train @ true - y_train)))
    folds = list(KFold(shuffle=True, n_splits=5, random_state=seed).split(train))

    def value(x: Any) -> float:
        weights = np.exp(np.log(top / 10) + np.asarray(x) * np.log(10))
        losses = []
        for inside, outside in folds:
            model = Lasso(alpha=1.0, fit_intercept=False, tol=1e-6, max_iter=20_000)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(np.asfortranarray(train[inside] / weights), y_train[inside])
            losses.append(np.mean(np.square(train[outside] / weights @ model.coef_ - y_train[outside])))
        return float(np.mean(losses)) / oracle

    return lambda points: np.array([value(x) for x in points])
