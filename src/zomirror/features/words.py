"""Words of a text that are there or absent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.checks import choice
from zomirror.classifiers import Classifier, Command, Function, Http, Onnx, Sklearn
from zomirror.classifiers.protocol import check_batch_rows, check_scores, join
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError
from zomirror.features.parts import BUDGET, PartsPlace
from zomirror.features.vector import KINDS
from zomirror.numerics.arrays import Array, Indices

_WORD = re.compile(r"\w+(?:['’\-]\w+)*")
MOST_WORDS = 1 << 16
"""Texts with more words are refused."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Words of a text, each there or absent.

    The model is any function of a list of texts that returns scores (n, classes) (it may ask a server), a scikit-learn
    pipeline whose first step takes texts, or a transformers text-classification pipeline with top_k=None.

    Parameters
    ----------
    absent : str
        What stands for an absent word: "" drops it, with the blank before it; or a mask token such as "[MASK]".
    split : function, optional
        From a text to its words, which must occur in it in this order; by default runs of letters, digits and
        apostrophes. What lies between words always stays.
    replace : mapping, optional
        For a PN: candidates for words, {word: other word}; only these words can change, each to its candidate.
    """

    absent: str = ""
    split: Callable[[str], Any] | None = None
    replace: Mapping[str, str] | None = None

    signed = True
    names = None
    default_budget = BUDGET

    def __post_init__(self) -> None:
        if not isinstance(self.absent, str):
            raise ArgumentTypeError(f"expected absent to be a str, got {self.absent!r}")
        if self.split is not None and not callable(self.split):
            raise ArgumentTypeError(f"expected split to be a function from a text to its words, got {self.split!r}")
        if self.replace is not None and not isinstance(self.replace, Mapping):
            raise ArgumentTypeError(f"expected replace to map words to other words, got {self.replace!r}")

    def place(self, x0: object, kind: str) -> PartsPlace:
        """The words of this text; ArgumentError if it has none."""
        choice("kind", kind, KINDS)
        if not isinstance(x0, str):
            raise ArgumentTypeError(f"expected x0 to be a text (str), got {type(x0).__name__}")
        spans = self._spans(x0)
        gone = [self.absent for _ in spans]
        if self.replace is not None:
            if kind != "PN":
                raise ArgumentError("expected replace with kind='PN' only: a PP leaves words out")
            spans = [span for span in spans if x0[slice(*span)] in self.replace]
            gone = [str(self.replace[x0[slice(*span)]]) for span in spans]
        if len(spans) < 2:
            what = "words" if self.replace is None else "words of `replace`"
            raise ArgumentError(f"expected a text with at least two {what}, got {len(spans)} in {x0[:60]!r}")
        if len(spans) > MOST_WORDS:
            raise ArgumentError(f"expected at most {MOST_WORDS} words, got {len(spans)}: explain a part of the text")
        count, at = len(spans), np.arange(len(spans))
        edges = np.stack([at[:-1], at[1:]], axis=1).astype(np.intp)
        where = at.astype(np.float64)[:, None]
        material = TextParts(x0, tuple(spans), tuple(gone))
        names = tuple(x0[slice(*span)] for span in spans)
        return PartsPlace(kind, material, np.full(count, 1 / count), where, edges, names)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where each word begins and ends."""
        if self.split is None:
            return [match.span() for match in _WORD.finditer(text)]
        spans, end = [], 0
        for word in self.split(text):
            begin = text.find(word, end) if isinstance(word, str) and word else -1
            if begin < 0:
                raise ArgumentError(
                    f"expected split to return words of the text in their order, got {word!r}, which does not follow"
                )
            end = begin + len(word)
            spans.append((begin, end))
        return spans

    def classifier(self, model: Any) -> Classifier:
        """The model as a classifier of texts."""
        if isinstance(model, Function):
            model = model.predict
        if isinstance(model, Sklearn):
            model = model.estimator
        if isinstance(model, Http | Command | Onnx):
            raise ArgumentTypeError(
                f"expected a function of a list of texts, got {type(model).__name__}, which takes numbers: wrap it"
            )
        return model if isinstance(model, TextModel) else TextModel(model)

    def record(self) -> dict[str, Any]:
        """What the arrays of a run directory do not hold."""
        return {"features": "words", "absent": self.absent}


@dataclass(frozen=True, slots=True, eq=False)
class TextParts:
    """A text and the spans of its words."""

    x0: str
    spans: tuple[tuple[int, int], ...]
    gone: tuple[str, ...]
    """What stands for each word when it is not there."""

    baselines = 1

    def batch(self, present: Array, which: Indices) -> NDArray[Any]:
        """The texts with the words `present`, as an object array (n, 1)."""
        return np.array([[self.person(row)] for row in present], dtype=object)

    def person(self, present: Array) -> str:
        """The text with the words `present`; a dropped word takes the blank before it along."""
        pieces, end = [], 0
        for (begin, stop), there, gone in zip(self.spans, present, self.gone, strict=True):
            between = self.x0[end:begin]
            word = self.x0[begin:stop] if there >= 0.5 else gone
            if not word and between.endswith((" ", "\t")):
                between = between[:-1]
            pieces += [between, word]
            end = stop
        return "".join([*pieces, self.x0[end:]]).strip(" ") if self._drops(present) else self.x0

    @staticmethod
    def _drops(present: Array) -> bool:
        return bool((np.asarray(present) < 0.5).any())

    def values(self, part: int) -> tuple[str, str]:
        """The word, and what stands for it."""
        return self.x0[slice(*self.spans[part])], self.gone[part]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The text as UTF-8 bytes, the spans, and what stands for absent words."""
        gone = "\n".join(self.gone)
        found = {"x0": self.x0, "gone": gone}
        texts = {name: np.frombuffer(text.encode() or b"\0", np.uint8) for name, text in found.items()}
        return texts | {"spans": np.array(self.spans, np.int64)}


_METHODS = ("decision_function", "predict_log_proba", "predict_proba")


@dataclass(frozen=True, slots=True)
class TextModel:
    """Asks a function of a list of texts, or a scikit-learn pipeline that takes texts."""

    model: Any
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        check_batch_rows(self.batch_rows)
        if not callable(self.model) and not any(hasattr(self.model, name) for name in _METHODS):
            raise ArgumentTypeError(
                f"expected a function of a list of texts, or a fitted pipeline, got {type(self.model).__name__}"
            )

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes of a fitted pipeline, unless they are 0, 1, 2 and so on."""
        classes = [str(one) for one in np.asarray(getattr(self.model, "classes_", ())).ravel().tolist()]
        return None if classes == [str(i) for i in range(len(classes))] else tuple(classes)

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """The scores of every text."""
        texts = [str(row[0]) for row in batch]
        rows = self.batch_rows or len(texts)
        parts = [texts[i : i + rows] for i in range(0, len(texts), rows)]
        return join([check_scores(self._scores(part), len(part)) for part in parts])

    def _scores(self, texts: list[str]) -> object:
        method = next((name for name in _METHODS if hasattr(self.model, name)), None)
        try:
            scores = self.model(texts) if method is None else getattr(self.model, method)(texts)
        except Exception as error:
            raise OracleError(
                f"the model failed on texts such as {min(texts, key=len)[:60]!r}: {error}; if it rejects texts "
                "without words, give another absent= such as '[MASK]'"
            ) from error
        if method == "decision_function" and np.ndim(scores) == 1:
            return np.stack([-np.asarray(scores), np.asarray(scores)], axis=1)
        if isinstance(scores, list) and scores and isinstance(scores[0], list | dict):
            return _pipeline_scores(scores)
        return scores


def _pipeline_scores(answers: list[Any]) -> NDArray[np.float64]:
    """The scores of a transformers pipeline with top_k=None: for each text a list of {label, score}."""
    rows = [{item["label"]: item["score"] for item in one} if isinstance(one, list) else one for one in answers]
    labels = sorted({label for row in rows for label in row})
    return np.array([[row.get(label, 0.0) for label in labels] for row in rows], dtype=np.float64)
