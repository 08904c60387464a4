"""The manifest for a cluster: the command line reads the words of its explainer, with those that KServe adds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
import yaml

from zomirror.cli import app
from zomirror.serve.guard import Guard

MANIFEST = Path(__file__).resolve().parents[2] / "examples" / "kserve-manifest" / "explainer.yaml"
ADDED = ["--model_name", "loans", "--predictor_host", "loans-predictor.default", "--http_port", "8080"]


def explainer() -> dict[str, Any]:
    [document] = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    assert (document["apiVersion"], document["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    found: dict[str, Any] = document["spec"]["explainer"]
    return found


def test_its_words_are_those_of_the_command() -> None:
    [container] = explainer()["containers"]
    assert all(isinstance(word, str) for word in container["args"])
    commands: Any = typer.main.get_command(app)
    given = commands.commands["serve"].make_context("serve", [*container["args"], *ADDED]).params
    assert (given["model"], given["name"], given["predictor_host"]) == ("predictor", "loans", "loans-predictor.default")
    assert (given["host"], given["port"], given["budget"], given["deadline"]) == ("0.0.0.0", 8080, 1000, 60.0)  # noqa: S104
    assert given["access_env"] in [one["name"] for one in container["env"]]
    assert given["deadline"] < explainer()["timeout"], "the answer comes before the cluster gives up"
    [volume] = container["volumeMounts"]
    assert given["data"][0].startswith(volume["mountPath"])


def test_its_probe_asks_a_path_that_is_open() -> None:
    [container] = explainer()["containers"]

    async def nothing(*_: Any) -> None:
        pass

    assert container["readinessProbe"]["httpGet"]["path"] in Guard(nothing, "loans")._open
    assert container["readinessProbe"]["httpGet"]["port"] == container["ports"][0]["containerPort"]
