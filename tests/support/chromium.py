"""A real browser for the tests: Debian's chromium, asked through chromedriver's plain HTTP protocol.

`python -m tests.support.chromium` says where it is, after installing it where that is possible (root on Debian or
Ubuntu); where it is neither there nor installable it says why, and the tests that need it are skipped with that reason.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import urllib3

BROWSERS, DRIVERS = ("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key that the WebDriver standard gives to elements


def find() -> tuple[str, str] | None:
    """The browser and its driver, if both are installed."""
    browser, driver = (next(filter(None, map(shutil.which, names)), None) for names in (BROWSERS, DRIVERS))
    return (browser, driver) if browser and driver else None


def missing() -> str:
    """Why there is no browser; an empty string when there is one."""
    return "" if find() else "chromium and chromedriver are not installed: python -m tests.support.chromium"


def install() -> str:
    """Install both from the distribution; the reason when that cannot be, else an empty string."""
    if find():
        return ""
    if not shutil.which("apt-get"):
        return "chromium and chromedriver are not installed, and this is no Debian to install them from"
    if os.geteuid() != 0:
        return "chromium and chromedriver are not installed: apt-get install chromium chromium-driver"
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium", "chromium-driver"]):
        done = subprocess.run(["apt-get", "--quiet", *command], env=quiet, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"apt-get {command[0]} failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
    return "" if find() else "apt-get installed the packages, but chromium or chromedriver is not found"


class Browser:
    """One session of the browser."""

    def __init__(self, pool: urllib3.HTTPConnectionPool, profile: str, browser: str) -> None:
        self._pool, self._base = pool, ""
        options = {"binary": browser, "args": [*FLAGS, f"--user-data-dir={profile}"]}
        logs = {"browser": "ALL", "performance": "ALL"}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs}
        session = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._base = f"/session/{session['sessionId']}"

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body or {}).encode() if method == "POST" else None
        answer = self._pool.request(method, self._base + path, body=data, timeout=90, retries=False)
        value = answer.json()["value"]
        if answer.status != 200:
            raise RuntimeError(f"{value['error']}: {value['message'].splitlines()[0]}")
        return value

    def open(self, url: str) -> None:
        """Load a page and wait for it."""
        self._send("POST", "/url", {"url": url})

    def run(self, script: str, *args: object) -> Any:
        """What the JavaScript returns; its arguments are arguments[0], ..."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(args)})

    def click(self, selector: str) -> None:
        """Click the element as a person does: it must be in reach."""
        element = self._send("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self._send("POST", f"/element/{element}/click")

    def type(self, selector: str, text: str) -> None:
        """Type into the element; for a file input, the path of the file."""
        element = self._send("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self._send("POST", f"/element/{element}/value", {"text": text})

    def drag(self, *places: tuple[float, float]) -> None:
        """Press the button of the mouse at the first place in the window, and move it along the others."""
        moves: list[dict[str, Any]] = [
            {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 10} for x, y in places
        ]
        down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        mouse = {"type": "pointer", "id": "mouse", "actions": [moves[0], down, *moves[1:], up]}
        self._send("POST", "/actions", {"actions": [mouse]})

    def press(self, *keys: str) -> None:
        """Press keys one after the other; the special ones by their WebDriver code points."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def hover(self, x: float, y: float) -> None:
        """Move the pointer to a place in the window."""
        move = {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}
        self._send("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def command(self, name: str, **parameters: object) -> Any:
        """A command of the DevTools protocol."""
        return self._send("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def look(self, width: int, height: int, theme: str) -> None:
        """A window of this size for a person who likes `theme`, light or dark."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def screenshot(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self._send("GET", "/screenshot"))

    def console(self) -> list[str]:
        """What the page wrote to the console since the last call, refusals of its policy included."""
        return [entry["message"] for entry in self._send("POST", "/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last call."""
        entries = [json.loads(e["message"])["message"] for e in self._send("POST", "/se/log", {"type": "performance"})]
        return [e["params"]["request"]["url"] for e in entries if e["method"] == "Network.requestWillBeSent"]

    def close(self) -> None:
        """End the browser."""
        self._send("DELETE", "")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a fresh profile and a driver of its own on a free port of this machine."""
    found = find()
    if found is None:
        raise RuntimeError(missing())
    browser, driver = found
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder, "driver.log")
        with log.open("w") as file:
            process = subprocess.Popen([driver, "--port=0"], stdout=file, stderr=file)
        try:
            pool = urllib3.HTTPConnectionPool("127.0.0.1", _port(process, log))
            session = Browser(pool, str(Path(folder, "profile")), browser)
            try:
                yield session
            finally:
                with suppress(RuntimeError, urllib3.exceptions.HTTPError):
                    session.close()
                pool.close()
        finally:
            process.terminate()
            process.wait(timeout=30)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    """The port that the driver chose and wrote down."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        words = log.read_text().split("started successfully on port ")
        if len(words) > 1 and "\n" in words[1]:
            return int(words[1].split(".")[0])
        time.sleep(0.05)
    raise RuntimeError(f"chromedriver did not start: {log.read_text()}")


if __name__ == "__main__":
    reason = install()
    sys.stdout.write(f"browser tests are skipped: {reason}\n" if reason else f"browser: {(find() or ('', ''))[0]}\n")
