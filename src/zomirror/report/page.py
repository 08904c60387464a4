"""The page of explanations: an overview table, and a section per input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zomirror
from zomirror.contrast import Explanation
from zomirror.contrast.sentence import answer
from zomirror.drawing.marked_parts import is_text, marked
from zomirror.drawing.picture import picture_in
from zomirror.drawing.subject import feature_name, largest_features, shown_classes
from zomirror.errors import ArgumentError, ArgumentTypeError
from zomirror.features.tabular.value_words import shown_both
from zomirror.report.chart import Bar, Convergence, bars, convergence
from zomirror.report.html import html_page
from zomirror.report.panels import Panels, panels

MOST_CLASSES = 12
"""Classes whose scores are shown: the labels, and those with the highest scores."""
MOST_FEATURES = 20


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a table: its value before, and the value that the model saw."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One explanation: a row of the overview, and a part of a section."""

    number: int
    one: Explanation
    label: str
    """The class of the input in words."""
    contrast: str
    """The class of what the model saw, in words."""
    validity: str
    panels: Panels | None
    marked: list[tuple[str, bool]]
    """A text in pieces, and which of them are words of the PP or PN."""
    features: list[Feature]
    hidden_features: int
    settings: list[tuple[str, str]]
    command: str
    exact: bool
    """Whether `command` is complete; a call from Python lacks the model and the arrays it was given."""


@dataclass(frozen=True, slots=True)
class Section:
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
    """Write the page of these explanations; a PP and a PN of the same input share a section.

    Parameters
    ----------
    path : str or PathLike
        The HTML file, replaced if it exists.
    explanations : iterable of Explanation
        At least one.
    title : str
        The heading.
    """
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
    sections = _sections(given)
    return html_page(
        "zomirror.report",
        title=title,
        sections=sections,
        rows=[(section, entry) for section in sections for entry in section.entries],
        classes=sorted({entry.label for section in sections for entry in section.entries}, key=_natural),
        kinds=sorted({one.kind for one in given}, reverse=True),
        valid=sum(one.valid for one in given),
        queries=sum(one.nfev for one in given),
        version=zomirror.__version__,
    )


def _natural(text: str) -> tuple[int, str]:
    """Orders names: numbers by size, then words."""
    return (int(text), "") if text.isdecimal() and len(text) < 10 else (10**10, text)


def _sections(given: Sequence[Explanation]) -> list[Section]:
    """One section per input, in the order of the inputs."""
    groups: dict[tuple[object, ...], list[tuple[int, Explanation]]] = {}
    for number, one in enumerate(given, 1):
        key = (str(one.settings.get("input")), one.input_key, one.label, one.scores_before.tobytes())
        groups.setdefault(key, []).append((number, one))
    return [_section(i, group) for i, group in enumerate(groups.values(), 1)]


def _section(number: int, group: list[tuple[int, Explanation]]) -> Section:
    group = sorted(group, key=lambda pair: pair[1].kind == "PN")
    ones = [one for _, one in group]
    columns = [("before", ones[0].scores_before), *((one.kind, one.scores_after) for one in ones)]
    classes = shown_classes(ones, MOST_CLASSES)
    words = answer(ones)
    return Section(
        number=number,
        name=str(ones[0].settings.get("input") or f"input {number}"),
        answer=f"{words[0].upper()}{words[1:]}.",
        entries=[_entry(i, one) for i, one in group],
        pictured=all(picture_in(one) for one in ones),
        classes=[ones[0].name_of(i) for i in classes],
        scores=bars(columns, classes),
        hidden_classes=ones[0].scores_before.size - len(classes),
        convergence=convergence(ones),
    )


def _entry(number: int, one: Explanation) -> Entry:
    picture = picture_in(one)
    features = [] if picture else largest_features(one).tolist()
    return Entry(
        number=number,
        one=one,
        label=one.name_of(one.label),
        contrast=one.name_of(one.contrast_label),
        validity="valid" if one.valid else "not valid",
        panels=panels(one, picture) if picture else None,
        marked=marked(one) if is_text(one) else [],
        features=[_feature(one, i) for i in features[:MOST_FEATURES]],
        hidden_features=max(0, len(features) - MOST_FEATURES),
        settings=[(name, _shown(value)) for name, value in _settings(one).items()],
        command=str(one.settings.get("command") or _call(one)),
        exact="command" in one.settings,
    )


def _feature(one: Explanation, i: int) -> Feature:
    if one.space != "vector":
        named = {name: shown_both(before, after) for name, before, after in one.changes}
        return Feature(feature_name(one, i), *named.get(feature_name(one, i), ("", "")))
    change, after = float(one.x.ravel()[i]), float(one.perturbed.ravel()[i])
    return Feature(feature_name(one, i), f"{after - change:.4g}", f"{after:.4g}")


def _settings(one: Explanation) -> dict[str, Any]:
    """The settings that are shown."""
    hidden = ("command", "input", "columns", "reference")
    shown = {k: v for k, v in one.settings.items() if k not in hidden and v is not None}
    return shown | {"seed": one.seed}


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:199] + "…"


def _call(one: Explanation) -> str:
    """The call of Python that gives the same explanation."""
    kept = ("l1", "l2", "kappa", "budget", "loss", "label", "target", "signed", "search", "fewest")
    given = {name: one.settings[name] for name in kept if one.settings.get(name) not in (None, False, 0)}
    options = "".join(f", {name}={value!r}" for name, value in ({"kind": one.kind} | given | {"rng": one.seed}).items())
    if one.space == "table":
        rules = {name: one.settings.get(name) for name in ("fixed", "increasing", "decreasing")}
        said = "".join(f", {name}={value!r}" for name, value in rules.items() if value)
        options = f", features=zomirror.Table(rows{said}){options}"
    method = one.settings.get("method")
    named = "" if method in (None, "recommended") else f", method={method}"
    return f"zomirror.explain(model, x0{options}{named})"
