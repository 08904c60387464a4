"""The documentation, built strictly and opened in a real browser: nothing remote, nothing in the console."""

from __future__ import annotations

import functools
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import chromium

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))
]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}

needs_browser = pytest.mark.skipif(bool(chromium.missing()), reason=chromium.missing())


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that does not talk."""

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("page", PAGES)
def test_equations_are_set_without_a_script(site: Path, page: str) -> None:
    html = (site / page).read_text()
    assert "arithmatex" not in html
    outside_code = re.sub(r"<(code|pre)\b.*?</\1>", "", html, flags=re.DOTALL)
    assert re.findall(r"\$\$|\\(?:frac|lVert|sqrt|sum)\b", outside_code) == []


def test_the_font_of_the_equations_is_small_and_whole(site: Path) -> None:
    from fontTools.ttLib import TTFont

    assert (site / "math.woff").stat().st_size < 200_000
    font = TTFont(site / "math.woff")
    assert "MATH" in font
    text = "".join((site / page).read_text() for page in PAGES)
    used = {
        int(code, 16) for element in re.findall(r"<math.*?</math>", text) for code in re.findall(r"&#x(\w+);", element)
    }
    invisible = {0x2061, 0x00A0, 0x2009, 0x200A, 0x202F}
    assert len(used) > 10
    assert used - invisible - set(font.getBestCmap()) == set()


def first_visit(browser: chromium.Browser, url: str, size: str, theme: str) -> None:
    """Open the page as a person who comes for the first time."""
    browser.open("about:blank")  # away from the page before, which would remember its theme
    browser.look(*SIZES[size], theme)
    browser.command("Storage.clearDataForOrigin", origin=url, storageTypes="local_storage")
    browser.console(), browser.requests()
    browser.open(url)


def does_not_scroll_sideways(browser: chromium.Browser) -> bool:
    width, window = browser.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    return bool(width <= window)


@needs_browser
@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_cleanly(session: chromium.Browser, address: str, page: str) -> None:
    """At the width of a desk, and then, without loading it again, at that of a phone."""
    first_visit(session, f"{address}/{page}", "desktop", "light")
    assert does_not_scroll_sideways(session)
    session.look(*SIZES["phone"], "light")
    assert does_not_scroll_sideways(session)
    assert session.console() == []
    assert [url for url in session.requests() if not url.startswith((address, "data:", "blob:", "about:"))] == []


@needs_browser
@pytest.mark.parametrize(("theme", "scheme"), [("light", "default"), ("dark", "slate")])
@pytest.mark.parametrize("size", SIZES)
def test_a_page_has_the_theme_that_its_reader_likes(
    session: chromium.Browser, address: str, size: str, theme: str, scheme: str
) -> None:
    """One page stands for all: they share what decides it, and in either theme a page is as wide."""
    first_visit(session, f"{address}/index.html", size, theme)
    assert session.run("return document.body.dataset.mdColorScheme") == scheme
    assert does_not_scroll_sideways(session)
    assert session.console() == []


@needs_browser
def test_the_search_finds_a_page(session: chromium.Browser, address: str) -> None:
    session.look(*SIZES["desktop"], "light")
    session.open(f"{address}/index.html?q=Halley")
    found = """const end = Date.now() + 10000;
        return new Promise((resolve) => {
          const look = () => {
            const links = [...document.querySelectorAll(".md-search-result__link")].map((link) => link.href);
            if (links.length || Date.now() > end) resolve(links); else setTimeout(look, 50);
          };
          look();
        })"""
    assert any("concepts.html" in link for link in session.run(found))
