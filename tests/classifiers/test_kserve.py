"""A real KServe model server with the bundled LeNet: explanations as in this process, rows counted by the server."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import urllib3

import zomirror as zm
from zomirror import models
from zomirror.datasets import digits
from zomirror.errors import ArgumentError, OracleError

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-kserve" / "bin" / "python"
LENET = zm.onnx_classifier(models.path("lenet"))
DIGITS = digits().images[[3, 14]].reshape(-1, 1, 28, 28).astype(np.float32) / 255


@dataclass(frozen=True)
class Served:
    """Where the server is, and what it has counted."""

    url: str
    counts: Path

    def take(self) -> list[tuple[int, str]]:
        """Rows and encoding of every batch since the last look."""
        found = [line.split() for line in self.counts.read_text().splitlines()]
        self.counts.write_text("")
        return [(int(rows), how) for rows, how in found]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    assert PYTHON.exists(), "the model server is not installed: make .venv-kserve/.installed"
    directory = tmp_path_factory.mktemp("kserve")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    counts, log = directory / "counts", directory / "log"
    counts.touch()
    args = [
        str(PYTHON),
        str(ROOT / "tests" / "support" / "kserve_server.py"),
        str(models.path("lenet")),
        str(port),
        str(counts),
    ]
    with log.open("w") as out:
        process = subprocess.Popen(args, stdout=out, stderr=out)
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + 90
    try:
        while not is_ready(f"{url}/v2/models/lenet/ready"):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield Served(url, counts)
    finally:
        process.terminate()
        process.wait(30)


def is_ready(url: str) -> bool:
    try:
        return urllib3.request("GET", url, retries=False, timeout=2).status == 200
    except urllib3.exceptions.HTTPError:
        return False


@pytest.mark.parametrize(("kind", "encoding"), [("PN", "binary"), ("PP", "json"), ("PN", "auto")])
def test_explanations_are_those_of_this_process(kind: str, encoding: Any, served: Served, tmp_path: Path) -> None:
    options: dict[str, Any] = {"kind": kind, "budget": 400, "rng": 0}
    model = zm.http_classifier(served.url, model="lenet", encoding=encoding, batch_rows=64)
    expected = zm.explain_many(LENET, DIGITS, **options)
    found = zm.explain_many(model, DIGITS, run_dir=tmp_path / "run", **options)
    for one, other in zip(found, expected, strict=True):
        assert (one.valid, one.label, one.contrast_label) == (True, other.label, other.contrast_label)
        np.testing.assert_array_equal(one.x != 0, other.x != 0)
        np.testing.assert_allclose(one.scores_before, other.scores_before, rtol=0, atol=1e-6)
        np.testing.assert_allclose(one.scores_after, other.scores_after, rtol=0, atol=1e-6)
    batches = served.take()
    assert {how for _, how in batches} == {"json" if encoding == "json" else "binary"}
    assert sum(rows for rows, _ in batches) == sum(one.sent for one in found) == sum(one.nfev for one in found)


def test_several_requests_at_once_and_several_workers_keep_the_bits(served: Served) -> None:
    alone = zm.http_classifier(served.url, model="lenet", batch_rows=20)
    several = zm.http_classifier(served.url, model="lenet", batch_rows=20, concurrency=3)
    batch = np.random.default_rng(0).random((130, 1, 28, 28), dtype=np.float32)
    np.testing.assert_array_equal(several(batch), alone(batch))
    options: dict[str, Any] = {"kind": "PN", "budget": 300, "rng": 0}
    expected = [one.to_json() for one in zm.explain_many(alone, DIGITS, **options)]
    served.take()
    found = zm.explain_many(alone, DIGITS, workers=2, **options)
    assert [one.to_json() for one in found] == expected
    assert sum(rows for rows, _ in served.take()) == sum(one.sent for one in found)


def test_what_the_server_refuses_is_a_typed_error_and_is_not_repeated(served: Served) -> None:
    model = zm.http_classifier(served.url, model="lenet")
    with pytest.raises(ArgumentError, match=r"expected a batch of shape \(n, 1, 28, 28\)"):
        model(np.zeros((2, 1, 27, 28), np.float32))
    assert served.take() == []
    blind = zm.http_classifier(served.url, model="lenet", input="x", output="output-0")
    with pytest.raises(OracleError, match="got 500: check that the input has the shape"):
        blind(np.zeros((2, 1, 27, 28), np.float32))
    assert [rows for rows, _ in served.take()] == [2]  # it saw them once
    with pytest.raises(OracleError, match="got 404: check url, model and version"):
        zm.http_classifier(served.url, model="other")
