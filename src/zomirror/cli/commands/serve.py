"""`zomirror serve MODEL [DATA...]`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated

import typer

from zomirror.cli.arguments import ExplainerOptions, takes_explainer_options
from zomirror.cli.show import say, warn
from zomirror.errors import ArgumentError

PREDICTOR = "predictor"
"""MODEL in a cluster: what KServe says with --predictor-host."""


@takes_explainer_options()
def serve(
    typed: ExplainerOptions,
    *,
    name: Annotated[
        str, typer.Option("--name", "--model_name", help="The name of the model in the addresses.")
    ] = "model",
    host: Annotated[
        str, typer.Option(help="The address to listen at; 0.0.0.0 in a container, where others may ask.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "--http_port", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8080,
    predictor_host: Annotated[
        str | None,
        typer.Option("--predictor-host", "--predictor_host", help="For MODEL predictor: its host, as KServe gives it."),
    ] = None,
    deadline: Annotated[
        float, typer.Option(min=0.1, help="The most seconds of one request; the answer is then what was found.")
    ] = 60.0,
    searches: Annotated[int, typer.Option(min=1, help="Searches at a time.")] = 4,
    waiting: Annotated[int, typer.Option(min=1, help="Requests that may wait; more are refused.")] = 128,
    max_bytes: Annotated[int, typer.Option(min=1024, help="The largest request.")] = 1 << 24,
    access_env: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="The variable with the bearer token that requests must carry."),
    ] = None,
) -> None:
    """Serve explanations beside a model server, as an explainer for KServe (needs the extra `serve`)."""
    from zomirror.features.optional import need

    need("kserve", "kserve", "serve")
    from zomirror.cli.offer import Offer
    from zomirror.serve.kserve_explainer import LOOPBACK, run
    from zomirror.serve.service import Service

    offer = Offer.of(replace(typed, model=_predictor(typed.model, name, predictor_host)))
    token = None if access_env is None else os.environ.get(access_env)
    if access_env is not None and not token:
        raise ArgumentError("expected the token in the environment variable of --access-env, found none: set it")
    if host not in LOOPBACK and token is None:
        warn(f"everybody who reaches {host}:{port} can ask the model: --access-env asks for a token")
    service = Service(offer.explainer(), deadline, searches, waiting)
    run(service, name, host=host, port=port, token=token, most_bytes=max_bytes, tell=say)


def _predictor(model: str, name: str, host: str | None) -> str:
    """MODEL; in a cluster the URL of the predictor."""
    if model != PREDICTOR:
        return model
    if host is None:
        raise ArgumentError("expected --predictor-host with MODEL predictor, got none")
    return f"http://{host}/v1/models/{name}:predict"
