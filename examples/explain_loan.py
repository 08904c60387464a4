"""Explain why a loan was refused: what would have to change, three ways, and what was enough for the refusal.

python examples/explain_loan.py [--out DIRECTORY]       needs pip install 'zomirror[tables,sklearn]'
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import zomirror as zm


def bank() -> tuple[pd.DataFrame, Pipeline]:
    """600 applications, and the pipeline that learned the bank's verdict from them."""
    rng = np.random.default_rng(0)
    loans = pd.DataFrame(
        {
            "income": rng.integers(100, 500, 600) * 100,
            "children": rng.integers(0, 5, 600),
            "deposit": rng.random(600).round(2),
            "age": rng.integers(18, 75, 600),
            "housing": rng.choice(["rent", "own", "free"], 600),
        }
    )
    worth = loans["income"] / 1e4 + 1.5 * (loans["housing"] == "own") - 0.4 * loans["children"] + 2 * loans["deposit"]
    columns = make_column_transformer((OneHotEncoder(), ["housing"]), remainder=StandardScaler())
    verdict = np.where(worth > 4, "granted", "refused")
    return loans, make_pipeline(columns, LogisticRegression(C=10)).fit(loans, verdict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("out"), help="where to write (default: out)")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    loans, model = bank()
    applicant = loans.iloc[79]
    table = zm.Table(loans, step={"income": 1_000}, fixed=["age"])
    answers = zm.explain(model, applicant, features=table, answers=3)
    for answer in answers:
        print(answer.words())
    reason = zm.explain(model, applicant, kind="PP", features=table)
    print(reason.words())
    answers[1].plot().savefig(out / "loan.png", dpi=130)
    print(f"picture: {out / 'loan.png'}")


if __name__ == "__main__":
    main()
