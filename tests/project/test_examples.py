"""The examples run, say what they should, and draw their picture."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import demo  # type: ignore[import-not-found]  # noqa: E402
import explain_loan  # type: ignore[import-not-found]  # noqa: E402
import sparse_cox  # type: ignore[import-not-found]  # noqa: E402
import tune_queue  # type: ignore[import-not-found]  # noqa: E402
from queue_network import Network  # type: ignore[import-not-found]  # noqa: E402

import zomirror as zm  # noqa: E402


def run(example: str, *arguments: object) -> str:
    command = [sys.executable, str(ROOT / "examples" / example), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout


def called(example: Any, *arguments: object) -> str:
    """What the example says, called where its imports are paid for already."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(sys, "argv", [example.__file__, *map(str, arguments)])
        example.main()
    return said.getvalue()


def is_picture(path: Path) -> bool:
    with Image.open(path) as image:
        return image.width > 300 and len(image.getcolors(1 << 24) or ()) > 20


def test_digits_are_attacked(tmp_path: Path) -> None:
    said = run("attack_digits.py", "--digits", 2, "--budget", 2_000, "--out", tmp_path / "a.png").splitlines()
    assert len(said) == 2
    pattern = r"\d is taken for \d with \d+ pixels? changed, l1 [\d.]+, [\d,]+ queries"
    assert all(re.match(pattern, line) for line in said)
    assert is_picture(tmp_path / "a.png")


def test_a_refused_loan_is_explained_by_rows_that_exist(tmp_path: Path) -> None:
    said = called(explain_loan, "--out", tmp_path).splitlines()
    assert all(line.startswith("refused; granted if ") for line in said[:3])
    assert len({line.partition(":")[0] for line in said[:3]}) > 1
    assert re.fullmatch(r"refused because of .+, which alone (is|are) enough", said[3])
    assert is_picture(tmp_path / "loan.png")


def test_the_demonstration_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, small in (("D", 500), ("BUDGET", 400), ("DIGITS", range(2))):
        monkeypatch.setattr(demo, name, small)
    monkeypatch.setattr(zm, "explain_many", partial(zm.explain_many, budget=200))
    called(demo, "--out", tmp_path)
    assert is_picture(tmp_path / "sparse.png")
    assert is_picture(tmp_path / "digits.png")
    assert "Ten digits, explained" in (tmp_path / "digits.html").read_text()


def test_a_cox_path_is_fitted(tmp_path: Path) -> None:
    said = called(sparse_cox, "--simulated", "--budget", 2_000, "--steps", 4, "--out", tmp_path / "c.png")
    counts = [int(n) for n in re.findall(r"(\d+) covariates", said)]
    values = [float(f) for f in re.findall(r"PL / n ([\d.]+)", said)]
    assert len(counts) == 4
    assert counts[0] < counts[-1]
    assert values == sorted(values, reverse=True)
    assert is_picture(tmp_path / "c.png")


def test_a_network_of_queues_is_tuned_from_another_process(tmp_path: Path) -> None:
    said = called(tune_queue, "--budget", 2_000, "--out", tmp_path / "q.png")
    before, after = (float(x) for x in re.findall(r"mean time ([\d.]+) -> ([\d.]+)", said)[0])
    assert after < 0.8 * before
    found = [int(i) for i in re.findall(r"(\d+) \(by", said)]
    assert len(set(found[:8]) & set(Network(1, 2_000).slow.tolist())) >= 6, "the bottlenecks, which nobody told it of"
    assert is_picture(tmp_path / "q.png")


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import sys; sys.exit('no licence')", "no licence"),
        ("import sys\nfor line in sys.stdin: print('fine', flush=True)", "numbers"),
    ],
)
def test_a_simulator_that_dies_or_talks_nonsense_ends_the_tuning_in_words(program: str, says: str) -> None:
    with pytest.raises(zm.errors.OracleError, match=says):
        tune_queue.tune([sys.executable, "-c", program], 500)


def test_the_network_serves_as_one_by_one() -> None:
    """The vectorised lines against a loop over the orders."""
    network = Network(3, 400)
    extra = np.random.default_rng(0).uniform(0, 1, 1_000)
    speed = (1 + 3 * extra) / network.load
    at = network.arrivals.copy()
    for stage, route in enumerate(network.routes):
        free: dict[int, float] = {}
        for i in np.lexsort((np.arange(at.size), at)):
            begin = max(at[i], free.get(int(route[i]), 0.0))
            at[i] = free[int(route[i])] = begin + network.work[stage, i] / speed[route[i]]
    assert network.mean_time(extra) == pytest.approx(float(np.mean(at - network.arrivals)), rel=1e-6)
