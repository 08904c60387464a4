"""A Dask cluster of several hosts, each a network namespace of its own, whose links go down during a study.

`make hosts` takes the link of a worker's host down for a minute and that of the scheduler's for ten seconds; otherwise
the test is skipped, because it takes a minute or two. ZOMIRROR_HOSTS=8,3 sets the seconds of both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import zomirror as zm
from tests.support.hosts import Hosts, refusal
from tests.support.units import INPUTS, OPTIONS, Model, bits, lines

ROOT = Path(__file__).resolve().parents[2]
DOWN = os.environ.get("ZOMIRROR_HOSTS", "")
PORT = 8786


def until(what: str, hosts: Hosts, ready: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for a moment of the study."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            pytest.fail(f"{what} did not happen in {seconds:g} s:\n" + "\n".join(map(hosts.said, ("client", "a", "b"))))
        time.sleep(0.1)


@pytest.mark.skipif(not DOWN, reason="takes minutes: make hosts")
@pytest.mark.timeout(900)
def test_a_study_survives_links_that_go_down(tmp_path: Path) -> None:
    if reason := refusal():
        pytest.skip(reason)
    worker_down, scheduler_down = map(float, DOWN.split(","))
    expected = bits(zm.explain_many(Model(tmp_path / "serial"), INPUTS, **OPTIONS))
    log = tmp_path / "log"
    environment = dict(os.environ, PYTHONPATH=f"{ROOT / 'src'}{os.pathsep}{ROOT}", OMP_NUM_THREADS="1")
    with Hosts(["scheduler", "a", "b", "client"]) as hosts:

        def start(host: str, module: str, *words: str) -> subprocess.Popen[bytes]:
            return hosts.start(host, [sys.executable, "-m", module, *words], cwd=tmp_path, env=environment)

        address = f"{hosts.address('scheduler')}:{PORT}"
        start("scheduler", "distributed.cli.dask_scheduler", "--host", hosts.address("scheduler"), "--no-dashboard")
        for host in ("a", "b"):
            words = ("--host", hosts.address(host), "--nthreads", "1", "--nworkers", "1", "--no-dashboard")
            folder = tmp_path / f"local-{host}"
            start(host, "distributed.cli.dask_worker", f"tcp://{address}", *words, "--local-directory", str(folder))
        # Long enough that both outages fall into the study: about so many batches are asked by two workers.
        pause = (worker_down + scheduler_down + 15) / 40
        silence = 2 * worker_down + 30
        told = (str(tmp_path), f"dask://{address}", str(pause), str(silence))
        study = start("client", "tests.support.hosts_study", *told)
        until("the study", hosts, lambda: len(lines(log)) > 150)
        before = len(lines(log))
        with hosts.down("a"):
            time.sleep(worker_down)
        time.sleep(2.0)
        assert study.poll() is None, "the study ended before the scheduler's link went down:\n" + hosts.said("client")
        with hosts.down("scheduler"):
            time.sleep(scheduler_down)
        until("the end", hosts, lambda: study.poll() is not None, 600.0)
        assert study.poll() == 0, hosts.said("client")
        said = {host: hosts.said(host) for host in ("scheduler", "a", "b", "client")}
    found = [zm.Explanation.from_json(text) for text in json.loads((tmp_path / "found.json").read_text())]
    assert before < len(lines(log))
    assert bits(found) == expected
    asked, serial = Counter(lines(log)), Counter(lines(tmp_path / "serial"))
    assert asked == serial, f"{sum((asked - serial).values())} rows more: {said}"
    assert [one.sent for one in found] == [one.nfev for one in found]
