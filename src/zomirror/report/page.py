"""The page: explanations grouped by input, in a table and one section each."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import zomirror
from zomirror.contrast import Explanation
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.report.chart import Bar, Convergence, bars, convergence
from zomirror.report.panels import Panels, panels, picture
from zomirror.report.words import answer, feature_name, largest_features

MOST_CLASSES = 12
"""Classes whose scores are shown: the ones that matter most."""
MOST_FEATURES = 20


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a table: before, and what the model saw."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One explanation: a row of the table and its part of a section."""

    number: int
    one: Explanation
    label: str
    """The explained class in words."""
    contrast: str
    """What the model said in the end."""
    validity: str
    panels: Panels | None
    features: list[Feature]
    hidden_features: int
    settings: list[tuple[str, str]]
    command: str
    exact: bool
    """Whether the command says everything; a call from Python does not know what it was given beside numbers."""


@dataclass(frozen=True, slots=True)
class Case:
    """One input with its explanations."""

    number: int
    name: str
    answer: str
    entries: list[Entry]
    pictured: bool
    classes: list[str]
    scores: list[list[Bar]]
    hidden_classes: int
    convergence: Convergence | None


def write(path: str | os.PathLike[str], explanations: Iterable[Explanation], *, title: str = "Explanations") -> Path:
    """Write the page of these explanations to `path`; a PP and a PN of the same input share a section."""
    page = render(explanations, title=title)
    target = Path(path)
    target.write_text(page, encoding="utf-8")
    return target


def render(explanations: Iterable[Explanation], *, title: str = "Explanations") -> str:
    """The page as text."""
    given = list(explanations)
    for i, one in enumerate(given):
        if not isinstance(one, Explanation):
            raise ArgumentTypeError(f"expected explanations, got {type(one).__name__} at place {i}")
    if not given:
        raise ArgumentError("expected at least one explanation, got none")
    from markupsafe import Markup

    # These two are files of the package, the only text that is not escaped; the policy names them by their hashes.
    style, script = (Markup(_asset(name)) for name in ("page.css", "page.js"))  # noqa: S704
    cases = _cases(given)
    page: str = _template().render(
        title=title,
        cases=cases,
        rows=[(case, entry) for case in cases for entry in case.entries],
        classes=sorted({entry.label for case in cases for entry in case.entries}, key=_natural),
        kinds=sorted({one.kind for one in given}, reverse=True),
        valid=sum(one.valid for one in given),
        queries=sum(one.nfev for one in given),
        version=zomirror.__version__,
        style=style,
        script=script,
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
    )
    return page


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # loaded only by those who make a page

    loader = PackageLoader("zomirror.report", ".")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("page.html.j2")


def _asset(name: str) -> str:
    return resources.files("zomirror.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _natural(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() and len(text) < 10 else (10**10, text)


def _cases(given: Sequence[Explanation]) -> list[Case]:
    """The explanations by input, in the order in which the inputs come."""
    groups: dict[tuple[object, ...], list[tuple[int, Explanation]]] = {}
    for number, one in enumerate(given, 1):
        key = (str(one.settings.get("input")), one.x0.shape, one.x0.tobytes(), one.label, one.scores_before.tobytes())
        groups.setdefault(key, []).append((number, one))
    return [_case(i, group) for i, group in enumerate(groups.values(), 1)]


def _case(number: int, group: list[tuple[int, Explanation]]) -> Case:
    group = sorted(group, key=lambda pair: pair[1].kind == "PN")
    ones = [one for _, one in group]
    columns = [("before", ones[0].scores_before), *((one.kind, one.scores_after) for one in ones)]
    classes = _classes(ones)
    return Case(
        number=number,
        name=str(ones[0].settings.get("input") or f"input {number}"),
        answer=_sentence(answer(ones)),
        entries=[_entry(i, one) for i, one in group],
        pictured=all(picture(one) for one in ones),
        classes=[ones[0].name_of(i) for i in classes],
        scores=bars(columns, classes),
        hidden_classes=ones[0].scores_before.size - len(classes),
        convergence=convergence(ones),
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _classes(ones: list[Explanation]) -> list[int]:
    """All classes, or of many the explained one, the contrasts, and those with the highest scores."""
    count = ones[0].scores_before.size
    if count <= MOST_CLASSES:
        return list(range(count))
    columns = [ones[0].scores_before, *(one.scores_after for one in ones)]
    height = np.max([np.nan_to_num(column, nan=-np.inf) for column in columns], axis=0)
    height[[i for one in ones for i in (one.label, one.contrast_label) if i >= 0]] = np.inf
    return sorted(np.argsort(-height, kind="stable")[:MOST_CLASSES].tolist())


def _entry(number: int, one: Explanation) -> Entry:
    how = picture(one)
    features = [] if how else largest_features(one)
    return Entry(
        number=number,
        one=one,
        label=one.name_of(one.label),
        contrast=one.name_of(one.contrast_label),
        validity="valid" if one.valid else "not valid",
        panels=panels(one, how) if how else None,
        features=[_feature(one, i) for i in features[:MOST_FEATURES]],
        hidden_features=max(0, len(features) - MOST_FEATURES),
        settings=[(name, _shown(value)) for name, value in _settings(one).items()],
        command=str(one.settings.get("command") or _call(one)),
        exact="command" in one.settings,
    )


def _feature(one: Explanation, i: int) -> Feature:
    change, after = float(one.x.ravel()[i]), float(one.perturbed.ravel()[i])
    return Feature(feature_name(one, i), f"{after - change:.4g}", f"{after:.4g}")


def _settings(one: Explanation) -> dict[str, Any]:
    """What is worth telling of how it was asked."""
    hidden = ("command", "input")
    told = {name: value for name, value in one.settings.items() if name not in hidden and value is not None}
    return told | {"seed": one.seed}


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:199] + "…"


def _call(one: Explanation) -> str:
    """The call that gives the same explanation, for one that no command made."""
    kept = ("l1", "l2", "kappa", "budget", "loss", "label", "target", "signed", "search")
    given = {name: one.settings[name] for name in kept if one.settings.get(name) not in (None, False, 0)}
    options = "".join(f", {name}={value!r}" for name, value in ({"kind": one.kind} | given | {"rng": one.seed}).items())
    method = one.settings.get("method")
    named = "" if method in (None, "recommended") else f", method={method}"
    return f"zomirror.explain(model, x0{options}{named})"
