"""KServe's server, client and predictors, each in a process of its own: answers as in this one, and nothing lost."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import urllib3

import zomirror as zm
from tests.support import loan_table, review_texts
from zomirror import models
from zomirror.datasets import digits

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-kserve" / "bin" / "python"
SEVEN = (digits().images[14].astype(np.float32) / 255)[None]
TOKEN = "a token of the tests"  # noqa: S105 - not a secret
JSON = {"Content-Type": "application/json"}


@dataclass
class Stack:
    """The processes and where they listen."""

    counts: Path
    predictor: subprocess.Popen[bytes]
    client: subprocess.Popen[str]
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    def explain(self, name: str, bodies: list[Any], headers: dict[str, str] | None = None) -> list[Any]:
        """The answers of kserve's client, all asked at once."""
        assert self.client.stdin is not None
        assert self.client.stdout is not None
        line = {"url": self.url(name), "name": name, "bodies": bodies, "headers": headers}
        self.client.stdin.write(json.dumps(line) + "\n")
        self.client.stdin.flush()
        answers: list[Any] = json.loads(self.client.stdout.readline())
        return answers

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    def counted(self, name: str) -> int:
        """Rows that the predictor was asked since the last look."""
        path = self.counts if name == "lenet" else self.counts.with_name(f"{self.counts.name}.{name}")
        found = sum(int(line.split()[0]) for line in path.read_text().splitlines())
        path.write_text("")
        return found

    def get(self, name: str, path: str) -> Any:
        return urllib3.request("GET", self.url(name) + path, retries=False, timeout=10)

    def post(self, name: str, body: bytes | str, path: str | None = None, **headers: str) -> tuple[int, str]:
        """Status and sentence of a request that is not one of kserve's client."""
        where = f"/v1/models/{name}:explain" if path is None else path
        answer = urllib3.request(
            "POST", self.url(name) + where, body=body, headers=JSON | headers, retries=False, timeout=30
        )
        return answer.status, answer.json()["error"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def await_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 120
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        try:
            if urllib3.request("GET", url, retries=False, timeout=2).status == 200:
                return
        except urllib3.exceptions.HTTPError:
            pass
        time.sleep(0.1)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    assert PYTHON.exists(), "the model server is not installed: make .venv-kserve/.installed"
    folder = tmp_path_factory.mktemp("served")
    loan_table.loans().to_csv(folder / "loans.csv", index=False)
    counts, port, environment = (
        folder / "counts",
        free_port(),
        os.environ | {"ZM_ACCESS": TOKEN, "OMP_NUM_THREADS": "1"},
    )
    counts.touch()

    def started(name: str, *words: str) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("w") as log:
            return subprocess.Popen([str(PYTHON), *words], stdout=log, stderr=log, env=environment, cwd=ROOT)

    support, predictor = str(ROOT / "tests" / "support"), f"127.0.0.1:{port}"
    processes = {
        "predictor": started(
            "predictor", f"{support}/kserve_server.py", str(models.path("lenet")), str(port), str(counts), "rows"
        )
    }
    data = {
        "lenet": ["--features", "vector", "--shape", "1,28,28"],
        "loans": [str(folder / "loans.csv"), "--access-env", "ZM_ACCESS"],
        "reviews": ["--features", "words"],
    }
    ports = {name: free_port() for name in data}
    with ExitStack() as ending:
        for name, words in data.items():
            where = ["--predictor_host", predictor, "--model_name", name, "--http_port", str(ports[name])]
            processes[name] = started(name, "-m", "zomirror", "serve", "predictor", *words, *where)
        client = subprocess.Popen(
            [str(PYTHON), f"{support}/kserve_client.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        ending.callback(end, [*processes.values(), client])
        await_ready(f"http://{predictor}/v1/models/reviews", processes["predictor"], folder / "predictor.log")
        for name, port in ports.items():
            await_ready(f"http://127.0.0.1:{port}/v1/models/{name}", processes[name], folder / f"{name}.log")
        yield Stack(counts, processes.pop("predictor"), client, processes, ports)


def end(processes: list[subprocess.Popen[Any]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(30)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def same(document: dict[str, Any], one: zm.Explanation) -> None:
    """The answer of the server is that of this process; scores may differ in the last bits of other libraries."""
    assert document["valid"] is True
    for name in ("kind", "label", "contrast_label", "nnz", "nfev", "sent", "seed", "words"):
        expected = getattr(one, name)
        assert document[name] == (f"{_first(one)}." if name == "words" else expected), name
    assert [tuple(change.values()) for change in document["changes"]] == list(one.changes)
    np.testing.assert_allclose(document["scores_after"], one.scores_after, atol=1e-5)


def _first(one: zm.Explanation) -> str:
    from zomirror.contrast.sentence import answer

    words = answer([one])
    return f"{words[0].upper()}{words[1:]}"


def test_a_digit_is_explained_as_in_this_process(stack: Stack) -> None:
    stack.counted("lenet")
    parameters = {"budget": 300, "seed": 3}
    [[status, found]] = stack.explain("lenet", [{"instances": [SEVEN.tolist()], "parameters": parameters}])
    one = zm.explain(zm.onnx_classifier(models.path("lenet")), SEVEN, budget=300, rng=3)
    assert status == 200
    document = found["explanations"][0]
    assert stack.counted("lenet") == document["sent"] == document["nfev"] == one.nfev
    assert (document["label"], document["contrast_label"], document["nnz"]) == (7, one.contrast_label, one.nnz)
    np.testing.assert_allclose(np.array(document["perturbed"]), one.perturbed, atol=1e-6)


def test_a_row_is_explained_as_in_this_process(stack: Stack) -> None:
    stack.counted("loans")
    frame = loan_table.loans()
    rules = {"fixed": ["age"], "increasing": ["income"]}
    row = json.loads(frame.iloc[[1]].to_json(orient="records"))[0]
    body = {"instances": [row], "parameters": rules | {"budget": 150, "seed": 5}}
    [[status, found]] = stack.explain("loans", [body], {"Authorization": f"Bearer {TOKEN}"})
    assert status == 200

    def model(rows: pd.DataFrame) -> Any:
        return loan_table.pipeline().predict_log_proba(rows)

    one = zm.explain(model, row, features=zm.Table(frame, **rules), budget=150, rng=5)
    [document] = found["explanations"]
    same(document, one)
    assert document["perturbed"] == one.perturbed
    assert stack.counted("loans") == document["sent"]


def test_a_text_is_explained_as_in_this_process(stack: Stack) -> None:
    stack.counted("reviews")
    body = {"instances": [review_texts.REVIEW], "parameters": {"kind": "PN"}}
    [[status, found]] = stack.explain("reviews", [body])
    assert status == 200
    same(found["explanations"][0], zm.explain(review_texts.scores, review_texts.REVIEW))
    assert stack.counted("reviews") == found["explanations"][0]["sent"]


def test_fifty_requests_at_once_are_answered_within_their_budgets(stack: Stack) -> None:
    stack.counted("reviews")
    rng = np.random.default_rng(1)
    words = [
        *review_texts.GOOD,
        *review_texts.BAD,
        *["the", "room", "and", "food", "in", "town", "were", "all", "we", "paid", "for"],
    ]
    bodies = [
        {"instances": [" ".join(rng.choice(words, 20))], "parameters": {"budget": 300, "seed": i}} for i in range(50)
    ]
    before = peak(stack.servers["reviews"].pid)
    answers = stack.explain("reviews", bodies)
    assert [status for status, _ in answers] == [200] * 50
    found = [document["explanations"][0] for _, document in answers]
    assert [one["seed"] for one in found] == list(range(50)), "each request got its own answer"
    assert max(one["sent"] for one in found) <= 300
    assert all(one["valid"] for one in found)
    assert stack.counted("reviews") == sum(one["sent"] for one in found)
    assert peak(stack.servers["reviews"].pid) - before < 100_000, "kB"


def peak(pid: int) -> int:
    """The largest memory that a process has had, in kB."""
    [found] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found)


def test_the_deadline_ends_a_search_with_what_was_found(stack: Stack) -> None:
    body = {"instances": [SEVEN.tolist()], "parameters": {"budget": 10_000, "deadline": 0.5}}
    start = time.monotonic()
    [[status, found]] = stack.explain("lenet", [body])
    assert status == 200
    [one] = found["explanations"]
    assert one["status"] == ("CALLBACK" if one["valid"] else "NOT_FOUND")
    assert 0 < one["nfev"] < 9_000
    assert time.monotonic() - start < 20


def test_health_and_metrics(stack: Stack) -> None:
    assert stack.get("reviews", "/").status == 200
    assert stack.get("reviews", "/v2/health/ready").json() == {"ready": True}
    sent = sum(
        document["explanations"][0]["sent"]
        for _, document in stack.explain("reviews", [{"instances": [review_texts.REVIEW]}])
    )
    [total] = re.findall(r"^zomirror_queries_total (\S+)", stack.get("reviews", "/metrics").data.decode(), re.MULTILINE)
    assert float(total) >= sent > 0


HOSTILE = {
    "no JSON": (b"{", 400, "expected JSON"),
    "not UTF-8": (b"\xff\xfe{}", 400, "expected JSON"),
    "a list": (b"[]", 400, "expected an object"),
    "deep JSON": (b'{"instances":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400, "levels"),
    "deep JSON in a string": (b'{"instances": ["' + b"[" * 1000 + b'"]}', 400, "expected an array of numbers"),
    "no instances": (b"{}", 400, "expected an object"),
    "another key": (b'{"instances": [[1]], "model": "x"}', 400, "got 'model'"),
    "no input": (b'{"instances": []}', 400, "1 to 16"),
    "a text for an array": (b'{"instances": ["seven"]}', 400, "expected an array of numbers"),
    "another shape": (b'{"instances": [[1, 2]]}', 400, "expected an input of shape (1, 28, 28), got (2,)"),
    "ragged": (b'{"instances": [[1, [2]]]}', 400, "expected an array of numbers"),
    "huge numbers": (json.dumps({"instances": [(SEVEN.astype(float) + 1e300).tolist()]}).encode(), 400, "finite"),
    "an unknown option": (b'{"instances": [[1]], "parameters": {"tokens": "x"}}', 400, "got 'tokens'"),
    "a type": (b'{"instances": [[1]], "parameters": {"budget": "many"}}', 400, "budget as an integer"),
    "a budget": (b'{"instances": [[1]], "parameters": {"budget": 10000000}}', 400, "expected"),
    "a deadline": (b'{"instances": [[1]], "parameters": {"deadline": 1e9}}', 400, "expected deadline <= 60"),
    "a list of parameters": (b'{"instances": [[1]], "parameters": [1]}', 400, "expected parameters"),
    "a path of the server": (b'{"instances": [[1]], "parameters": {"run_dir": "x"}}', 400, "got 'run_dir'"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_requests_get_a_sentence(what: str, stack: Stack) -> None:
    body, status, sentence = HOSTILE[what]
    stack.counted("lenet")
    found = stack.post("lenet", body)
    assert found[0] == status
    assert sentence in found[1]
    assert stack.counted("lenet") == 0


def test_a_token_belongs_into_its_header(stack: Stack) -> None:
    row = json.dumps({"instances": [[1]]})
    assert stack.post("loans", row) == (
        401,
        "expected the token as 'Authorization: Bearer ...', got none or another one",
    )
    assert stack.post("loans", row, Authorization="Bearer guessed")[0] == 401
    path = "/v1/models/loans:explain"
    for given in (
        stack.post("loans", row, f"{path}?token={TOKEN.replace(' ', '+')}"),
        stack.post("loans", json.dumps({"token": TOKEN}), Authorization=f"Bearer {TOKEN}"),
    ):
        assert given[0] == 400
        assert TOKEN not in given[1]


@pytest.mark.parametrize(
    "path", ["/v1/models/lenet:predict", "/v2/repository/models/lenet/unload", "/v2/models/lenet/infer"]
)
def test_only_explanations_are_served(path: str, stack: Stack) -> None:
    status, sentence = stack.post("lenet", '{"instances": [[1]]}', path)
    assert (status, sentence[:34]) == (404, "expected /v1/models/lenet:explain,")


def test_pages_and_other_names_are_refused(stack: Stack) -> None:
    assert stack.post("lenet", "{}", Origin="http://evil.example")[0] == 403
    assert stack.post("lenet", "{}", Host="rebound.example")[0] == 421
    assert stack.post("lenet", "{}", **{"Content-Type": "text/plain"})[0] == 415
    assert stack.post("lenet", "x" * (2**24 + 1))[0] == 413


def test_a_predictor_that_dies_leaves_what_was_found(stack: Stack) -> None:
    """The last test of the predictor: it is killed."""
    stack.counted("lenet")
    body = {"instances": [SEVEN.tolist()], "parameters": {"budget": 10_000}}
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.extend(stack.explain("lenet", [body])))
    asking.start()
    until = time.monotonic() + 60
    while stack.counts.read_text().count("\n") < 20:
        assert time.monotonic() < until
        time.sleep(0.02)
    stack.predictor.send_signal(signal.SIGKILL)
    stack.predictor.wait(30)
    asking.join(90)
    [[status, found]] = answers
    assert status == 503
    assert "the model failed: no answer from" in found["error"]
    [partial] = found["explanations"]
    assert (partial["status"], partial["label"], partial["valid"]) == ("ERROR", 7, True)
    assert 0 < partial["nfev"] <= stack.counted("lenet") <= partial["sent"]
