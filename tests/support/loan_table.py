"""A table of loans with columns of every kind, and models of it. Importing this needs pandas and scikit-learn."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

NUMBERS, TEXTS = ["income", "children", "rate", "age"], ["housing", "purpose"]


@cache
def loans(rows: int = 400) -> pd.DataFrame:
    """The reference rows."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": rng.integers(100, 500, rows) * 100,
            "children": rng.integers(0, 5, rows),
            "rate": rng.random(rows).round(2),
            "age": rng.integers(18, 75, rows),
            "housing": rng.choice(["rent", "own", "free"], rows),
            "purpose": rng.choice(["car", "house", "study", "other"], rows),
            "phone": rng.random(rows) < 0.5,
        }
    )


def worth(frame: Any) -> Any:
    """Granted where it is positive."""
    return (
        frame["income"] / 10_000
        + 1.5 * (frame["housing"] == "own")
        - 0.4 * frame["children"]
        + 2 * frame["rate"]
        - 0.5 * (frame["purpose"] == "car")
        - 4
    ).to_numpy()


def verdict(frame: Any) -> Any:
    """The class of each row."""
    return np.where(worth(frame) > 0, "granted", "refused")


def scores(frame: Any) -> Any:
    """A function of a frame: (refused, granted)."""
    value = worth(frame)
    return np.stack([-value, value], axis=1)


def categories(frame: Any) -> Any:
    """The same rows with categorical types, for XGBoost and LightGBM."""
    return frame.astype(dict.fromkeys(TEXTS, "category"))


@cache
def pipeline(end: str = "LogisticRegression") -> Any:
    """Scaled numbers and one-hot texts before a classifier or regressor."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

    ends = {
        "LogisticRegression": LogisticRegression(max_iter=1000),
        "RandomForestClassifier": RandomForestClassifier(20, random_state=0),
        "LinearRegression": LinearRegression(),
    }
    prepared = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS[:2]),
        (MinMaxScaler(), NUMBERS[2:]),
        (OneHotEncoder(handle_unknown="ignore"), TEXTS),
        remainder="passthrough",
    )
    target = worth(loans()) if end == "LinearRegression" else verdict(loans())
    return make_pipeline(prepared, ends[end]).fit(loans(), target)


@cache
def boosted(name: str) -> tuple[Any, pd.DataFrame]:
    """A model of XGBoost, LightGBM or CatBoost, by estimator or native interface, and the frame it was trained on."""
    library, _, native = name.partition(" ")
    frame = loans() if library == "catboost" else categories(loans())
    refused = (verdict(loans()) == "refused").astype(int)
    if library == "xgboost":
        import xgboost

        if native:
            data = xgboost.DMatrix(frame, refused, enable_categorical=True)
            return xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 20), frame
        return xgboost.XGBClassifier(n_estimators=20, enable_categorical=True, n_jobs=1).fit(frame, refused), frame
    if library == "lightgbm":
        import lightgbm

        if native:
            options = {"objective": "binary", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
            return lightgbm.train(options, lightgbm.Dataset(frame, refused), 20), frame
        model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1, min_child_samples=5)
        return model.fit(frame, verdict(loans())), frame
    import catboost

    given = {"iterations": 20, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    if native:
        pool = catboost.Pool(frame, refused, cat_features=TEXTS)
        return catboost.CatBoost(given | {"loss_function": "Logloss"}).fit(pool), frame
    return catboost.CatBoostClassifier(**given, cat_features=TEXTS).fit(frame, verdict(loans())), frame
