"""The report opened in a real browser: nothing remote, nothing refused, sorting, filtering, reading by keyboard."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.report.test_page import EVIL, explanation
from tests.support import chromium
from zomirror import report
from zomirror.contrast import Explanation

REASON = chromium.missing()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
TAB, RIGHT, END, ENTER = "\ue004", "\ue014", "\ue010", "\ue007"


def explanations() -> list[Explanation]:
    """Four inputs: two classes, one explanation that is not valid, one table, names that attack."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(3):
        x0 = rng.uniform(size=(1, 6, 6)).astype(np.float32)
        for kind in ("PP", "PN"):
            valid = (i, kind) != (1, "PN")
            changes: dict[str, Any] = {"x0": x0, "label": i % 2, "valid": valid, "nnz": 10 * i + (kind == "PN")}
            found.append(explanation(kind, objective=float(3 - i), settings={"input": f"picture {i}"}, **changes))
    table = explanation(
        "PN", class_names=(EVIL, "harmless", "other"), message=EVIL, settings={"input": EVIL, EVIL: EVIL}
    )
    found.append(dataclasses.replace(table, feature_names=tuple(f"{EVIL}{i}" for i in range(36))))
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report.write(tmp_path_factory.mktemp("page") / "report.html", explanations(), title=EVIL)


@pytest.fixture
def browser(session: chromium.Browser, page: Path) -> Iterator[chromium.Browser]:
    """The page, freshly opened; whatever a test does, the console stays empty and nothing remote is asked for."""
    session.open("about:blank")
    session.console(), session.requests()
    session.look(*SIZES["desktop"], "light")
    session.open(page.as_uri())
    yield session
    assert session.console() == []
    assert [url for url in session.requests() if not url.startswith(("data:", page.as_uri()))] == []


def shown(browser: chromium.Browser, column: int) -> list[str]:
    """The texts of a column of the overview, top to bottom, without hidden rows."""
    script = """return [...document.querySelectorAll("#overview-table tbody tr")]
        .filter((row) => !row.hidden).map((row) => row.cells[arguments[0]].textContent.trim())"""
    texts: list[str] = browser.run(script, column)
    return texts


def choose(browser: chromium.Browser, name: str, value: str) -> None:
    script = """const select = document.querySelector(`select[name=${arguments[0]}]`);
        select.value = arguments[1]; select.dispatchEvent(new Event("change", {bubbles: true}))"""
    browser.run(script, name, value)


def test_the_table_sorts_both_ways(browser: chromium.Browser) -> None:
    before = shown(browser, 5)
    browser.click("#overview-table th:nth-child(6) button")
    numbers = [int(text) for text in before]
    assert [int(text) for text in shown(browser, 5)] == sorted(numbers) != numbers
    browser.click("#overview-table th:nth-child(6) button")
    assert [int(text) for text in shown(browser, 5)] == sorted(numbers, reverse=True)
    assert browser.run("return document.querySelectorAll('[aria-sort]').length") == 1
    browser.click("#overview-table th:nth-child(2) button")
    assert shown(browser, 1) == sorted(shown(browser, 1))


def test_the_filters_hide_rows_and_sections(browser: chromium.Browser) -> None:
    articles = "return [...document.querySelectorAll('article')].filter((a) => !a.hidden).length"
    assert browser.run(articles) == 4
    choose(browser, "label", "1")
    assert shown(browser, 2) == ["1", "1"]
    assert browser.run(articles) == 1
    assert browser.run("return document.getElementById('count').textContent") == "2 of 7 shown"
    choose(browser, "validity", "not valid")
    assert shown(browser, 1) == ["PN"]
    choose(browser, "label", "0")
    assert shown(browser, 1) == []
    browser.click("#all")
    assert len(shown(browser, 0)) == 7
    assert browser.run(articles) == 4


def test_names_that_attack_stay_text(browser: chromium.Browser) -> None:
    assert browser.run("return document.title") == EVIL
    assert browser.run("return document.querySelectorAll('[onerror], img[src=x]').length") == 0
    assert browser.run("return document.scripts.length") == 1
    assert EVIL in shown(browser, 2)
    choose(browser, "label", EVIL)
    assert shown(browser, 2) == [EVIL]
    assert EVIL in browser.run("return document.querySelector('article:last-of-type h2').textContent")


def test_an_injected_script_would_be_refused(session: chromium.Browser, page: Path, tmp_path: Path) -> None:
    """Even if a string got through: the policy stops it, and the console says so."""
    spoilt = tmp_path / "spoilt.html"
    attack = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    spoilt.write_text(page.read_text().replace("<main>", f"<main>{attack}"))
    session.open("about:blank")
    session.console(), session.requests()
    session.open(spoilt.as_uri())
    assert session.run("return document.title") == EVIL
    refusals = session.console()
    assert len(refusals) >= 2
    assert all("Content Security Policy" in line for line in refusals)


def test_the_chart_is_read_by_pointer_and_by_keys(browser: chromium.Browser) -> None:
    reading = "return document.querySelector('.reading').textContent"
    hidden = "const svg = document.querySelector('.chart svg'); return svg.checkVisibility()"
    assert not browser.run(hidden)  # folded away until somebody asks
    browser.run("document.querySelector('.chart').closest('details').open = true")
    assert browser.run(hidden)
    box = """const svg = document.querySelector('.chart svg'); svg.scrollIntoView({block: 'center'});
        const box = svg.getBoundingClientRect(); return [box.left + 0.98 * box.width, box.top + box.height / 2]"""
    browser.hover(*browser.run(box))
    assert browser.run(reading).splitlines() == [
        "PP: objective 1.25 after 100 queries, 2 non-zero",
        "PN: objective 1.25 after 100 queries, 2 non-zero",
    ]
    browser.hover(5, 5)
    assert browser.run(reading).strip() == ""
    browser.run("document.querySelector('.chart svg').focus()")
    browser.press(RIGHT)
    assert "objective 9 after 20 queries, 36 non-zero" in browser.run(reading)
    browser.press(RIGHT)
    assert "objective 4 after 40 queries, 20 non-zero" in browser.run(reading)
    browser.press(END)
    assert "objective 1.25 after 100 queries" in browser.run(reading)


def test_everything_can_be_reached_by_the_keyboard(browser: chromium.Browser) -> None:
    reached = []
    for _ in range(14):
        browser.press(TAB)
        reached.append(browser.run("return document.activeElement.tagName + ' ' + (document.activeElement.name || '')"))
    assert reached[0].strip() == "A", "first a way past the table"
    assert {"SELECT label", "SELECT validity", "SELECT kind"} <= set(reached)
    browser.run("document.querySelector('#overview-table th:nth-child(6) button').focus()")
    browser.press(ENTER)
    assert [int(text) for text in shown(browser, 5)] == sorted(int(text) for text in shown(browser, 5))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_fits_the_window_in_both_themes(browser: chromium.Browser, page: Path, size: str, theme: str) -> None:
    browser.look(*SIZES[size], theme)
    browser.open(page.as_uri())
    width, window = browser.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= window, "the page must not scroll sideways"
    pixels = np.asarray(Image.open(io.BytesIO(browser.screenshot())).convert("L"))
    assert pixels.shape[::-1] == SIZES[size]
    assert (np.median(pixels) > 128) == (theme == "light")
    assert pixels.std() > 10, "something is to be seen"
    small = """return [...document.querySelectorAll("body *")]
        .filter((e) => e.getClientRects().length && e.children.length === 0 && e.textContent.trim())
        .filter((e) => parseFloat(getComputedStyle(e).fontSize) < 10).map((e) => e.tagName)"""
    assert browser.run(small) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_told_from_its_ground(browser: chromium.Browser, theme: str) -> None:
    """Contrast of at least 4.5 to 1, as WCAG 2 asks of text."""
    browser.look(*SIZES["desktop"], theme)
    script = """const seen = {}, texts = "h1, p, a, td, th, b, .badge, summary, output, button, dt, figcaption";
        for (const e of document.querySelectorAll(texts)) {
          if (!e.getClientRects().length || !e.textContent.trim()) continue;
          let ground = e;
          while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)" && ground.parentElement)
            ground = ground.parentElement;
          const colours = [getComputedStyle(e).color, getComputedStyle(ground).backgroundColor];
          seen[colours.join("|")] = e.tagName + "." + e.className;
        }
        return seen"""
    pairs = browser.run(script)
    assert len(pairs) > 5
    poor = {}
    for pair, where in pairs.items():
        ink, ground = (_luminance(colour) for colour in pair.split("|"))
        ratio = (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05)
        if ratio < 4.5:
            poor[where] = (pair, round(ratio, 2))
    assert poor == {}


def _luminance(colour: str) -> float:
    """Relative luminance of rgb(r, g, b), as WCAG 2 defines it."""
    channels = np.array([float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
