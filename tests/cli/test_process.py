"""The command line as a process: what it loads, pipes, signals, and going on after them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import zomirror
from tests.support.command import COMMAND, begun, call, here, picture
from zomirror.runs import inspect

__all__ = ["here"]


def test_version_and_help_load_nothing_heavy(here: Path) -> None:
    code = (
        "import sys; from zomirror.cli import app\n"
        "try: app(['--version'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'onnxruntime', 'matplotlib', 'torch', 'sklearn', 'PIL', 'urllib3', 'jinja2', 'dask'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"zomirror {zomirror.__version__}\n[]\n"
    for word in ("-h", "--help"):
        assert "Exit codes: 0 done" in call(word).stdout
        assert "--budget" in call("explain", word).stdout


def test_the_console_script_is_this_command() -> None:
    script = Path(sys.executable).parent / "zomirror"
    assert subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout == (
        f"zomirror {zomirror.__version__}\n"
    )


def test_shells_can_complete(here: Path) -> None:
    environment = os.environ | {"_ZOMIRROR_COMPLETE": "complete_bash", "COMP_WORDS": "zomirror ex", "COMP_CWORD": "1"}
    done = subprocess.run(
        [Path(sys.executable).parent / "zomirror"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["explain"]


def test_a_pipe_is_quiet(here: Path) -> None:
    picture(Path("a.png"))
    done = subprocess.run(
        [*COMMAND, "explain", "toy_model:predict", "a.png", "--budget", "300", "--kind", "PN"],
        cwd=here, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("a.png: classified 0; with 1 pixel added (upper left) it would be 1.")


def test_sigterm_ends_with_143(here: Path) -> None:
    words = ["minimize", "toy_model:announcing", "--dim", "3", "--budget", "1000000"]
    with begun(words, here, until="asked") as process:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (143, "", "stopped by SIGTERM\n")


def test_a_run_that_was_terminated_goes_on_by_resume(here: Path) -> None:
    words = [
        "minimize",
        "toy_model:announcing",
        "--dim",
        "3",
        "--budget",
        "300",
        "--out",
        "x.npy",
    ]
    with begun([*words, "--run-dir", "a run"], here, until="asked") as process:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (143, "", "stopped; to resume: zomirror runs resume 'a run'\n")
    assert not Path("x.npy").exists()
    assert json.loads(call("runs", "show", "a run", "--json").stdout)["state"] == "interrupted"
    found = json.loads(call("runs", "resume", "a run", "--json").stdout)
    assert found["status"] == "BUDGET"
    resumed = Path("x.npy").read_bytes()
    call(*words)
    assert Path("x.npy").read_bytes() == resumed, "bit for bit the run that was never stopped"
    again = call("runs", "resume", "a run")
    assert again.stderr.startswith("resuming: zomirror minimize toy_model:announcing --dim 3 ")
    assert "the budget of queries is used up" in again.stdout


def test_explanations_that_were_interrupted_go_on_by_resume(here: Path) -> None:
    for name, value in (("a.png", 51), ("b.png", 40)):
        picture(Path(name), value=value)
    words = ["explain", "toy_model:slowly", "a.png", "b.png", "--kind", "PN", "--budget", "300"]
    with begun([*words, "--run-dir", "runs"], here, until="runs/PN/a/journal.bin") as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("stopped; to resume: zomirror runs resume runs\n")
    left_out = call("report", "runs", code=1).stderr.splitlines()
    assert left_out[0].startswith("left out: ")
    assert "has not finished" in left_out[0]
    resumed = call("runs", "resume", "runs", "--json").stdout
    assert [one["valid"] for one in json.loads(resumed)] == [True, True]
    files = {path.name: path.read_bytes() for path in Path("explanations").glob("*.json")}
    call(*words)
    assert {path.name: path.read_bytes() for path in Path("explanations").glob("*.json")} == files
    assert len(files) == 2
    states = [line.split()[:2] for line in call("runs", "list", "runs/PN").stdout.splitlines()[1:]]
    assert states == [["a", "finished"], ["b", "finished"]]
    assert call("runs", "list", ".").stdout.splitlines()[1].split()[:2] == ["runs", "finished"]
    assert "PN   finished" in call("runs", "show", "runs").stdout
    assert call("report", "runs").stdout == "report.html: 2 explanations, 2 of them valid\n"
    assert call("report", "runs/PN/a", "explanations").stdout == "report.html: 3 explanations, 3 of them valid\n"
    call("minimize", "toy_model:quadratic", "--dim", 3, "--budget", 50, "--run-dir", "other/one")
    assert "is a run of minimize, which explains nothing" in call("report", "other", code=1).stderr


@pytest.mark.parametrize(
    ("words", "journal", "answer"),
    [
        (["minimize", "toy_model:slow_quadratic", "--dim", "3", "--budget", "300"], "run/journal.bin", "x.npy"),
        (
            ["explain", "toy_model:slowly", "a.png", "--kind", "PN", "--budget", "300"],
            "run/PN/a/journal.bin",
            "explanations/a-PN.json",
        ),
        (
            ["attack", "toy_model:slowly", "a.png", "--budget", "300"],
            "run/attack/a/journal.bin",
            "attacks/a-attack.json",
        ),
    ],
    ids=["minimize", "explain", "attack"],
)
def test_a_killed_command_given_again_ends_as_if_never_killed(
    here: Path, words: list[str], journal: str, answer: str
) -> None:
    picture(Path("a.png"))
    words = [*words, "--out", "x.npy"] if words[0] == "minimize" else words
    durable = [*words, "--run-dir", "run", "--json"]
    call(*words)
    whole = _answer(Path(answer))
    Path(answer).unlink()
    with begun(durable, here, until=journal) as process:
        end = time.monotonic() + 60
        while inspect("run").used == 0:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, "no answer after a minute"
            time.sleep(0.01)
        process.kill()
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert inspect("run").state != "finished"
    assert not Path(answer).exists()
    found = json.loads(call(*durable).stdout)
    found = found if isinstance(found, dict) else found[0]
    assert _answer(Path(answer)) == whole
    assert found["nfev"] <= 300
    assert found["nfev"] <= found["sent"] <= 600


def _answer(path: Path) -> object:
    """The file's bytes; of an explanation everything but the number of queries sent, which kills increase."""
    return path.read_bytes() if path.suffix == ".npy" else json.loads(path.read_text()) | {"sent": None}


def test_max_sent_caps_the_queries_of_every_session(here: Path) -> None:
    picture(Path("a.png"))
    run = ("minimize", "toy_model:quadratic", "--dim", 3, "--budget", 300, "--max-sent", 100, "--run-dir", "run")
    found = json.loads(call(*run, "--json", code=1).stdout)
    assert (found["status"], found["sent"] <= 100) == ("MAX_SENT", True)
    [one] = json.loads(call("explain", "toy_model:predict", "a.png", "--kind", "PN", "--max-sent", 50, "--json").stdout)
    assert one["sent"] <= 50
    assert "--max-sent 50" in one["command"]
