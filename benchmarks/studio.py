"""Measure how soon the studio shows an answer: from the click on Explain to the first valid answer on the screen.

A digit of the bundled LeNet, a row of a pipeline (tests/support/loan_table.py), and a photograph of 224 x 224 pixels
with the EfficientNet-lite0 of `regions.py`, each with its default budget, in Chromium on this machine. Of each,
several inputs are asked, PN only; the first of each is not counted, because it warms the caches.

    python benchmarks/studio.py             writes results/studio.json
    python benchmarks/studio.py --quick     two inputs of each and no photographs, prints only
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.kit import efficientnet
from benchmarks.kit.machine import machine, store
from tests.support import loan_table
from tests.support.chromium import Browser, chromium
from tests.support.studio_server import studio

import zomirror as zm
from zomirror import datasets, models
from zomirror.schema.explainer import Explainer
from zomirror.studio.material import Material
from zomirror.studio.session import Session

LIMITS = {"digit": 5.0, "row": 5.0, "photograph": 30.0}
"""The aim for the first answer, in seconds."""
SHOWN = (
    "document.getElementById('seen').children.length > 0 || document.querySelectorAll('article').length > arguments[0]"
)
DONE = "!document.getElementById('explain').disabled && document.querySelectorAll('article').length > arguments[0]"


def sessions(count: int, *, quick: bool) -> dict[str, Session]:
    """What is measured, with `count` inputs each."""
    images = datasets.digits().images[:count] / np.float32(255)
    frame = loan_table.loans()
    digits = Explainer(zm.onnx_classifier(models.path("lenet")), shape=(1, 28, 28))
    rows = Explainer(loan_table.pipeline(), "table", frame=frame)
    found = {
        "digit": Session(digits, Material([(str(i), x[None]) for i, x in enumerate(images)], None, (1, 28, 28))),
        "row": Session(rows, Material([(str(i), frame.iloc[[i]]) for i in range(count)], rows.table)),
    }
    if quick:
        return found
    shape, (mean, std) = (3, 224, 224), ([efficientnet.MEAN] * 3, [efficientnet.STD] * 3)
    model = zm.onnx_classifier(efficientnet.network())
    photos = Explainer(model, "regions", shape=shape, mean=tuple(mean), std=tuple(std))
    samples = [(str(i), np.asarray(x, np.float32)) for i, (x, _) in enumerate(efficientnet.photographs()[:count])]
    return found | {"photograph": Session(photos, Material(samples, None, shape))}


def measured(browser: Browser, address: str, number: int) -> dict[str, Any]:
    """Seconds to the first valid answer on the screen and to the last one, for one sample."""
    browser.open(address)
    until(browser, "document.body.dataset.ready === 'yes'")
    before = browser.run("return document.querySelectorAll('article').length")
    script = """const one = document.getElementById('sample'); one.value = arguments[0];
        one.dispatchEvent(new Event('change', {bubbles: true}))"""
    browser.run(script, str(number))
    time.sleep(0.5)
    start = time.perf_counter()
    browser.click("#explain")
    until(browser, SHOWN, min(before, 3))
    first = time.perf_counter() - start
    until(browser, DONE, min(before, 3))
    return {"first": round(first, 2), "last": round(time.perf_counter() - start, 2)}


def until(browser: Browser, script: str, *args: object) -> None:
    """Wait until the page says so."""
    end = time.monotonic() + 300
    while not browser.run(f"return {script}", *args):
        if time.monotonic() > end:
            raise TimeoutError(script)
        time.sleep(0.02)


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    count, results = (3 if quick else 6), {}
    with chromium() as browser:
        for name, session in sessions(count, quick=quick).items():
            with studio(session) as address:
                runs = []
                for i in range(count):
                    runs.append(measured(browser, address, i))
                    session.answers.clear()
                runs = runs[1:]
                browser.open("about:blank")
            firsts, lasts = [one["first"] for one in runs], [one["last"] for one in runs]
            results[name] = {
                "first": {"median": statistics.median(firsts), "largest": max(firsts)},
                "last": {"median": statistics.median(lasts), "largest": max(lasts)},
                "limit": LIMITS[name],
                "runs": runs,
            }
            print(
                f"{name:<10} first answer after {statistics.median(firsts):.2f} s (largest {max(firsts):.2f} s, aim "
                f"{LIMITS[name]:g} s), done after {statistics.median(lasts):.2f} s, {len(runs)} inputs"
            )
    if not quick:
        store("studio", {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()
