"""Programs and models behind HTTP, asked by workers: same bits, every row counted, the secret nowhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.loopback import Server, model_server, read_batch, reply
from tests.support.units import INPUTS, OPTIONS, WEIGHTS, lines
from zomirror.parallel.unit import Unit, Work
from zomirror.report import render

CANARY = "canary-5c1f0b7a9e-token"
PROGRAM = """
import io, os, sys
from types import SimpleNamespace
import numpy as np
stdin = SimpleNamespace(read=sys.stdin.buffer.read)
while sys.stdin.buffer.peek(1):
    batch = np.lib.format.read_array(stdin)
    with open(sys.argv[1], "a") as log:
        log.write(f"{os.getpid()}\\n" * len(batch))
    answer = io.BytesIO()
    np.save(answer, np.square(batch - 0.3).sum(axis=1))
    sys.stdout.buffer.write(answer.getvalue())
    sys.stdout.buffer.flush()
"""


def shifted(points: Any) -> Any:
    return np.square(points - 0.3).sum(axis=1)


def test_a_program_is_minimised_like_the_function_that_it_is(tmp_path: Path) -> None:
    """By this process, and by two workers of which each starts a program of its own; none is left."""
    given: dict[str, Any] = {
        "l1": 0.1,
        "bounds": (0, 1),
        "budget": 150,
        "rng": 0,
        "method": zm.methods.zo_ada_expmd(20),
    }
    cases: list[tuple[int | None, dict[str, Any]]] = [(None, {}), (2, {"block_rows": 5})]
    for count, blocks in cases:
        log = tmp_path / f"log-{count}"
        expected = zm.minimize(shifted, np.full(9, 0.5), **given, **blocks)
        with zm.command_function([sys.executable, "-c", PROGRAM, str(log)]) as program:
            result = zm.minimize(program, np.full(9, 0.5), **given, **blocks, workers=count)
        assert (result.x == expected.x).all()
        assert result.fun == expected.fun
        assert len(lines(log)) == result.sent == result.nfev
        pids = {int(line) for line in lines(log)}
        assert len(pids) == (count or 1)
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_secret_is_not_in_what_travels_nor_in_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_TOKEN", CANARY)
    honest = model_server(WEIGHTS)

    def answer(request: Any, number: int) -> Any:
        return reply(b"later", "503 Busy") if number % 7 == 0 else honest(request, number)

    with Server(answer) as server:
        model = zm.http_classifier(server.url, model="linear", token_env="FAR_TOKEN", rng=0)  # noqa: S106
        travels = [str(part).encode() for part in Unit(Work(model), INPUTS[0], "ticket").__reduce__()[1]]
        options = OPTIONS | {"max_sent": 900, "run_dir": tmp_path / "run", "workers": 2}
        found = zm.explain_many(model, INPUTS[:3].astype(np.float32), **options)
        asked = [request for request in server.requests if request.line.startswith("POST")]
    assert all(one.valid for one in found)
    assert {request.headers["authorization"] for request in asked} == {f"Bearer {CANARY}"}
    rows = sum(len(read_batch(request)) for request in asked)
    assert rows == sum(one.sent for one in found) > sum(one.nfev for one in found)
    kept = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(kept) > 10
    for text in (*travels, *kept, render(found).encode(), *(one.to_json().encode() for one in found)):
        assert not any(CANARY[i : i + 8].encode() in text for i in range(len(CANARY) - 7))


@pytest.mark.parametrize("score", ["NaN", "Infinity"])
def test_a_server_that_answers_no_number_ends_the_search_in_a_sentence(score: str) -> None:
    with Server(lambda *_: reply(f'{{"predictions": [[{score}, 1.0, 2.0]]}}')) as server:
        found = zm.explain(zm.http_classifier(server.url, batch_rows=1), INPUTS[0], **OPTIONS)
    assert found.status is zm.Status.NONFINITE
    assert not found.valid
