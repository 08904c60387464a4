"""The command line: what it says, what it writes, how it ends."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import zomirror
from tests.support import loopback
from tests.support.command import COMMAND, call, here, picture
from zomirror import models
from zomirror.cli import app
from zomirror.cli.model import public
from zomirror.contrast import Explanation
from zomirror.runs.directory import RunDirectory

__all__ = ["here"]

# --- help ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["explain", "attack", "minimize", "report", "train", "reproduce", "bench", "serve", "studio"]
)
def test_help_begins_with_examples_and_shows_flags_as_flags(command: str, here: Path) -> None:
    said = call(command, "--help").stdout
    assert said.index(f"zomirror {command}", said.index("Usage") + 20) < said.index("Options")
    assert "<bool>" not in said


def test_options_that_most_calls_do_without_come_last(here: Path) -> None:
    said = call("explain", "--help").stdout
    headings = ["Arguments ─", "Options ─", "The search ─", "Tables ─", "Runs and files ─"]
    assert said.index(headings[0]) < said.index(headings[1]) < min(map(said.index, headings[2:]))


# --- explain -------------------------------------------------------------------------------------------------------


def test_a_digit_is_explained_in_words_and_in_a_picture(here: Path) -> None:
    begun = time.process_time()  # what it costs, however busy the machine is
    said = call("explain", "digits:7", "--budget", 2_000).stdout
    assert time.process_time() - begun < 10
    first, *rest = said.splitlines()
    wanted = r"digits:7: classified 7 because of \d+ pixels \(.+\), which alone are enough; "
    assert re.fullmatch(wanted + r"with \d+ pixels added \(.+\) it would be [^7]\.", first)
    assert [line.split(",")[0] for line in rest[:2]] == ["  PP  valid", "  PN  valid"]
    with Image.open("explanations/digits-7-PN.png") as image:
        assert image.width > 400
    for kind in ("PP", "PN"):
        one = Explanation.from_json(Path(f"explanations/digits-7-{kind}.json").read_text())
        assert (one.kind, one.valid, one.label, one.nfev <= 2_000) == (kind, True, 7, True)


def test_the_written_command_repeats_it_bit_for_bit(here: Path) -> None:
    picture(Path("a picture.png"))
    call(
        "explain", "toy_model:predict", "a picture.png", "--budget", 300, "--l1", 0.02, "--seed", 5, "--bounds", "0,2",
        "--signed", "--class-names", "low,high", "--shape", "36",
    )  # fmt: skip
    one = Explanation.from_json(Path("explanations/a-picture-PN.json").read_text())
    command = one.settings["command"]
    assert command.startswith("zomirror explain toy_model:predict 'a picture.png' --kind PN --seed 5 ")
    Path("explanations/a-picture-PN.json").unlink()
    call(*shlex.split(command)[1:])
    again = Explanation.from_json(Path("explanations/a-picture-PN.json").read_text())
    assert again.to_json() == one.to_json()
    assert (again.name_of(again.label), again.name_of(again.contrast_label)) == ("low", "high")


def test_json_is_for_scripts(here: Path) -> None:
    picture(Path("a.png"))
    result = call("explain", "toy_model:predict", "a.png", "--budget", 300, "--kind", "PN", "--json")
    [found] = json.loads(result.stdout)
    assert result.stderr == ""
    assert (found["input"], found["kind"], found["valid"]) == ("a.png", "PN", True)
    assert (found["label"], found["contrast_label"], found["nfev"] <= 300) == (0, 1, True)
    assert found["status"] in zomirror.Status.__members__
    assert Path(found["file"]).is_file()
    assert Path(found["picture"]).is_file()


def test_without_a_valid_explanation_the_exit_code_is_1(here: Path) -> None:
    picture(Path("a.png"))
    result = call("explain", "toy_model:never", "a.png", "--kind", "PN", "--budget", 200, code=1)
    assert "PN: no valid explanation was found" in result.stdout
    assert "not valid" in result.stdout


def test_several_inputs_have_a_file_each_and_an_overview(here: Path) -> None:
    Path("other").mkdir()
    picture(Path("a.png"))
    picture(Path("other/a.png"), value=40)
    call("explain", "toy_model:predict", "a.png", "other/a.png", "a.png", "--budget", 200, "--kind", "PN", "--out", "x")
    names = sorted(path.name for path in Path("x").iterdir())
    assert names == sorted(
        ["a-PN.json", "a-PN.png", "other-a-PN.json", "other-a-PN.png", "a-2-PN.json", "a-2-PN.png", "overview.png"]
    )


def test_rows_of_a_table(here: Path) -> None:
    rows = ["size,weight,kind", "0.1,10,a", "0.9,20,b", "0.2,30,a"]
    Path("t.csv").write_text("\n".join(rows) + "\n")
    result = call("explain", "toy_model:predict", "t.csv:0,2", "--drop", "kind", "--budget", 200, "--json")
    found = json.loads(result.stdout)
    assert [(one["input"], one["kind"]) for one in found] == [
        ("t.csv:0", "PP"),
        ("t.csv:0", "PN"),
        ("t.csv:2", "PP"),
        ("t.csv:2", "PN"),
    ]
    one = Explanation.from_json(Path(found[1]["file"]).read_text())
    assert one.feature_names == ("size", "weight")
    assert one.x0.tolist() == [0.1, 10.0]
    assert one.perturbed[0] > 0.5
    assert one.scale.tolist() == pytest.approx([0.8, 20.0]), "the range of each column of the file"


def test_arrays_are_one_input_or_rows(here: Path) -> None:
    np.save("batch.npy", np.full((3, 4), 0.25))
    [one] = json.loads(
        call("explain", "toy_model:predict", "batch.npy:1", "--kind", "PN", "--budget", 200, "--json").stdout
    )
    assert Explanation.from_json(Path(one["file"]).read_text()).x0.shape == (4,)
    [whole] = json.loads(
        call("explain", "toy_model:predict", "batch.npy", "--kind", "PN", "--budget", 200, "--json").stdout
    )
    assert Explanation.from_json(Path(whole["file"]).read_text()).x0.shape == (3, 4)


@pytest.mark.parametrize(
    ("mode", "value", "options", "shape", "first"),
    [
        ("L", 51, (), (1, 6, 6), 0.2),
        ("RGB", (51, 102, 0), (), (3, 6, 6), 0.2),
        ("RGB", (51, 51, 51), ("--shape", "1,6,6"), (1, 6, 6), 0.2),
        ("RGB", (51, 102, 0), ("--shape", "6,6,3"), (6, 6, 3), 0.2),
        ("L", 51, ("--mean", "0.5", "--std", "0.25"), (1, 6, 6), -1.2),
        ("RGB", (51, 102, 0), ("--mean", "0.5,0.5,0.5", "--std", "0.25,0.5,1"), (3, 6, 6), -1.2),
    ],
)
def test_pictures_become_what_the_model_takes(
    here: Path, mode: str, value: Any, options: tuple[str, ...], shape: tuple[int, ...], first: float
) -> None:
    picture(Path("a.png"), mode=mode, value=value)
    words = ("explain", "toy_model:predict", "a.png", "--kind", "PN", "--budget", 200, "--json", *options)
    result = CliRunner().invoke(app, [str(word) for word in words])
    [one] = json.loads(result.stdout)
    x0 = Explanation.from_json(Path(one["file"]).read_text()).x0
    assert x0.shape == shape
    assert x0.ravel()[0] == pytest.approx(first, abs=1e-6)


def test_an_onnx_file_tells_the_shape_of_its_input(here: Path) -> None:
    Path("net.onnx").write_bytes(models.path("lenet").read_bytes())
    picture(Path("a.png"), size=(28, 28), mode="RGB", value=(0, 0, 0))
    with Image.open("a.png") as image:
        image.paste((255, 255, 255), (12, 4, 16, 24))
        image.save("a.png")
    [one] = json.loads(call("explain", "net.onnx", "a.png", "--kind", "PP", "--budget", 300, "--json").stdout)
    assert (one["label"], Explanation.from_json(Path(one["file"]).read_text()).x0.shape) == (1, (1, 28, 28))
    picture(Path("b.png"), size=(10, 10))
    assert (
        "expected an input of shape (1, 28, 28), got (1, 10, 10)" in call("explain", "net.onnx", "b.png", code=2).stderr
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a.png"], 2, "expected MODEL and at least one INPUT"),
        (["lenet", "a.xyz"], 2, "expected INPUT as digits:N, a .png"),
        (["lenet", "no.png"], 2, "a file that exists"),
        (["lenet", "digits:x"], 2, "expected digits:N with N in 0..9"),
        (["lenet", "digits:7", "--l1", "-1"], 2, "expected l1 >= 0"),
        (["lenet", "digits:7", "--budget", "3"], 2, "expected budget >= 100"),
        (["lenet", "digits:7", "--bounds", "0"], 2, "expected --bounds as LOWER,UPPER"),
        (["lenet", "digits:7", "--target", "3"], 2, "expected --kind PN with --target"),
        (["toy_model:predict", "digits:7", "--mean", "0.5"], 2, "expected both --mean and --std"),
        (["lenet", "digits:7", "--token-env", "X"], 2, "expected a URL with --remote-model"),
        (["nothing", "digits:7"], 2, "expected MODEL as an .onnx file"),
        (["no.onnx", "digits:7"], 2, "a file that exists"),
        (["no_such_module:f", "digits:7"], 2, "a module that can be imported"),
        (["toy_model:absent", "digits:7"], 2, "toy_model has no absent"),
        (["toy_model:number", "digits:7"], 2, "expected a model, got"),
        (["os:path/../x", "digits:7"], 2, "as module:function"),
        (["toy_model:broken", "digits:7"], 1, "the model raised OSError"),
        (["lenet", "text.png"], 1, "expected a picture"),
        (["lenet", "text.npy"], 1, "expected an array"),
        (["lenet", "pickle.npy"], 1, "expected an array"),
        (["lenet", "bad.csv"], 1, "line 3: expected a number in column b, got 'x': use --drop"),
        (["lenet", "short.csv"], 1, "line 2: expected 2 columns, got 1"),
        (["lenet", "rows.csv:9"], 2, "expected rows in 0..1"),
        (["lenet", "rows.csv", "--drop", "z"], 2, "expected --drop to name columns of rows.csv (a, b)"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(here: Path, words: list[str], code: int, said: str) -> None:
    for name in ("text.png", "text.npy"):
        Path(name).write_text("this is text")
    np.save("pickle.npy", np.array([{"a": 1}]), allow_pickle=True)
    Path("bad.csv").write_text("a,b\n1,2\n3,x\n")
    Path("short.csv").write_text("1,2\n3\n")
    Path("rows.csv").write_text("a,b\n1,2\n3,4\n")
    result = call("explain", *words, code=code)
    assert result.stderr.startswith("error: ")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    assert not Path("explanations").exists()


def test_a_model_behind_a_url_and_its_secret(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "canary-7f3a9"
    monkeypatch.setenv("TOY_TOKEN", canary)
    picture(Path("a.png"))

    def answer(request: loopback.Request, _: int) -> bytes:
        batch = np.array(json.loads(request.body)["instances"]).reshape(-1, 36)
        return loopback.reply(json.dumps({"predictions": np.stack([0.5 - batch[:, 0], batch[:, 0] - 0.5], 1).tolist()}))

    with loopback.Server(answer) as server:
        url = f"{server.url}/predict"
        options = ("--kind", "PN", "--budget", 200, "--token-env", "TOY_TOKEN")
        result = call("explain", url, "a.png", *options)
        assert all(request.headers["authorization"] == f"Bearer {canary}" for request in server.requests)
        call("report", "explanations")
    assert f"zomirror explain {url} a.png" in Path("report.html").read_text()
    written = [path.read_bytes() for path in here.rglob("*") if path.is_file()]
    assert len(written) >= 4
    assert canary not in result.output
    assert not [text for text in written if canary.encode() in text]


@pytest.mark.parametrize("secret", ["sk-4f9aT0kenQx81Zb", "ghp_16C7e42F292c6912E7710c", "AKIAIOSFODNN7EXAMPLE"])
def test_a_secret_given_as_the_name_of_its_variable_is_not_shown(secret: str, here: Path) -> None:
    picture(Path("a.png"))
    with loopback.Server(lambda *_: loopback.reply("{}")) as server:
        for model in (server.url, "https://example.org", "toy_model:predict"):
            options = ("--budget", 200, "--token-env", secret, "--run-dir", "run")
            for command in ("explain", "attack"):
                result = call(command, model, "a.png", *options, code=2)
                assert secret not in result.output + result.stderr
                assert secret not in str(result.exception)
        assert server.requests == []
    for path in here.rglob("*"):
        assert secret not in path.name
        assert not path.is_file() or secret.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("minimize", "toy_model:predict", "--dim", "99999999999999"), "expected --dim of at most 100,000,000"),
        (("minimize", "toy_model:predict", "--dim", "9" * 400), "expected --dim of at most 100,000,000"),
        (("explain", "toy_model:predict", "a.png", "--shape", "inf,3"), "expected --shape as positive integers"),
        (("explain", "toy_model:predict", "a.png", "--shape", "nan"), "expected --shape as positive integers"),
        (("explain", "toy_model:predict", "a.png", "--shape", "99999999999999999999"), "expected --shape as positive"),
        (("explain", "toy_model:predict", "a.png", "--l1", "inf"), "expected l1 to be finite"),
        (("explain", "toy_model:predict", "a.png", "--seed", "-1"), "--seed|expected rng"),
    ],
    ids=range(7),
)
def test_absurd_sizes_are_refused_in_a_sentence(words: tuple[str, ...], message: str, here: Path) -> None:
    picture(Path("a.png"))
    result = call(*words, code=2)
    assert re.search(message, result.output + result.stderr)
    assert "Traceback" not in result.output + result.stderr
    assert "a bug in zomirror" not in result.output + result.stderr


def test_a_model_in_the_open_inference_protocol(here: Path) -> None:
    weights = np.zeros((36, 2))
    weights[:2] = [1, -1], [-2, 2]
    picture(Path("a.png"))
    with loopback.Server(loopback.model_server(weights)) as server:
        words = ("explain", server.url, "a.png", "--remote-model", "net", "--kind", "PN", "--json")
        [found] = json.loads(call(*words, "--budget", 200).stdout)
    assert (found["label"], found["valid"]) == (1, True)
    assert "--remote-model net" in found["command"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ada:secret@example.org:8443/v2?key=secret#part", "https://example.org:8443/v2"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
    ],
)
def test_what_may_be_secret_in_a_url_is_not_shown(url: str, shown: str) -> None:
    assert public(url) == shown


def test_debug_shows_where_and_may_stand_anywhere(here: Path) -> None:
    for words in (
        ["--debug", "explain", "toy_model:broken", "digits:7"],
        ["explain", "toy_model:broken", "digits:7", "--debug"],
    ):
        result = call(*words, code=1)
        assert "Traceback" in result.stderr
        assert "error: the model raised OSError" in result.stderr


# --- minimize ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
def test_minimize_finds_what_the_library_finds(here: Path, named: bool) -> None:
    words: tuple[object, ...] = ("minimize", "toy_model:quadratic", "--dim", 50, "--l1", 0.01, "--bounds", "-1,1")
    words += ("--budget", 2000)
    words += ("--method", "zo_ada_expmd", "--batch-size", 20) if named else ()
    result = call(*words, "--out", "x.npy")
    import toy_model  # type: ignore[import-not-found]

    method = zomirror.methods.zo_ada_expmd(20) if named else None
    same = zomirror.minimize(
        toy_model.quadratic, np.zeros(50), l1=0.01, bounds=(-1, 1), budget=2000, method=method, rng=0
    )
    assert np.load("x.npy").tobytes() == same.x.tobytes()
    assert result.stdout.splitlines()[0] == same.message
    assert f"F {same.fun:.6g}" in result.stdout
    found = json.loads(call(*words, "--json").stdout)
    assert found["fun"] == same.fun
    assert (found["nfev"], found["status"], found["success"]) == (same.nfev, same.status.name, True)


@pytest.mark.parametrize("name", [n for n in dir(zomirror.methods) if n == "recommended" or n.startswith("zo")])
def test_every_preset_is_reachable(here: Path, name: str) -> None:
    import toy_model  # type: ignore[import-not-found,unused-ignore]

    preset = getattr(zomirror.methods, name)
    takes = inspect.signature(preset).parameters
    given = {option: value for option, value in (("eta", 2.0), ("batch_size", 7)) if option in takes}
    words: tuple[object, ...] = ("minimize", "toy_model:quadratic", "--dim", 5, "--bounds", "-1,1", "--budget", 400)
    typed = [word for option, value in given.items() for word in (f"--{option.replace('_', '-')}", value)]
    call(*words, "--method", name, *typed, "--out", "x.npy")
    method = None if name == "recommended" else preset(**given)
    same = zomirror.minimize(toy_model.quadratic, np.zeros(5), bounds=(-1, 1), budget=400, method=method, rng=0)
    assert np.load("x.npy").tobytes() == same.x.tobytes()
    for option in {"eta", "batch_size"} - set(given):
        flag = f"--{option.replace('_', '-')}"
        said = call(*words, "--method", name, *typed, flag, 7, code=2).stderr
        assert f"expected no {flag} with {name}, which takes " in said
        assert all(f"--{taken.replace('_', '-')}" in said for taken in given)


def test_minimize_from_a_file_one_point_at_a_time(here: Path) -> None:
    np.save("x0.npy", np.full(4, 0.5))
    found = json.loads(
        call(
            "minimize", "toy_model:one", "--x0", "x0.npy", "--one-by-one", "--budget", 500, "--batch-size", 10,
            "--method", "zo_psgd", "--eta", 10, "--returns", "best", "--json",
        ).stdout
    )  # fmt: skip
    assert found["dim"] == 4
    assert found["fun"] < 0.1875


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["toy_model:quadratic"], 2, "expected --x0 FILE.npy or --dim N"),
        (["toy_model:quadratic", "--dim", "3", "--method", "zo_psgd"], 2, "expected --eta with zo_psgd, which takes"),
        (
            ["toy_model:quadratic", "--dim", "3", "--eta", "1"],
            2,
            "expected no --eta with recommended, which takes neither",
        ),
        (["toy_model:quadratic", "--dim", "3", "--batch-size", "9"], 2, "expected no --batch-size with recommended"),
        (["toy_model:quadratic", "--dim", "3", "--method", "sgd"], 2, "expected --method among recommended, zo_ada_"),
        (["toy_model:number", "--dim", "3"], 2, "expected fun to be a function"),
        (["toy_model:broken", "--dim", "3"], 1, "the function raised OSError"),
        (["toy_model:quadratic", "--x0", "toy_model.py"], 1, "expected --x0 to be an array"),
    ],
)
def test_minimize_says_what_is_wrong(here: Path, words: list[str], code: int, said: str) -> None:
    assert said in call("minimize", *words, code=code).stderr


def test_minimize_that_did_not_succeed_ends_with_1(here: Path) -> None:
    assert "not finite" in call("minimize", "toy_model:bad", "--dim", 3, code=1).stdout


# --- report, runs, train, bench ------------------------------------------------------------------------------------


def test_report_of_files_and_directories(here: Path) -> None:
    picture(Path("a.png"))
    call("explain", "toy_model:predict", "a.png", "--budget", 200)
    said = call("report", "explanations", "--title", "Two <of> one").stdout
    assert said == "report.html: 2 explanations, 2 of them valid\n"
    page = Path("report.html").read_text()
    assert "Two &lt;of&gt; one" in page
    assert "zomirror explain toy_model:predict a.png --kind PN --seed 0 --budget 200" in page
    call("report", "explanations/a-PN.json", "--out", "deep/one.html")
    assert Path("deep/one.html").is_file()
    Path("empty").mkdir()
    assert "expected explanations in 'empty'" in call("report", "empty", code=2).stderr
    Path("bad.json").write_text("{}")
    assert "bad.json: expected the format" in call("report", "bad.json", code=1).stderr
    Path("bad.json").write_bytes(b"\xff\xfe{}")
    assert "expected UTF-8 text" in call("report", "bad.json", code=1).stderr
    call("report", "absent.json", code=2)


def test_runs_are_listed_and_shown(here: Path) -> None:
    assert call("runs", "list").stdout == "no runs in .\n"
    with RunDirectory.open("runs/first", {"budget": 40, "l1": 0.5}, max_sent=40) as run:
        run.begin(10)
        run.values(np.zeros(10))
    lines = call("runs", "list", "runs").stdout.splitlines()
    assert lines[0].split() == ["run", "state", "done", "used", "sent", "lost", "created"]
    assert lines[1].split()[:6] == ["first", "interrupted", "25%", "10", "10", "0"]
    shown = call("runs", "show", "runs/first").stdout
    assert "runs/first: run, interrupted, 25% done" in shown
    assert "  l1 = 0.5" in shown
    [found] = json.loads(call("runs", "list", "runs", "--json").stdout)
    assert (found["state"], found["used"], found["configuration"]["budget"]) == ("interrupted", 10, 40)
    assert json.loads(call("runs", "show", "runs/first", "--json").stdout)["path"].endswith("runs/first")
    Path("runs/first/config.json").write_text("{")
    assert "damage: " in call("runs", "show", "runs/first", code=1).stdout
    assert "error: " in call("runs", "show", "nowhere", code=1).stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not store the command that started it"),
        ("{", "expected JSON"),
        ("[]", "expected a command of zomirror"),
        ('{"format": "zomirror command 1", "words": []}', "expected a command of zomirror"),
        ('{"format": "zomirror command 1", "words": [1]}', "expected a command of zomirror"),
        ('{"format": "zomirror command 1", "words": ["bench"]}', "expected a command that can be resumed"),
    ],
)
def test_only_a_command_of_ours_is_resumed(here: Path, text: str | None, said: str) -> None:
    Path("run").mkdir()
    if text is not None:
        Path("run/command.json").write_text(text)
    assert said in call("runs", "resume", "run", code=1).stderr
    call("runs", "resume", "absent", code=2)


def test_train_refuses_what_it_does_not_know(here: Path) -> None:
    assert "vgg" in call("train", "vgg", code=2).stderr
    assert "lenet" in call("train", "--help").stdout


def test_bench_finds_the_checkout(here: Path) -> None:
    names = call("bench", "--list").stdout.split()
    folder = Path(zomirror.__file__).parents[2] / "benchmarks"
    assert names == sorted(path.stem for path in folder.glob("[a-z]*.py"))
    assert "expected benchmarks among" in call("bench", "nothing", code=2).stderr
    checkout = here / "checkout"
    (checkout / "benchmarks").mkdir(parents=True)
    (checkout / "pyproject.toml").write_text('[project]\nname = "zomirror"\n')
    (checkout / "benchmarks" / "quick.py").write_text("print('a ratio')")
    (checkout / "benchmarks" / "wrong.py").write_text("raise SystemExit(3)")
    done = subprocess.run([*COMMAND, "bench"], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.split("\n")[:3] == ["== quick", "a ratio", "== wrong"]
    assert done.stderr == "error: these benchmarks failed: wrong\n"
