"""Short reviews and a pipeline that tells good ones from bad ones. Importing this needs scikit-learn."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

GOOD = ("lovely", "warm", "friendly", "great", "superb", "tasty", "fresh", "kind")
BAD = ("cold", "rude", "awful", "slow", "dirty", "stale", "bland", "noisy")
REVIEW = "The staff were rude and the room was cold, but the food was fresh. We paid too much for a noisy, dirty place."


@cache
def pipeline() -> Any:
    """Words and their weights before a logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    texts = [" ".join([*rng.choice(GOOD if i % 2 else BAD, 5), "room and food in town"]) for i in range(200)]
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [i % 2 for i in range(200)])


def scores(texts: Any) -> Any:
    """The model as a function of a list of texts."""
    return pipeline().predict_log_proba(texts)
