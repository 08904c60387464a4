"""The studio in a real browser: every control, with the mouse and by keyboard, and a page that attacks it."""

from __future__ import annotations

import functools
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zomirror as zm
from tests.support import chromium, loan_table, photograph, review_texts
from tests.support.studio_server import studio
from zomirror import models
from zomirror.datasets import digits
from zomirror.schema.explainer import Explainer
from zomirror.studio.material import Material
from zomirror.studio.session import Session

REASON = chromium.missing()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
TAB, ENTER, DOWN, LEFT, SPACE = "\ue004", "\ue007", "\ue015", "\ue012", "\ue00d"


ROW = json.loads(loan_table.loans().drop(columns="phone").iloc[[1]].to_json(orient="records"))[0]


def table_session() -> Session:
    frame = loan_table.loans().drop(columns="phone")
    explainer = Explainer(loan_table.scores, "table", frame=frame, class_names=("refused", "granted"))
    samples = [(f"loans:{i}", frame.iloc[[i]]) for i in range(4)]
    return Session(explainer, Material(samples, explainer.table), "loans")


def digit_session() -> Session:
    samples = [(f"digit {i}", (digits().images[i] / np.float32(255))[None]) for i in (14, 3)]
    explainer = Explainer(zm.onnx_classifier(models.path("lenet")), "vector", shape=(1, 28, 28), most=600)
    return Session(explainer, Material(samples, None, (1, 28, 28)), "lenet")


def photo_session() -> Session:
    shape = (3, photograph.SIDE, photograph.SIDE)
    explainer = Explainer(photograph.scores, "regions", shape=shape, class_names=photograph.CLASSES)
    return Session(explainer, Material([], None, shape), "discs")


def text_session() -> Session:
    explainer = Explainer(review_texts.scores, "words", class_names=("bad", "good"))
    return Session(explainer, Material([("review", review_texts.REVIEW)]), "reviews")


class Page:
    """The page of a studio, and what a person does on it."""

    def __init__(self, browser: chromium.Browser, session: Session, address: str) -> None:
        self.browser, self.session, self.address = browser, session, address

    def look(self, size: str, theme: str) -> None:
        self.browser.look(*SIZES[size], theme)

    def run(self, script: str, *args: object) -> Any:
        return self.browser.run(script, *args)

    def until(self, script: str, seconds: float = 60, *args: object) -> Any:
        end = time.monotonic() + seconds
        while not (found := self.run(f"return {script}", *args)):
            assert time.monotonic() < end, f"{script}: {self.status()} {self.browser.console()}"
            time.sleep(0.03)
        return found

    def set(self, selector: str, value: str) -> None:
        """Choose a value as the browser does, with its events."""
        script = """const one = document.querySelector(arguments[0]); one.value = arguments[1];
            for (const name of ["input", "change"]) one.dispatchEvent(new Event(name, {bubbles: true}))"""
        self.run(script, selector, value)

    def explain(self) -> None:
        """Press the button and wait for the answer."""
        before = self.run("return document.querySelectorAll('article').length")
        self.browser.click("#explain")
        self.until(f"document.querySelectorAll('article').length > {min(before, 3)} && !explain.disabled")

    def status(self) -> str:
        text: str = self.run("return document.getElementById('status').textContent")
        return text

    def answers(self) -> list[str]:
        texts: list[str] = self.run("return [...document.querySelectorAll('.answer')].map((one) => one.textContent)")
        return texts

    def stage(self, *places: tuple[float, float]) -> None:
        """Draw on the picture: places as shares of its width and height."""
        self.run("document.getElementById('stage').scrollIntoView({block: 'center'})")
        box = self.run("const b = stage.canvas.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]")
        self.browser.drag(*((box[0] + x * box[2], box[1] + y * box[3]) for x, y in places))


@pytest.fixture
def page(session: chromium.Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page of the session that the test names, freshly opened; the console stays empty, nothing else is asked."""
    session.open("about:blank")
    session.console(), session.requests()
    with studio(made := request.param()) as address:
        session.look(*SIZES["desktop"], "light")
        session.open(address)
        found = Page(session, made, address)
        found.until("document.body.dataset.ready === 'yes'")
        yield found
        assert session.console() == []
        assert [url for url in session.requests() if not url.startswith(("data:", address, "blob:"))] == []
        session.open("about:blank")


def on(session: Callable[[], Session]) -> Any:
    return pytest.mark.parametrize("page", [session], indirect=True, ids=["page"])


@on(table_session)
def test_a_row_with_two_columns_fixed_and_one_directed(page: Page, tmp_path: Path) -> None:
    columns = page.run("return state.columns.map((one) => one.name)")
    page.set("#sample", "1")
    page.until("document.getElementById('value-0').value === arguments[0]", 20, str(ROW["income"]))
    place = {name: i for i, name in enumerate(columns)}
    script = "return [...document.getElementById(arguments[0]).options].map((one) => one.value)"
    options = page.run(script, f"rule-{place['housing']}")
    assert options == ["", "fixed"], "a category has no direction"
    for name, rule in (("age", "fixed"), ("housing", "fixed"), ("rate", "decreasing")):
        page.set(f"#rule-{place[name]}", rule)
    page.explain()
    [answer] = page.session.answers.values()
    rules = {"fixed": ["age", "housing"], "decreasing": ["rate"]}
    frame = loan_table.loans().drop(columns="phone")
    expected = zm.explain(loan_table.scores, ROW, features=zm.Table(frame, **rules), class_names=("refused", "granted"))
    assert (answer.valid, answer.changes, answer.nfev) == (True, expected.changes, expected.nfev)
    assert page.answers()[0].lower().startswith(expected.words()[:20].lower())
    assert f"{expected.nfev:,} queries" in page.run("return document.getElementById('queries').textContent")
    assert "fixed" in page.run(f"return document.getElementById('rule-{place['age']}').value")
    page.run("document.querySelector('details').open = true")
    for name in ("age", "housing", "rate"):
        page.set(f"#rule-{place[name]}", "")
    page.set("#parameter-answers", "3")
    page.set(f"#value-{place['income']}", "20000")
    page.explain()
    count = len(page.session.answers)
    assert 3 <= count <= 4, "up to three more that differ"
    titles = page.run("return [...document.querySelectorAll('article h3')].map((one) => one.textContent)")
    assert titles == ["PN of loans:1", *["PN of loans:1, changed"] * (count - 1)]
    page.browser.click("article:first-child .remove")
    page.until(f"document.querySelectorAll('article').length === {count - 1}")
    assert page.run("return document.getElementById('head-answers').textContent") == f"Answers ({count - 1} of 4)"
    link = page.run("const a = document.getElementById('save'); return [a.hidden, a.href, a.download]")
    assert link == [False, page.address + "report", "zomirror-report.html"]
    page.browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.browser.click("#save")
    report = tmp_path / "zomirror-report.html"
    end = time.monotonic() + 30
    while not report.exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert report.read_text().count("<article") == len({one.input_key for one in page.session.answers.values()})
    page.browser.open(page.address)
    page.until("document.body.dataset.ready === 'yes'")
    assert len(page.answers()) == count - 1, "what is compared is there when the page is loaded again"


@on(photo_session)
def test_a_photograph_with_a_painted_region(page: Page, tmp_path: Path) -> None:
    x0 = photograph.photograph()
    pixels = (np.moveaxis(x0, 0, -1) * 255).round().astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "disc.png")
    assert page.run("return document.querySelector('.ink').hidden"), "a photograph cannot be drawn"
    page.browser.type("#upload", str(tmp_path / "disc.png"))
    page.until("document.getElementById('status').textContent === 'The picture is ready.'")
    page.set("#brush", "5")
    page.stage((0.1, 0.35), (0.4, 0.35), (0.4, 0.42), (0.1, 0.42))
    page.set("#parameter-target", "right")
    page.explain()
    [answer] = page.session.answers.values()
    assert answer.settings["target"] == 1
    np.testing.assert_allclose(answer.x0, pixels.transpose(2, 0, 1) / 255, atol=1e-6)
    kept = np.array(page.run("return stage.kept")).reshape(photograph.SIDE, photograph.SIDE)
    assert 200 < kept.sum() < kept.size / 2
    assert answer.valid
    changed = (answer.perturbed != answer.x0).any(axis=0)
    assert changed.any()
    assert not (changed & kept).any(), "what was painted has not changed"
    assert page.run("return document.querySelectorAll('article .panels img').length") == 3
    assert page.run("return document.querySelector('#seen img').naturalWidth") == photograph.SIDE
    page.run("document.querySelector('input[value=release]').checked = true")
    page.stage((0.1, 0.35), (0.4, 0.35))
    assert page.run("return stage.kept.filter(Boolean).length") < kept.sum()
    page.browser.click("#clear")
    assert page.run("return stage.kept.some(Boolean)") is False
    page.browser.type("#upload", __file__)
    page.until("document.getElementById('status').textContent.startsWith('expected a PNG or JPEG')")


@on(digit_session)
def test_a_drawn_digit_is_watched_stopped_and_compared(page: Page) -> None:
    page.browser.click("#blank")
    assert page.run("return stage.tool()") == "draw"
    page.set("#brush", "4")
    page.stage((0.3, 0.2), (0.7, 0.2), (0.5, 0.85))
    watch = "new MutationObserver(() => window.seen++).observe(document.getElementById('seen'), {childList: true})"
    page.run(f"window.seen = 0; {watch}")
    page.explain()
    [first] = page.session.answers.values()
    assert first.x0.shape == (1, 28, 28)
    assert first.x0[0, 2:9].max() > 0.9
    assert first.label == 7
    assert page.run("return window.seen") >= 1, "the best answer was seen while it improved"
    assert page.run("return document.querySelector('article h3').textContent") == "PN of drawn picture"
    page.set("#parameter-kind", "PP")
    page.explain()
    assert [one.kind for one in page.session.answers.values()] == ["PN", "PP"]
    assert len(page.answers()) == 2
    page.session.explainer = Explainer(  # slower, so that a person can stop it
        slow(page.session.explainer.model), "vector", shape=(1, 28, 28), most=10_000
    )
    page.set("#parameter-kind", "PN")
    page.browser.click("#next")
    page.until("!stage.edited")
    page.browser.click("#explain")
    page.until("document.getElementById('queries').textContent !== '0 queries'")
    page.browser.open(page.address)  # loaded again, it watches the same search
    page.until("document.body.dataset.ready === 'yes' && explain.disabled")
    assert page.run("return [explain.disabled, document.getElementById('stop').disabled]") == [True, False]
    page.browser.click("#stop")
    page.until("!explain.disabled")
    last = list(page.session.answers.values())[-1]
    assert last.status is (zm.Status.CALLBACK if last.valid else zm.Status.NOT_FOUND)
    assert last.nfev < 9_000
    assert page.run("return document.getElementById('stop').disabled") is True
    page.set("#parameter-target", "99")
    page.browser.click("#explain")
    page.until("document.querySelector('#status.failed')")
    assert "expected target in 0..9, got 99" in page.status()


def slow(model: Any) -> Callable[[Any], Any]:
    def scored(batch: Any) -> Any:
        time.sleep(0.05)
        return model(batch)

    return scored


@on(text_session)
def test_a_text_by_keyboard_alone(page: Page) -> None:
    seen: list[str] = []
    for _ in range(40):
        page.browser.press(TAB)
        seen.append(page.run("const one = document.activeElement; return one.id || one.className || one.tagName"))
        if seen[-1] == "text":
            page.browser.press(*"slow and ")
        if seen[-1] == "explain":
            page.browser.press(ENTER)
            break
    assert seen[0] == "skip"
    for control in ("sample", "previous", "next", "text", "parameter-kind", "parameter-target", "parameter-budget"):
        assert control in seen
    page.until("document.querySelector('article')")
    [answer] = page.session.answers.values()
    assert "slow and" in answer.x0
    assert answer.valid
    assert page.run("return document.querySelectorAll('mark').length") == answer.nnz
    for _ in range(10):
        page.browser.press(TAB)
        if page.run("return document.activeElement.className") == "remove":
            page.browser.press(ENTER)
            break
    page.until("!document.querySelector('article')")
    assert page.run("return document.activeElement.id") == "answers", "the focus is not lost"


@on(digit_session)
def test_a_picture_is_painted_by_keyboard(page: Page) -> None:
    page.run("document.getElementById('stage').focus()")
    before = page.run("return stage.at")
    page.browser.press(LEFT, LEFT, DOWN, SPACE)
    assert page.run("return stage.at") == [before[0] - 2, before[1] + 1]
    assert page.run("return stage.kept[stage.at[1] * 28 + stage.at[0]]") is True


@on(table_session)
def test_phone_and_desktop_in_both_themes(page: Page) -> None:
    page.explain()
    papers = set()
    for size in SIZES:
        for theme in ("light", "dark"):
            page.look(size, theme)
            width = page.run("return [document.documentElement.scrollWidth, window.innerWidth]")
            assert width[0] <= width[1], f"{size}: nothing hangs out"
            papers.add(page.run("return getComputedStyle(document.body).backgroundColor"))
    assert len(papers) == 2
    small = page.run(
        "return [...document.querySelectorAll('button, select, input:not([type=radio]), a.button')]"
        ".filter((one) => one.offsetParent && one.getBoundingClientRect().height < 24).map((one) => one.id)"
    )
    assert small == [], "everything can be touched"
    unnamed = page.run(
        "return [...document.querySelectorAll('button, select, input, textarea')]"
        ".filter((one) => !(one.labels?.length || one.textContent.trim() || one.ariaLabel)).map((one) => one.outerHTML)"
    )
    assert unnamed == []


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_a_page_on_another_port_cannot_drive_it(session: chromium.Browser) -> None:
    """Even one that knows the token: it can neither read, nor start a search, nor listen."""
    handler = functools.partial(_Handler, directory=str(Path(__file__).parent))
    made = text_session()
    with studio(made) as address, http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        session.open(f"http://127.0.0.1:{evil.server_address[1]}/evil.html?to={address}")
        end = time.monotonic() + 60
        while not (results := session.run("return window.results")):
            assert time.monotonic() < end
            time.sleep(0.05)
        session.open("about:blank")
        evil.shutdown()
    names = ("read", "post", "simple post", "events", "socket", "script", "image", "frame")
    assert results == dict.fromkeys(names, "out")
    assert made.progress == {}, "no search was begun"
    session.console()
