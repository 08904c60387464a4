"""The report: what it shows, and that nothing in it can be more than text."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zomirror as zm
from zomirror import report
from zomirror.contrast import Explanation
from zomirror.contrast.sentence import answer, place
from zomirror.report.chart import bars, convergence
from zomirror.result import History, Status

EVIL = "\"><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}&amp;'</title>"


def explanation(kind: str = "PN", **changes: Any) -> Explanation:
    """A small explanation of a 6 x 6 picture, every part of which can be changed."""
    x = np.zeros((1, 6, 6), np.float32)
    x[0, 0, :2] = 0.5, 0.25
    x0 = np.full((1, 6, 6), 0.2, np.float32)
    history = History(
        nfev=np.arange(1, 6) * 20,
        fun=np.array([9.0, 4.0, 2.0, 1.5, 1.25]),
        f=np.zeros(5),
        eta=np.ones(5),
        stationarity=np.ones(5),
        nnz=np.array([36, 20, 10, 4, 2]),
    )
    given: dict[str, Any] = {
        "kind": kind,
        "valid": True,
        "label": 0,
        "contrast_label": 1 if kind == "PN" else 0,
        "x": x,
        "x0": x0,
        "perturbed": x0 + x,
        "scores_before": np.array([2.0, -1.0, 0.5]),
        "scores_after": np.array([0.5, 0.75, -0.25]),
        "margin": -0.25,
        "objective": 1.0,
        "l1_norm": 0.75,
        "l2_norm": 0.56,
        "nnz": 2,
        "nfev": 120,
        "sent": 120,
        "seed": 7,
        "status": Status.BUDGET,
        "message": Status.BUDGET.value,
        "history": history,
        "scale": np.array(1.0),
        "settings": {"l1": 0.1, "l2": 0.1, "budget": 120, "signed": False},
    }
    return Explanation(**(given | changes))


class Page(HTMLParser):
    """The elements of a page, their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.raw: dict[str, str] = {}
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.raw[self._inside] = self.raw.get(self._inside, "") + data
        else:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_a_page_is_written_and_can_be_read_back(tmp_path: Path) -> None:
    both = [explanation("PP"), explanation("PN")]
    path = report.write(tmp_path / "page.html", both, title="Two of one")
    text = path.read_text(encoding="utf-8")
    assert text == report.render(both, title="Two of one")
    page = Page(text)
    assert len(page.all("article")) == 1, "a PP and a PN of one input share a section"
    assert len([row for row in page.all("tr") if "data-case" in row]) == 2
    assert len(page.all("img")) == 1 + 2 * 2, "the input once, then each overlay and what the model saw"
    for words in ("Two of one", "it would be 1", "240", "2 explanations", "Scores before and after", "0.75"):
        assert words in page.text


def test_the_pictures_are_those_of_the_arrays() -> None:
    page = Page(report.render([explanation("PN")]))
    original, overlay, seen = (_image(image["src"]) for image in page.all("img"))
    assert original.shape == overlay.shape == seen.shape == (6, 6, 3)
    changed = (overlay != overlay[-1, -1]).any(axis=2)
    assert changed.sum() == 2
    assert changed[0, :2].all()
    red, _, blue = overlay[0, 0].astype(int)
    assert red > blue, "what a PN adds is orange"
    assert ((original != seen).any(axis=2) == changed).all()


def _image(address: str | None) -> np.ndarray[Any, Any]:
    assert address is not None
    head, _, data = address.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))


def everything_evil() -> Explanation:
    """An explanation whose every string is an attack."""
    settings = {EVIL: EVIL, "input": EVIL, "command": EVIL, "l1": EVIL, "model": EVIL}
    one = explanation("PN", message=EVIL, settings=settings, class_names=(EVIL, EVIL + "2", EVIL + "3"))
    return dataclasses.replace(one, feature_names=tuple(f"{EVIL}{i}" for i in range(36)))


@pytest.mark.parametrize("pictured", [True, False])
def test_every_string_stays_text(pictured: bool) -> None:
    harmless = explanation("PN", settings={"l1": 1, "command": "c"}, class_names=("a", "b", "c"))
    names = None if pictured else tuple(f"feature {i}" for i in range(36))
    evil = dataclasses.replace(everything_evil(), feature_names=None if pictured else everything_evil().feature_names)
    wanted = Page(report.render([dataclasses.replace(harmless, feature_names=names)]))
    page = Page(report.render([evil], title=EVIL))
    # One setting is shown more, as dt and dd in a div; nothing else may be new.
    extra = {"dt", "dd", "div"}
    assert [t for t, _ in page.tags if t not in extra] == [t for t, _ in wanted.tags if t not in extra]
    assert {name for _, attributes in page.tags for name in attributes if name.startswith("on")} == set()
    assert page.raw == wanted.raw, "script and style are the same, whatever the explanation says"
    assert page.text.count("onerror=alert(1)") >= 7
    assert "{{ 7*7 }}" in page.text


def test_the_policy_names_the_script_and_the_style_and_nothing_else() -> None:
    page = Page(report.render([explanation()]))
    [policy] = [m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))

    def named(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert rules == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": named(page.raw["style"]),
        "script-src": named(page.raw["script"]),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(page.all("script")) == len(page.all("style")) == 1
    # The policy must come before anything that it governs.
    names = [name for name, _ in page.tags]
    place_of_policy = next(i for i, (_, a) in enumerate(page.tags) if "http-equiv" in a)
    assert place_of_policy < min(names.index("style"), names.index("script"), names.index("img"))


def test_nothing_is_remote() -> None:
    text = report.render([explanation("PP"), explanation("PN")])
    page = Page(text)
    addresses = [
        a[name] or "" for _, a in page.tags for name in ("src", "href", "action", "data", "srcset") if name in a
    ]
    assert addresses
    assert [a for a in addresses if not a.startswith(("data:image/png;base64,", "#"))] == []
    assert re.findall(r"https?:|//\w+\.\w|@import|url\(", text) == []
    assert "style" not in {name for _, attributes in page.tags for name in attributes}, "the policy refuses these"


def test_the_script_sorts_filters_and_reads() -> None:
    script = Page(report.render([explanation()])).raw["script"]
    for needed in ("aria-sort", "FormData", "keydown", "pointermove"):
        assert needed in script
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttp", script)


def test_charts_carry_their_numbers() -> None:
    page = Page(report.render([explanation("PP"), explanation("PN")]))
    lines = [a for a in page.all("path") if "data-points" in a]
    assert [line["data-kind"] for line in lines] == ["PP", "PN"]
    points = json.loads(lines[0]["data-points"] or "")
    assert [[queries, value, nnz] for _, _, queries, value, nnz in points] == [
        [20, 9.0, 36],
        [40, 4.0, 20],
        [60, 2.0, 10],
        [80, 1.5, 4],
        [100, 1.25, 2],
    ]


@pytest.mark.parametrize(
    ("values", "objective"),
    [([3.0, 2.0, 1.0], 0.5), ([1e4, 10.0, 1e-3], 1e-3), ([-2.0, -3.0, 5.0], -4.0), ([1.0, 1.0, 1.0], 1.0)],
)
def test_lines_stay_inside_the_chart_and_keep_their_order(values: list[float], objective: float) -> None:
    count = len(values)
    history = dataclasses.replace(
        explanation().history,
        **{name: np.ones(count) for name in ("f", "eta", "stationarity")},
        nfev=np.arange(1, count + 1) * 30,
        nnz=np.ones(count, int),
        fun=np.array(values),
    )
    chart = convergence([explanation(history=history, objective=objective)])
    assert chart is not None
    [line] = chart.lines
    assert all(44 <= x <= 392 and 10 <= y <= 172 for x, y, *_ in [*line.points, [*line.end]])
    heights = [-y for _, y, *_ in line.points]
    assert np.argsort(heights, kind="stable").tolist() == np.argsort(values, kind="stable").tolist()
    assert all(10 <= tick.at <= 172 for tick in chart.up)
    assert 2 <= len(chart.up) <= 9
    assert chart.logarithmic == (min(*values, objective) > 0 and max(values) / min(*values, objective) > 30)


def test_what_was_never_measured_is_not_drawn() -> None:
    empty = History(*(np.zeros(0) for _ in range(6)))  # type: ignore[arg-type]
    broken = explanation(
        valid=False,
        history=empty,
        objective=np.nan,
        label=-1,
        contrast_label=-1,
        scores_before=np.zeros(0),
        scores_after=np.zeros(0),
        status=Status.ERROR,
        message="the model raised OSError",
    )
    assert convergence([broken]) is None
    page = Page(report.render([broken]))
    assert "the model raised OSError" in page.text
    assert "an unknown class" in page.text
    assert not [a for a in page.all("path") if "data-points" in a]


def test_scores_that_are_not_numbers_have_no_bar() -> None:
    rows = bars([("before", np.array([1.0, np.nan, -np.inf])), ("PN", np.array([np.nan, np.nan, np.nan]))], [0, 1, 2])
    assert [[bar.text for bar in row] for row in rows] == [
        ["1.000", "unknown"],
        ["unknown", "unknown"],
        ["-inf", "unknown"],
    ]
    assert rows[0][0].largest
    assert sum(bar.largest for row in rows for bar in row) == 1
    assert rows[1][0].length == 0


def test_of_many_classes_the_important_ones_are_shown() -> None:
    before = np.linspace(0, -50, 40)
    after = before.copy()
    after[33] = 9
    text = report.render([explanation(label=30, contrast_label=33, scores_before=before, scores_after=after)])
    assert "28 more classes" in Page(text).text
    heads = re.findall(r'<th scope="row">(\d+)</th>', text)
    assert heads == [*map(str, range(10)), "30", "33"]


def test_the_call_that_repeats_it_repeats_it() -> None:
    weights = np.zeros((36, 2))
    weights[:3, 1] = 1.0

    def model(batch: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        flat = batch.reshape(len(batch), -1) @ weights
        flat[:, 0] = 1.0
        return flat

    x0 = np.full((1, 6, 6), 0.1)
    one = zm.explain(model, x0, kind="PN", l1=0.02, budget=400, rng=3)
    page = Page(report.render([one]))
    call = re.search(r"zomirror\.explain\([^\n]*\)", page.text)
    assert call is not None
    again = eval(call[0], {"zomirror": zm, "model": model, "x0": x0})  # noqa: S307
    assert again.x.tobytes() == one.x.tobytes()
    assert again.nfev == one.nfev


def test_the_command_that_made_it_is_shown() -> None:
    command = "zomirror explain lenet digits:7 --kind PN --seed 0"
    assert command in Page(report.render([explanation(settings={"command": command})])).text


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(zm.errors.ArgumentError, match="at least one"):
        report.render([])
    with pytest.raises(zm.errors.ArgumentTypeError, match="got str at place 1"):
        report.render([explanation(), "explanation"])  # type: ignore[list-item]


# --- the answer in words -------------------------------------------------------------------------------------------


def test_a_picture_is_answered_with_pixels_and_their_place() -> None:
    assert answer([explanation("PN"), explanation("PP")]) == (
        "classified 0 because of 2 pixels (upper left), which alone are enough; "
        "with 2 pixels added (upper left) it would be 1"
    )
    taken = explanation("PN").x * -1
    assert "with 2 pixels changed (upper left)" in answer([explanation("PN", x=taken)])


def test_a_table_is_answered_with_its_features() -> None:
    x = np.array([0.0, -3.0, 0.5, 0.0, 0.001])
    table = {
        "x": x,
        "x0": np.ones(5),
        "perturbed": 1 + x,
        "scale": np.array([1.0, 100.0, 1.0, 1.0, 1.0]),
        "nnz": 3,
        "feature_names": ("a", "b", "c", "d", "e"),
        "class_names": ("no", "yes", "maybe"),
    }
    assert answer([explanation("PN", **table)]) == (
        "classified no; with c +0.5 (to 1.5), b -3 (to -2) and e +0.001 (to 1) it would be yes"
    )
    present = table | {"feature_names": None, "perturbed": x}
    assert answer([explanation("PP", **present)]) == (
        "classified no because of feature 2 = 0.5, feature 1 = -3 and feature 4 = 0.001, which alone are enough"
    )


def test_what_was_not_found_is_said() -> None:
    lost = explanation("PN", valid=False, message="no valid explanation was found: try another seed")
    assert answer([lost]) == "classified 0; PN: no valid explanation was found: try another seed"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([(4, 4)], "centre"),
        ([(0, 4)], "top"),
        ([(8, 4)], "bottom"),
        ([(4, 0)], "left"),
        ([(8, 8)], "lower right"),
        ([(0, 0), (8, 8)], "upper left and lower right"),
        ([(i, j) for i in (1, 4, 7) for j in (1, 4, 7)], "all over it"),
    ],
)
def test_places_have_names(cells: list[tuple[int, int]], words: str) -> None:
    change = np.zeros((9, 9))
    for cell in cells:
        change[cell] = -0.5
    assert place(change) == words


# --- a file from anywhere ------------------------------------------------------------------------------------------

STRANGE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0]


def strange() -> list[dict[str, Any]]:
    """Explanations that a file can hold, and that no search would give."""
    base, found = explanation(), list[dict[str, Any]]()
    empty = np.zeros((0, 6))
    for value in STRANGE:
        found += [{name: value} for name in ("margin", "objective", "l1_norm", "l2_norm")]
        found += [{name: np.full((1, 6, 6), value)} for name in ("x", "perturbed")]
        found += [{"x": np.full(4, value), "x0": np.ones(4), "perturbed": np.full(4, value)}]
        found += [{name: np.full(3, value)} for name in ("scores_before", "scores_after")]
        found += [{"scores_before": np.full(30, value), "scores_after": np.full(30, value)}]
        found += [{"history": dataclasses.replace(base.history, fun=np.array([value, 1.0, 2.0, value, 3.0]))}]
    for count in (-5, 0, 10**18):
        found += [{"nfev": count}, {"nnz": count}, {"seed": count}]
        found += [{"history": dataclasses.replace(base.history, nfev=np.full(5, count))}]
    found += [{"settings": {"input": ["a", {"b": 1}], "command": 5, "mean": "q", "std": [0.0], "method": ["z"]}}]
    found += [{"x": empty, "x0": empty, "perturbed": empty}, {"class_names": ("", "", "")}]
    return found


@pytest.mark.parametrize("changes", strange(), ids=lambda changes: "-".join(changes))
def test_whatever_a_file_holds_the_page_is_made(changes: dict[str, Any]) -> None:
    for kind in ("PP", "PN"):
        one = Explanation.from_json(explanation(kind, **changes).to_json())
        assert "</html>" in report.render([one])
